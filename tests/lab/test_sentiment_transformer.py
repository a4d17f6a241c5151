"""The sentiment model is the one of the paper, parameter for parameter, and its local attention is the read-out."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

import attnscope
from attnscope.errors import BadInput
from attnscope.lab.models import SentimentTransformer
from attnscope.lab.models.sentiment import CLASSES
from attnscope.lab.word_vectors import WordVectors

WORDS = "a the film is good bad lovely dull and not very".split()
TEXTS = ["a lovely film", "dull", "the film is not very good and not very bad"]
SIZE = {"layers": 2, "heads": 3, "head_width": 4, "width": 10}


def vectors(width: int) -> WordVectors:
    table = torch.randn(len(WORDS), width, generator=torch.Generator().manual_seed(1))
    return WordVectors(tuple(WORDS), table, "Made up.")


def stirred(model: SentimentTransformer) -> SentimentTransformer:
    """First weights are small and LayerNorms do nothing yet: other ones show every part."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if name != "words.weight":
                weights.add_(0.4 * torch.randn(weights.shape, generator=generator))
    return model.eval()


@pytest.fixture
def model() -> SentimentTransformer:
    torch.manual_seed(0)
    return stirred(SentimentTransformer.for_sst5(vectors(10), **SIZE))


def trained_parameters(model: SentimentTransformer) -> int:
    return sum(weights.numel() for weights in model.parameters() if weights.requires_grad)


def test_parameter_counts_are_those_of_the_paper() -> None:
    assert trained_parameters(SentimentTransformer.for_sst5()) == 3_993_222
    assert trained_parameters(SentimentTransformer.for_send()) == 4_715_362
    wide, narrow = (SentimentTransformer.for_sst5(vectors(width)) for width in (300, 50))
    assert trained_parameters(wide) == 3_993_222
    assert trained_parameters(narrow) == 3_993_222 + 50 * 300
    learned = SentimentTransformer.learning(wide.vocabulary)
    assert trained_parameters(learned) == 3_993_222 + (len(WORDS) + 2) * 300


def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    middle = x.mean(-1, keepdim=True)
    spread = ((x - middle) ** 2).mean(-1, keepdim=True)
    return (x - middle) / torch.sqrt(spread + 1e-6) * weight + bias


def by_hand(model: SentimentTransformer, words: list[str]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weights, local attention, context and logits, from Eq. 1-6 and 18-19, one token and one head at a time."""
    state = {name: tensor.double() for name, tensor in model.state_dict().items()}
    x = state["words.weight"][model.vocabulary.encode(words)]
    if "widening.weight" in state:
        x = x @ state["widening.weight"].T
    heads, part_width = model.settings.heads, model.settings.head_width
    layers = []
    for layer in range(model.settings.layers):
        prefix = f"layers.{layer}."
        of = {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}
        q = norm(x, of["attention.norm.weight"], of["attention.norm.bias"]) @ of["attention.queries.weight"].T
        k, v = x @ of["attention.keys.weight"].T, x @ of["attention.values.weight"].T
        maps = torch.zeros(heads, len(words), len(words), dtype=torch.double)
        z = torch.zeros(len(words), heads * part_width, dtype=torch.double)
        for head in range(heads):
            part = slice(head * part_width, (head + 1) * part_width)
            for query in range(len(words)):
                grown = [math.exp(q[query, part] @ key[part] / math.sqrt(part_width)) for key in k]
                maps[head, query] = torch.tensor(grown, dtype=torch.double) / sum(grown)
            z[:, part] = maps[head] @ v[:, part]
        layers.append(maps)
        x = x + z @ of["attention.projection.weight"].T
        inner = norm(x, of["norm.weight"], of["norm.bias"])
        inner = (inner @ of["feed_forward.0.weight"].T + of["feed_forward.0.bias"]).clamp(min=0)
        x = x + inner @ of["feed_forward.2.weight"].T + of["feed_forward.2.bias"]
    x = norm(x, state["norm.weight"], state["norm.bias"])
    f = x
    for place in (0, 3, 6):
        f = f @ state[f"local_attention.score.{place}.weight"].T + state[f"local_attention.score.{place}.bias"]
        f = f.clamp(min=0) if place < 6 else f
    local = f[:, 0].exp() / f[:, 0].exp().sum()
    context = sum(share * token for share, token in zip(local, x, strict=True))
    inner = (state["decoder.answer.0.weight"] @ context + state["decoder.answer.0.bias"]).clamp(min=0)
    return (
        torch.stack(layers),
        local,
        context,
        state["decoder.answer.3.weight"] @ inner + state["decoder.answer.3.bias"],
    )


@pytest.mark.parametrize("width", [10, 4])
@pytest.mark.parametrize("text", TEXTS)
def test_attention_local_attention_and_answer_are_those_worked_out_by_hand(width: int, text: str) -> None:
    torch.manual_seed(0)
    model = stirred(SentimentTransformer.for_sst5(vectors(width), **SIZE))
    weights, local, _, logits = by_hand(model, text.split())
    record = model.instrumented().record(text)
    torch.testing.assert_close(record.weights, weights.float(), atol=1e-4, rtol=0)
    torch.testing.assert_close(record.readout, local.float(), atol=1e-4, rtol=0)
    assert record.tokens == tuple(text.split())
    # each class is judged alone
    assert [dict(record.prediction)[label] for label in CLASSES] == pytest.approx(logits.sigmoid().tolist(), abs=1e-4)


def test_tracing_starts_at_the_local_attention_and_goes_down_two_layers(model: SentimentTransformer) -> None:
    """Eq. 8-11 in plain loops."""
    weights, local, _, _ = by_hand(model, TEXTS[2].split())
    layers, heads, tokens, _ = weights.shape
    expected = torch.zeros(tokens, dtype=torch.double)
    for head in range(heads):
        held = local.tolist()
        for layer in reversed(range(layers)):
            held = [sum(held[i] * weights[layer, head, i, j].item() for i in range(tokens)) for j in range(tokens)]
        assert sum(held) == pytest.approx(1)
        expected += torch.tensor(held, dtype=torch.double)
    scores = attnscope.layerwise_tracing(model.instrumented().record(TEXTS[2]))
    torch.testing.assert_close(scores.scores, expected.float(), atol=1e-4, rtol=0)
    assert scores.scores.sum().item() == pytest.approx(heads, abs=1e-4)


def test_the_order_of_words_does_not_matter(model: SentimentTransformer) -> None:
    words = TEXTS[2].split()
    order = [3, 0, 9, 5, 1, 8, 2, 7, 6, 4]
    assert sorted(order) == list(range(len(words)))
    reads = model.instrumented()
    straight, mixed = reads.record(words), reads.record([words[place] for place in order])
    torch.testing.assert_close(mixed.weights, straight.weights[:, :, order][..., order], atol=1e-5, rtol=0)
    torch.testing.assert_close(mixed.readout, straight.readout[order], atol=1e-5, rtol=0)
    assert dict(mixed.prediction) == pytest.approx(dict(straight.prediction), abs=1e-5)


def test_padding_changes_nothing(model: SentimentTransformer) -> None:
    reads = model.instrumented()
    for text, batched in zip(TEXTS, reads.records(TEXTS, batch_size=3, gradients=True), strict=True):
        alone = reads.record(text, gradients=True)
        torch.testing.assert_close(batched.weights, alone.weights, atol=1e-5, rtol=0)
        torch.testing.assert_close(batched.readout, alone.readout, atol=1e-5, rtol=0)
        torch.testing.assert_close(batched.embedding_gradients, alone.embedding_gradients, atol=1e-4, rtol=1e-3)
        assert dict(batched.prediction) == pytest.approx(dict(alone.prediction), abs=1e-5)


def test_the_gradient_of_the_paper_is_of_the_sum_of_sigmoids(model: SentimentTransformer) -> None:
    record = model.instrumented().record(TEXTS[0], gradients=True, target="sum", quantity="probability")
    batch = model.batch([TEXTS[0].split()])
    start = model.words(batch["input_ids"]).detach().requires_grad_()
    logits = model.decoder(model.contexts(start, batch["attention_mask"]))
    (expected,) = torch.autograd.grad(logits.sigmoid().sum(), start)
    squared = attnscope.gradient(record, reduce="squared").scores
    torch.testing.assert_close(squared, expected[0].square().sum(-1), atol=1e-6, rtol=1e-3)
    assert squared.max() > 0


def test_methods_run_on_it(model: SentimentTransformer) -> None:
    reads = model.instrumented()
    record = reads.record(TEXTS[0])
    for method in (attnscope.raw, attnscope.rollout, attnscope.flow):
        assert method(record).scores.sum().item() > 0
    for view in (attnscope.views.tracing, attnscope.views.model, attnscope.views.flow):
        assert view(record).payload
    label = record.prediction[0][0]
    without = dict(reads.record(["a", "[UNK]", "film"]).prediction)[label]
    dropped = attnscope.blank_out(record, reads).scores[1].item()
    assert dropped == pytest.approx(abs(record.prediction[0][1] - without), abs=1e-5)


def test_the_losses_are_those_of_their_formulas() -> None:
    logits = torch.tensor([[0.3, -1.0, 2.0, 0.1, 0.0], [1.0, 0.5, -0.2, 0.0, 3.0]])
    classes = torch.tensor([2, 0])
    alone = one = 0.0
    for row, right in zip(logits.tolist(), classes.tolist(), strict=True):
        for place, logit in enumerate(row):
            probability = 1 / (1 + math.exp(-logit))
            alone -= math.log(probability if place == right else 1 - probability)
        one -= math.log(math.exp(row[right]) / sum(map(math.exp, row)))
    for probabilities, expected in (("sigmoid", alone), ("softmax", one)):
        model = SentimentTransformer.for_sst5(vectors(10), **SIZE, probabilities=probabilities)
        assert model.loss(logits, classes).item() == pytest.approx(expected, rel=1e-5)
    shares = [share for _, share in model.instrumented().record("a film").prediction]
    assert sum(shares) == pytest.approx(1, abs=1e-5)


def test_words_are_found_in_lower_case_and_vectors_stay(model: SentimentTransformer) -> None:
    record = model.instrumented().record("A Lovely xylophone")
    assert record.tokens == ("A", "Lovely", "xylophone")
    ids = record.inputs["input_ids"].tolist()
    assert ids == [*model.vocabulary.encode(["a", "lovely"]), model.vocabulary.number("unk")]
    table = model.words.weight
    assert not table.requires_grad
    assert torch.equal(table[2:], vectors(10).table)
    assert table[:2].abs().sum() == 0


@pytest.mark.parametrize("narrow", [10, 4])
def test_what_is_saved_is_loaded(narrow: int, tmp_path: Path) -> None:
    model = stirred(SentimentTransformer.for_send(vectors(narrow), **SIZE))
    again = SentimentTransformer.load(model.save(tmp_path / "model"))
    assert (again.settings, again.vocabulary, again.training) == (model.settings, model.vocabulary, False)
    first, second = (reads.instrumented().record(TEXTS[0]) for reads in (model, again))
    assert torch.equal(first.readout, second.readout)
    assert first.prediction == second.prediction
    assert first.prediction[0][0] == "valence"
    assert trained_parameters(again) == trained_parameters(model)


def test_what_is_wrong_is_told(model: SentimentTransformer) -> None:
    with pytest.raises(BadInput, match="classes or series"):
        SentimentTransformer(model.vocabulary, answer="colours")
    with pytest.raises(BadInput, match="sigmoid or softmax"):
        SentimentTransformer(model.vocabulary, probabilities="hardmax")
    with pytest.raises(BadInput, match="empty"):
        model.instrumented().record(" ")
