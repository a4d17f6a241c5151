"""The attention classifier in its four variants: what it computes, what its records tell, and how it is kept."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

import attnscope
from attnscope.attribution import METHODS
from attnscope.errors import BadInput
from attnscope.lab.models import AttentionClassifier
from attnscope.lab.models.attention_classifier import VARIANTS
from attnscope.lab.vocabulary import Vocabulary

WORDS = "a the film is good bad lovely dull and not very".split()
TEXTS = ["a lovely film", "dull", "the film is not very good and not very bad"]
THREE = ("one", "two", "three")


def made(variant: str, **settings) -> AttentionClassifier:
    torch.manual_seed(3)
    model = AttentionClassifier(Vocabulary(WORDS), variant=variant, **{"scaling": 0.7, "width": 8, **settings})
    with torch.no_grad():  # first weights are small: larger ones show every part
        model.embeddings.weight.mul_(10)
        model.output.weight.mul_(3)
    return model.double().eval()


def lstm_by_hand(state: dict[str, Tensor], x: Tensor) -> Tensor:
    """Both directions, one word at a time, gates in PyTorch's order: input, forget, cell, output."""
    both = []
    for end, order in (("", range(len(x))), ("_reverse", range(len(x) - 1, -1, -1))):
        half = x.shape[1] // 2
        h = c = torch.zeros(half, dtype=x.dtype)
        read = torch.zeros(len(x), half, dtype=x.dtype)
        for place in order:
            gates = state[f"lstm.weight_ih_l0{end}"] @ x[place] + state[f"lstm.bias_ih_l0{end}"]
            gates = gates + state[f"lstm.weight_hh_l0{end}"] @ h + state[f"lstm.bias_hh_l0{end}"]
            i, f, g, o = gates.split(half)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            read[place] = h
        both.append(read)
    return torch.cat(both, 1)


def by_hand(model: AttentionClassifier, words: list[str]) -> tuple[Tensor, Tensor]:
    """α and the logits, word by word."""
    state = model.state_dict()
    x = state["embeddings.weight"][model.vocabulary.encode(words)]
    values = keys = x
    if model.settings.variant == "dot_lstm":
        values = keys = lstm_by_hand(state, x)
    elif model.settings.variant == "dot_affine":
        values = keys = x @ state["affine.weight"].T + state["affine.bias"]
    elif model.settings.variant == "additive":
        keys = torch.tanh(x @ state["affine.weight"].T + state["affine.bias"])
    grown = [math.exp(key @ state["context"] / model.settings.scaling) for key in keys]
    grown = torch.tensor(grown, dtype=torch.double)
    shares = grown / grown.sum()
    h = sum(share * value for share, value in zip(shares, values, strict=True))
    return shares, state["output.weight"] @ h


@pytest.mark.parametrize("classes", [("negative", "positive"), THREE])
@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_and_logits_are_those_of_the_equations_whatever_the_padding(variant, classes) -> None:
    model = made(variant, classes=classes)
    batch = model.batch([text.split() for text in TEXTS])
    logits, weights = model(**batch), model.weights(**batch)
    for row, text in enumerate(TEXTS):
        shares, told = by_hand(model, text.split())
        torch.testing.assert_close(weights[row, : len(shares)], shares, rtol=0, atol=1e-12)
        assert weights[row, len(shares) :].eq(0).all()
        torch.testing.assert_close(logits[row], told, rtol=0, atol=1e-12)


def test_weights_are_named_and_begin_as_agreed() -> None:
    torch.manual_seed(0)
    names = {}
    for variant in VARIANTS:
        model = AttentionClassifier(Vocabulary([f"word{number}" for number in range(500)]), variant=variant)
        names[variant] = {name.partition(".")[0] for name in model.state_dict()}
        assert model.embeddings.weight.abs().max() <= 0.1
        assert model.embeddings.weight.std().item() == pytest.approx(0.2 / math.sqrt(12), rel=0.02)
        assert model.context.shape == (100,)
        assert model.context.std().item() == pytest.approx(1, abs=0.25)
        assert model.output.weight.abs().max() <= 0.1
    shared = {"embeddings", "context", "output"}
    assert names == {
        "dot": shared,
        "dot_lstm": shared | {"lstm"},
        "dot_affine": shared | {"affine"},
        "additive": shared | {"affine"},
    }
    lstm = AttentionClassifier(Vocabulary(WORDS), variant="dot_lstm").lstm
    torch.testing.assert_close(lstm.weight_ih_l0.T @ lstm.weight_ih_l0, torch.eye(100), rtol=0, atol=1e-5)
    assert not lstm.bias_ih_l0.any()


def test_losses_are_mean_cross_entropies() -> None:
    logits, right = torch.tensor([[2.0], [-1.0]]), torch.tensor([0, 1])
    expected = (math.log(1 + math.exp(2)) + math.log(1 + math.exp(1))) / 2
    assert made("dot").loss(logits, right).item() == pytest.approx(expected)
    assert made("dot").predicted(logits).tolist() == [1, 0]
    wide = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    expected = (-math.log(math.e / (math.e + 2)) - math.log(1 / (2 + math.exp(3)))) / 2
    model = made("dot", classes=THREE)
    assert model.loss(wide, right).item() == pytest.approx(expected)
    assert model.predicted(wide).tolist() == [0, 2]


def test_dropout_falls_on_vectors_and_on_what_is_pooled() -> None:
    model = made("dot", dropout=0.5)
    batch = model.batch([TEXTS[2].split()])
    kept = model(**batch)
    model.train()
    model.embedding_dropout.eval()
    pooled = [model(**batch).item() for _ in range(20)]
    assert len({round(value, 9) for value in pooled}) > 1
    model.embedding_dropout.train()
    model.output_dropout.eval()
    assert len({round(model(**batch).item(), 9) for _ in range(20)}) > 1
    assert torch.equal(model.eval()(**batch), kept)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_map_of_attention_tells_the_one_attention(variant, text) -> None:
    model = made(variant).float()
    record = model.instrumented().record(text, gradients=True)
    shares = by_hand(model.double(), text.split())[0].float()
    assert record.weights.shape == (1, 1, len(shares), len(shares))
    torch.testing.assert_close(record.weights[0, 0], shares.expand(len(shares), -1))
    torch.testing.assert_close(record.readout, shares)
    for method in ("raw", "rollout", "flow", "layerwise_tracing"):
        torch.testing.assert_close(torch.as_tensor(attnscope.attribute(record, method).scores).float(), shares)
    assert torch.as_tensor(METHODS["gradient"](record).scores).abs().sum() > 0


def test_predictions_have_the_right_labels_and_probabilities() -> None:
    model = made("dot").float()
    read = model.instrumented()
    seen = set()
    for text in WORDS:
        record = read.record(text, gradients=True)
        logit = model(**model.batch([[text]])).item()
        told = dict(record.prediction)
        assert told["positive"] == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-6)
        assert sum(told.values()) == pytest.approx(1)
        assert record.prediction[0][0] == ("positive" if logit > 0 else "negative")
        assert record.embedding_gradients.abs().sum() > 0  # of the negative outcome too
        seen.add(record.prediction[0][0])
    assert seen == {"negative", "positive"}
    three = made("dot", classes=THREE).float()
    logits = three(**three.batch([TEXTS[0].split()]))[0]
    best = three.instrumented().record(TEXTS[0]).prediction[0]
    assert best == (THREE[int(logits.argmax())], pytest.approx(logits.softmax(-1).max().item(), abs=1e-6))


def test_views_and_running_it_again_work() -> None:
    read = made("additive").float().instrumented()
    records = list(read.records(TEXTS))
    assert [record.tokens for record in records] == [tuple(text.split()) for text in TEXTS]
    assert attnscope.views.head(records[0]).payload
    assert attnscope.blank_out(records[0], read).scores.abs().sum() > 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_kept_model_answers_as_before(tmp_path: Path, variant) -> None:
    model = made(variant, classes=THREE).float()
    loaded = AttentionClassifier.load(model.save(tmp_path / "model"))
    batch = model.batch([text.split() for text in TEXTS])
    assert torch.equal(loaded(**batch), model(**batch))
    assert loaded.classes == THREE
    assert loaded.settings.scaling == 0.7


def test_what_cannot_be_is_said() -> None:
    words = Vocabulary(WORDS)
    with pytest.raises(BadInput, match="attends as dot, dot_lstm"):
        AttentionClassifier(words, variant="cosine")
    with pytest.raises(BadInput, match="above 0"):
        AttentionClassifier(words, scaling=0)
    with pytest.raises(BadInput, match="two classes"):
        AttentionClassifier(words, classes=("only",))
    with pytest.raises(BadInput, match="even width"):
        AttentionClassifier(words, variant="dot_lstm", width=5)
    with pytest.raises(BadInput, match="empty"):
        made("dot").tokenize("  ")
