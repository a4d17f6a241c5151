"""The recurrent classifier: its size, its equations, its padding, what its records tell, and how it is kept."""

from pathlib import Path

import pytest
import torch
from torch import nn

import attnscope
from attnscope.errors import BadInput
from attnscope.lab.models import RecurrentClassifier
from attnscope.lab.models.lstm_scan import lstm_states
from attnscope.lab.vocabulary import FRAMED, Vocabulary

WORDS = "a the film is good bad lovely dull and not very".split()
TEXTS = ["a lovely film", "dull", "the film is not very good and not very bad"]
LABELS = torch.tensor([1, 0, 1])


def made(**settings) -> RecurrentClassifier:
    torch.manual_seed(3)
    small = {"width": 6, "hidden": 5, "attention_width": 4, **settings}
    model = RecurrentClassifier(Vocabulary(WORDS, special=FRAMED), **small)
    with torch.no_grad():  # first weights are small: larger ones show every part
        for weights in (model.attention_map.weight, model.attention_score.weight, model.output.weight):
            weights.mul_(4)
    return model.double().eval()


def batch_of(model: RecurrentClassifier) -> dict[str, torch.Tensor]:
    return model.batch([text.split() for text in TEXTS])


def test_the_paper_s_number_of_parameters() -> None:
    model = RecurrentClassifier(Vocabulary(WORDS, special=FRAMED))
    counts = {name: weights.numel() for name, weights in model.named_parameters()}
    assert counts.pop("embeddings.weight") == len(model.vocabulary) * 300
    assert sum(counts.values()) == 1_274_882


@pytest.mark.parametrize("bidirectional", [True, False])
def test_states_and_their_gradients_are_those_of_torch_on_each_text_alone(bidirectional: bool) -> None:
    torch.manual_seed(1)
    lstm = nn.LSTM(3, 4, bidirectional=bidirectional, batch_first=True).double()
    real = torch.arange(6) < torch.tensor([2, 6, 1, 4])[:, None]
    vectors = torch.randn(4, 6, 3, dtype=torch.double, requires_grad=True)
    aim = torch.randn(4, 6, lstm.hidden_size * (1 + bidirectional), dtype=torch.double)
    found = lstm_states(lstm, vectors, real)
    alone = torch.zeros_like(found)
    for row, mask in enumerate(real):
        alone[row, mask] = lstm(vectors[row : row + 1, mask])[0][0]
    torch.testing.assert_close(found, alone, rtol=0, atol=1e-12)
    wanted = [vectors, *lstm.parameters()]
    ours, theirs = (torch.autograd.grad((states * aim).square().sum(), wanted) for states in (found, alone))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("settings", [{}, {"bidirectional": False}, {"attention": "uniform"}])
def test_a_padded_batch_is_its_texts_one_by_one(settings) -> None:
    model = made(**settings)
    together = batch_of(model)
    for method in (model, model.weights, model.word_logits):
        found = method(**together)
        for row, text in enumerate(TEXTS):
            alone = method(**model.batch([text.split()]))
            torch.testing.assert_close(found[row : row + 1, : alone.shape[1]], alone, rtol=0, atol=1e-12)
    weights = model.weights(**together)
    torch.testing.assert_close(weights.sum(1), torch.ones(3, dtype=torch.double))
    assert weights[~together["attention_mask"]].eq(0).all()


def test_logit_and_weights_are_those_of_the_equations() -> None:
    model = made()
    batch = model.batch([TEXTS[0].split()])
    states = model.states(**batch)[0]
    hidden = (states @ model.attention_map.weight.T + model.attention_map.bias).clamp(min=0)
    scores = (hidden @ model.attention_score.weight.T + model.attention_score.bias)[:, 0]
    shares = scores.exp() / scores.exp().sum()
    torch.testing.assert_close(model.weights(**batch)[0], shares)
    pooled = sum(share * state for share, state in zip(shares, states, strict=True))
    torch.testing.assert_close(model(**batch)[0], model.output.weight @ pooled + model.output.bias)


def test_the_probability_of_the_right_class_is_attention_over_lexical_knowledge() -> None:
    """Eq. 12: p(correct) = σ(Σ α_l logit(β_l)), and Sun & Lu's s_l is (2y - 1) logit(β_l)."""
    model = made()
    batch = batch_of(model)
    sign = (2 * LABELS - 1)[:, None]
    beta = (sign * model.word_logits(**batch)).sigmoid()
    correct = (model.weights(**batch) * beta.logit()).sum(1).sigmoid()
    torch.testing.assert_close(correct, (sign * model(**batch)).sigmoid()[:, 0])
    polarity = model.states(**batch) @ model.output.weight[0] + model.output.bias
    torch.testing.assert_close(polarity, sign * beta.logit())
    torch.testing.assert_close(model.loss(model(**batch), LABELS), -correct.log().mean())


def test_all_attention_on_one_word_gives_its_word_logit() -> None:
    model = made()
    batch = batch_of(model)
    words = model.word_logits(**batch)
    for place in range(3):
        forced = torch.zeros_like(words)
        forced[:, place] = 1
        torch.testing.assert_close(model(**batch, attention=forced)[:, 0], words[:, place])
    torch.testing.assert_close(model(**batch, attention=model.weights(**batch)), model(**batch))


def test_uniform_attention_is_the_same_for_all_words_and_needs_no_scores() -> None:
    model = made(attention="uniform")
    batch = batch_of(model)
    lengths = batch["attention_mask"].sum(1)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(
            model.weights(**batch)[row, :length], torch.full((length,), 1 / length, dtype=torch.double)
        )
    model.loss(model(**batch), LABELS).backward()
    assert model.attention_map.weight.grad is None
    assert model.output.weight.grad is not None


def test_its_records_show_alpha_between_the_ends_of_a_text() -> None:
    model = made().float()
    instrumented = model.instrumented()
    record = instrumented.record(TEXTS[0])
    assert record.tokens == ("[BOS]", "a", "lovely", "film", "[EOS]")
    batch = model.batch([TEXTS[0].split()])
    torch.testing.assert_close(record.readout, model.weights(**batch)[0])
    torch.testing.assert_close(attnscope.attribute(record, "raw").scores, record.readout)
    told = dict(record.prediction)["positive"]
    assert told == pytest.approx(model(**batch).sigmoid().item(), abs=1e-6)
    again = next(iter(instrumented.records(TEXTS)))
    torch.testing.assert_close(again.weights, record.weights)


def test_it_is_kept_and_loaded(tmp_path: Path) -> None:
    model = made(classes=("ham", "spam")).float()
    loaded = RecurrentClassifier.load(model.save(tmp_path))
    assert loaded.classes == ("ham", "spam")
    torch.testing.assert_close(loaded(**batch_of(model)), model(**batch_of(model)))


def test_settings_that_make_no_model_are_refused() -> None:
    for settings, said in (
        ({"attention": "global"}, "learned or uniform, not 'global'"),
        ({"hidden": 0}, "at least 1"),
        ({"classes": ("one", "two", "three")}, "two classes"),
    ):
        with pytest.raises(BadInput, match=said):
            made(**settings)
    with pytest.raises(BadInput, match="The text is empty"):
        made().tokenize(" ")


def test_a_vocabulary_without_ends_adds_none() -> None:
    model = RecurrentClassifier(Vocabulary(WORDS), width=4, hidden=2, attention_width=2)
    assert model.tokenize("a film").tokens == ["a", "film", "[EOS]"]
    plain = Vocabulary(WORDS, special={"pad": "[PAD]", "unk": "[UNK]"})
    assert RecurrentClassifier(plain, width=4, hidden=2).tokenize("a film").tokens == ["a", "film"]
