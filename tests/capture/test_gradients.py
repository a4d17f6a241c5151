"""Gradients against finite differences and against autograd on the untouched model."""

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

import attnscope
from attnscope.capture.answers import resolved_target
from attnscope.errors import BadInput


def nudged(model, inputs, direction, step, position_read):
    """The model's outcome when the embedding output is moved a step along a direction, without attnscope."""
    hook = model.get_input_embeddings().register_forward_hook(lambda module, given, output: output + step * direction)
    try:
        with torch.no_grad():
            return position_read(model(**{name: ids.unsqueeze(0) for name, ids in inputs.items()}))
    finally:
        hook.remove()


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert", "mpnet", "deberta_v2", "gpt2", "falcon"])
@pytest.mark.parametrize("quantity", ["logit", "probability", "difference"])
def test_embedding_gradients_are_finite_differences(tiny, family, quantity):
    model = tiny.load(family)
    model.model.double()
    record = model.record(tiny.texts[1], gradients=True, quantity=quantity)
    classifier = model.task == "classifier"

    def value(output):
        logits = output.logits[0] if classifier else output.logits[0, -1]
        chosen = logits if quantity == "logit" else logits.softmax(-1)
        number = chosen[record.target.index]
        if quantity == "difference":
            number = number - torch.cat([chosen[: record.target.index], chosen[record.target.index + 1 :]]).max()
        return number

    torch.manual_seed(1)
    direction = torch.randn_like(record.embeddings).double()
    step = 1e-5
    ahead = nudged(model.model, record.inputs, direction, step, value)
    behind = nudged(model.model, record.inputs, direction, -step, value)
    slope = ((ahead - behind) / (2 * step)).item()
    assert (record.embedding_gradients.double() * direction).sum().item() == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_gradients_are_those_of_autograd(tiny, family):
    """An independent path: the model loaded eager, its returned attentions, torch.autograd."""
    model = tiny.load(family)
    stack = model.stacks[0]
    record = model.record(tiny.texts[1], gradients=True, stack=stack)
    eager = tiny.build(family, "eager")
    looked_up = []
    encoder = eager.get_encoder() if stack == "cross" else eager
    encoder.get_input_embeddings().register_forward_hook(lambda module, inputs, output: looked_up.append(output))
    output = eager(**{name: ids.unsqueeze(0) for name, ids in record.inputs.items()}, output_attentions=True)
    logits = output.logits[0] if model.task == "classifier" else output.logits[0, -1]
    attentions = output.cross_attentions if stack == "cross" else output.attentions
    of_embeddings, *of_attentions = torch.autograd.grad(logits[record.target.index], [looked_up[0], *attentions])
    torch.testing.assert_close(record.embedding_gradients, of_embeddings[0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(record.attention_gradients, torch.cat(of_attentions), atol=1e-5, rtol=1e-4)


def test_encoder_decoder_gradients_are_of_the_keys(tiny, encoder_decoder):
    model = tiny.load(encoder_decoder)
    for stack in model.stacks:
        record = model.record(tiny.texts[0], text_target=tiny.texts[1], stack=stack, gradients=True)
        assert len(record.embedding_gradients) == len(record.key_tokens)
        assert record.embedding_gradients.abs().sum() > 0


def test_gradients_of_a_batch_are_those_of_each_text(tiny):
    model = tiny.load("bert")
    for text, record in zip(tiny.texts, model.records(tiny.texts, gradients=True), strict=True):
        alone = model.record(text, gradients=True)
        torch.testing.assert_close(record.embedding_gradients, alone.embedding_gradients, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(record.attention_gradients, alone.attention_gradients, atol=1e-5, rtol=1e-4)
        assert record.target == alone.target


def test_targets_are_named_and_stored(tiny):
    model = tiny.load("bert", num_labels=3)
    predicted = model.record(tiny.texts[0]).prediction[0][0]
    assert model.record(tiny.texts[0], gradients=True).target.outcome == predicted
    by_name = model.record(tiny.texts[0], gradients=True, target="LABEL_2")
    by_number = model.record(tiny.texts[0], gradients=True, target=2)
    assert by_name.target == by_number.target
    assert torch.equal(by_name.embedding_gradients, by_number.embedding_gradients)
    total = model.record(tiny.texts[0], gradients=True, target="sum")
    each = sum(model.record(tiny.texts[0], gradients=True, target=label).embedding_gradients for label in range(3))
    torch.testing.assert_close(total.embedding_gradients, each, atol=1e-6, rtol=1e-4)
    assert str(total.target) == "the sum of every logit"


def test_frozen_parameters_are_no_hindrance_and_gather_no_gradient(tiny):
    model = tiny.load("gpt2")
    model.model.requires_grad_(False)
    with torch.no_grad():
        record = model.record(tiny.texts[0], gradients=True)
    assert record.embedding_gradients.abs().sum() > 0
    open_model = tiny.load("gpt2")
    open_model.record(tiny.texts[0], gradients=True)
    assert all(parameter.grad is None for parameter in open_model.model.parameters())


def test_headless_encoder_takes_the_sum_of_what_is_read(tiny):
    model = tiny.load("bert", architecture="BertModel")
    record = model.record(tiny.texts[0], gradients=True, target="sum")
    assert record.embedding_gradients.shape == (12, 32)
    with pytest.raises(attnscope.BadInput, match="target='sum'"):
        model.record(tiny.texts[0], gradients=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "LABEL_7"}, "no outcome 'LABEL_7'"),
        ({"target": 9}, "no outcome 9"),
        ({"quantity": "entropy"}, "logit, probability or difference"),
        ({"target": "sum", "quantity": "difference"}, "no difference"),
        ({"gradients": False, "target": 1}, "gradients=True"),
    ],
)
def test_bad_targets_get_one_sentence(tiny, options, sentence):
    with pytest.raises(attnscope.BadInput, match=sentence):
        tiny.load("bert").record(tiny.texts[0], **{"gradients": True} | options)


def test_a_word_that_is_likelier_behind_a_space_is_asked_about():
    """To a tokenizer such as GPT-2's, a word and the word behind a space are two tokens."""
    words = {" Paris": 0, "Paris": 1, " Rome": 2, "Berlin": 3, "[UNK]": 4}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel(words, "[UNK]")))
    chances = torch.tensor([0.7, 0.01, 0.09, 0.2, 0.0])

    def index(target):
        return resolved_target(target, "logit", chances, None, tokenizer).index

    assert [index(" Paris"), index("Berlin"), index(1)] == [0, 3, 1]
    sentence = r"'Paris' has 1\.00% here, and ' Paris', with the space before it, 70\.00%: .*\(0, or 1\)"
    with pytest.raises(BadInput, match=sentence):
        index("Paris")
    with pytest.raises(BadInput, match=r"'Rome' has 0\.00% here, and ' Rome', .* 9\.00%"):
        index("Rome")


def test_a_label_is_found_in_capitals_or_not():
    chances = torch.tensor([0.7, 0.2, 0.1])
    assert resolved_target("positive", "logit", chances, ["NEGATIVE", "POSITIVE", "Other"], None).index == 1
    with pytest.raises(BadInput, match="There is no outcome 'good' here: choose Good, GOOD, Other"):
        resolved_target("good", "logit", chances, ["Good", "GOOD", "Other"], None)
