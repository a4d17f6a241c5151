"""Gradient and gradient times input, against autograd and finite differences on the untouched model."""

import pytest
import torch

import attnscope
from attnscope import BadInput


def plain_gradients(tiny, family, record):
    """The gradient at the embeddings by torch.autograd, of a model that attnscope has never seen."""
    model = tiny.build(family)
    embeddings = model.get_input_embeddings()(record.inputs["input_ids"].unsqueeze(0)).detach().requires_grad_()
    types = {name: ids.unsqueeze(0) for name, ids in record.inputs.items() if name == "token_type_ids"}
    logits = model(inputs_embeds=embeddings, **types).logits[0]
    logits = logits if logits.ndim == 1 else logits[-1]
    return torch.autograd.grad(logits[record.target.index], embeddings)[0][0]


@pytest.mark.parametrize("family", ["bert", "distilbert", "gpt2", "llama", "mistral"])
def test_reductions_are_those_of_plain_autograd(tiny, family):
    record = tiny.load(family).record(tiny.TEXTS[0], gradients=True)
    gradients = plain_gradients(tiny, family, record)
    expected = {
        "norm": [sum(value**2 for value in row) ** 0.5 for row in gradients.tolist()],
        "squared": [sum(value**2 for value in row) for row in gradients.tolist()],
        "abs_sum": [abs(sum(row)) for row in gradients.tolist()],
    }
    for reduce, scores in expected.items():
        found = attnscope.gradient(record, reduce=reduce)
        torch.testing.assert_close(found.scores, torch.tensor(scores), atol=1e-5, rtol=1e-4)
        assert found.tokens == record.tokens
    torch.testing.assert_close(attnscope.gradient(record).scores, torch.tensor(expected["norm"]), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", ["bert", "deberta_v2", "gpt2", "falcon"])
def test_gradient_x_input_is_the_slope_of_scaling_a_token(tiny, family):
    """d/ds of the target when one token's embedding is multiplied by 1 + s, by finite differences in float64."""
    model = tiny.load(family)
    model.model.double()
    record = model.record(tiny.TEXTS[1], gradients=True)
    inputs = {name: ids.unsqueeze(0) for name, ids in record.inputs.items()}

    def value(position, scale):
        def scaled(_module, _inputs, output):
            output = output.clone()
            output[0, position] *= scale
            return output

        hook = model.model.get_input_embeddings().register_forward_hook(scaled)
        with torch.no_grad():
            logits = model.model(**inputs).logits[0]
        hook.remove()
        return (logits if logits.ndim == 1 else logits[-1])[record.target.index].item()

    step = 1e-5
    slopes = [
        (value(position, 1 + step) - value(position, 1 - step)) / (2 * step) for position in range(len(record.tokens))
    ]
    signed = attnscope.gradient_x_input(record, signed=True).scores
    torch.testing.assert_close(signed, torch.tensor(slopes), atol=1e-5, rtol=1e-4)
    assert torch.equal(attnscope.gradient_x_input(record).scores, signed.abs())


def test_the_sum_over_dimensions_is_rounding_behind_layer_norm(tiny):
    for family in ("bert", "gpt2", "distilbert"):
        record = tiny.load(family).record(tiny.TEXTS[0], gradients=True, quantity="difference")
        scores = attnscope.gradient(record, reduce="abs_sum")
        assert scores.scores.max() < 1e-5 * attnscope.gradient(record).scores.max()
        assert len(scores.warnings) == 1
        assert "LayerNorm" in scores.warnings[0]
        assert attnscope.gradient(record).warnings == ()
    for family in ("llama", "mistral"):
        record = tiny.load(family).record(tiny.TEXTS[0], gradients=True, quantity="difference")
        assert attnscope.gradient(record, reduce="abs_sum").warnings == ()


def test_wu2020_is_a_softmax_of_squares_of_the_sum_of_outcomes(tiny):
    model = tiny.load("bert", num_labels=5, problem_type="multi_label_classification")
    record = model.record(tiny.TEXTS[0], gradients=True, target="sum", quantity="probability")
    scores = attnscope.gradient(record, reduce="squared", normalize="softmax", target="sum").scores
    squares = [sum(value**2 for value in row) for row in record.embedding_gradients.tolist()]
    torch.testing.assert_close(scores, torch.tensor(squares).softmax(0))


def test_gradients_are_of_the_key_tokens(tiny):
    for family in ("bart", "t5"):
        model = tiny.load(family)
        for stack in model.stacks:
            record = model.record(tiny.TEXTS[0], text_target=tiny.TEXTS[1], stack=stack, gradients=True)
            for method in (attnscope.gradient, attnscope.gradient_x_input):
                assert method(record).tokens == record.key_tokens
                assert method(record).scores.max() > 0


def test_padding_changes_nothing(tiny):
    model = tiny.load("bert")
    for text, record in zip(tiny.TEXTS, model.records(tiny.TEXTS, batch_size=4, gradients=True), strict=True):
        alone = model.record(text, gradients=True)
        for method in (attnscope.gradient, attnscope.gradient_x_input):
            torch.testing.assert_close(method(record).scores, method(alone).scores, atol=1e-5, rtol=0)


def test_target_only_makes_sure(tiny):
    record = tiny.load("bert", num_labels=3).record(tiny.TEXTS[0], gradients=True, target="LABEL_2")
    for same in (None, 2, "LABEL_2", record.target):
        assert torch.equal(attnscope.gradient(record, target=same).scores, attnscope.gradient(record).scores)
    for method in (attnscope.gradient, attnscope.gradient_x_input):
        for other in (1, "LABEL_1", "sum"):
            with pytest.raises(BadInput, match="are of the logit of 'LABEL_2', not of"):
                method(record, target=other)


def test_bad_input_gets_one_sentence(tiny):
    model = tiny.load("bert")
    record = model.record(tiny.TEXTS[0], gradients=True)
    for method in ("gradient", "gradient_x_input"):
        with pytest.raises(BadInput, match="gradients=True"):
            attnscope.attribute(model.record(tiny.TEXTS[0]), method)
        with pytest.raises(BadInput, match="A record of words holds neither"):
            attnscope.attribute(record.words(), method)
    with pytest.raises(BadInput, match="reduce='mean'"):
        attnscope.gradient(record, reduce="mean")
    with pytest.raises(BadInput, match="normalize"):
        attnscope.gradient(record, normalize="max")
    with pytest.raises(BadInput, match="no map"):
        attnscope.gradient(record).at(query=0)
