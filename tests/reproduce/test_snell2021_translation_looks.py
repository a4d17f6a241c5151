"""What translation models think, write and learn, on a language that is translated word for word."""

import itertools
import math

import numpy as np
import pytest
import sacrebleu
import torch

from attnscope.errors import BadInput
from attnscope.lab.models.bag_of_words import BagOfWords
from attnscope.lab.models.seq2seq import TRANSLATION, Seq2Seq, beam_search, greedy
from attnscope.lab.models.word_translation import WordTranslation
from attnscope.reproduce.snell2021.sentence_pairs import pair_batch, word_for_word
from attnscope.reproduce.snell2021.snapshots import (
    QUANTITIES,
    TranslationLook,
    bag_rows,
    corpus_bleu,
    quantity_rows,
    source_rows,
    token_accuracy,
    translation_rows,
    translations,
)
from attnscope.reproduce.snell2021.training import train_translation, train_translation_bag

TEXTS = word_for_word(words=6, shortest=2, longest=4, train=40, dev=5)


@pytest.fixture(scope="module")
def model() -> Seq2Seq:
    torch.manual_seed(0)
    made = Seq2Seq(TEXTS.vocabulary, **TRANSLATION, width=10).eval()
    # sharper than at the beginning, so that words and positions differ
    with torch.no_grad():
        for weights in made.parameters():
            weights.mul_(2.0)
    return made


def score(model: Seq2Seq, source: torch.Tensor, words: list[int]) -> float:
    """The log probability of an output, word by word."""
    begin = model.vocabulary.number("bos")
    logits = model(source, torch.tensor([[begin, *words[:-1]]]))
    return float(logits.log_softmax(-1)[0].gather(1, torch.tensor(words)[:, None]).sum())


@torch.no_grad()
def test_a_wide_beam_finds_the_best_of_all_outputs(model) -> None:
    """With as many beams as there are outputs, the highest mean log probability of all of them."""
    end, pad = (model.vocabulary.number(name) for name in ("eos", "pad"))
    words = [number for number in range(len(model.vocabulary)) if number != end]
    source = torch.tensor([TEXTS.dev.sources[0]])
    outputs = [[end]] + [[one, end] for one in words] + [list(two) for two in itertools.product(words, repeat=2)]
    best = max((output for output in outputs if pad not in output), key=lambda o: score(model, source, o) / len(o))
    real = torch.ones_like(source).bool()
    assert beam_search(model, source, real, beams=300, longest=2) == [[word for word in best if word != end]]


@torch.no_grad()
def test_beams_of_a_padded_batch_are_those_one_by_one(model) -> None:
    batch = pair_batch(TEXTS.vocabulary, TEXTS.dev, range(5))
    together = beam_search(model, batch.source, batch.real, beams=3, longest=6)
    alone = [
        beam_search(model, torch.tensor([source]), torch.ones(1, len(source)).bool(), beams=3, longest=6)[0]
        for source in TEXTS.dev.sources
    ]
    assert together == alone


@torch.no_grad()
def test_greedy_is_the_loop(model) -> None:
    end, pad = (model.vocabulary.number(name) for name in ("eos", "pad"))
    for source in TEXTS.dev.sources:
        words, expected = [model.vocabulary.number("bos")], []
        while len(expected) < 6:
            logits = model(torch.tensor([source]), torch.tensor([words]))[0, -1]
            logits[pad] = -torch.inf  # what is no word is never written
            word = int(logits.argmax())
            if word == end:
                break
            words.append(word)
            expected.append(word)
        found = greedy(model, torch.tensor([source]), torch.ones(1, len(source)).bool(), longest=6)
        assert found == [expected]


def test_no_beams_is_told(model) -> None:
    with pytest.raises(BadInput, match="at least one beam"):
        beam_search(model, torch.zeros(1, 1).long(), torch.ones(1, 1).bool(), beams=0)


def test_bleu_is_sacrebleus() -> None:
    written = ["A man rides a red bicycle .", "Two dogs run on the beach.", "the cat"]
    references = ["A man is riding a red bike.", "Two dogs run along the beach.", "The cat sleeps."]
    assert corpus_bleu(written, references) == sacrebleu.corpus_bleu(written, [references]).score
    assert corpus_bleu(references, references) == pytest.approx(100)
    with pytest.raises(BadInput, match="a reference to each"):
        corpus_bleu(written, references[:2])


@torch.no_grad()
def test_rows_are_words_in_their_order_whatever_the_batches(model) -> None:
    real = source_rows(TEXTS.dev)
    found = {name: quantity_rows(model, TEXTS.dev, QUANTITIES[name]) for name in ("attention", "lexical", "saliency")}
    row = 0
    for number, (source, target) in enumerate(zip(TEXTS.dev.sources, TEXTS.dev.targets, strict=True)):
        batch = pair_batch(TEXTS.vocabulary, TEXTS.dev, [number])
        alone = {name: QUANTITIES[name](model, batch)[0] for name in found}
        for step in range(len(target)):
            assert real[row].tolist() == [place < len(source) for place in range(real.shape[1])]
            for name, table in found.items():
                torch.testing.assert_close(table[row, : len(source)], alone[name][step], atol=1e-5, rtol=1e-4)
                assert (table[row, len(source) :] == 0).all()
            row += 1
    assert row == len(real)
    torch.testing.assert_close(found["attention"].sum(1), torch.ones(row))


def test_saliency_is_the_slope_of_the_right_words_log_probability() -> None:
    torch.manual_seed(1)
    made = Seq2Seq(TEXTS.vocabulary, **TRANSLATION, width=6).double().eval()
    batch = pair_batch(TEXTS.vocabulary, TEXTS.dev, [0, 1])
    found = QUANTITIES["saliency"](made, batch)

    def told(factors: torch.Tensor) -> torch.Tensor:
        vectors = made.embeddings(batch.source) * factors[..., None]
        logits = made.decode(made.encode(batch.source, batch.real, vectors), batch.target_in).logits
        return logits.log_softmax(-1).gather(-1, batch.target_out[..., None]).squeeze(-1)

    small = 1e-6
    with torch.no_grad():
        for place in range(batch.source.shape[1]):
            nudge = torch.zeros_like(batch.source, dtype=torch.float64)
            nudge[:, place] = small
            slope = (told(1 + nudge) - told(1 - nudge)) / (2 * small)
            inside = batch.words & batch.real[:, place, None]
            torch.testing.assert_close(found[:, :, place][inside], slope[inside], atol=1e-7, rtol=1e-5)


def test_the_best_attention_is_no_worse_than_any_other() -> None:
    torch.manual_seed(2)
    made = Seq2Seq(TEXTS.vocabulary, **TRANSLATION, width=6, output="sum").double().eval()
    batch = pair_batch(TEXTS.vocabulary, TEXTS.dev, [0, 1, 2])

    def losses(attention: torch.Tensor | None) -> torch.Tensor:
        logits = made(batch.source, batch.target_in, batch.real, attention)
        return -logits.log_softmax(-1).gather(-1, batch.target_out[..., None]).squeeze(-1)[batch.words]

    with torch.no_grad():
        best = losses(QUANTITIES["optimal"](made, batch).double()[:, None])
        assert (best <= losses(None) + 1e-3).all()
        alone = -QUANTITIES["lexical"](made, batch).masked_fill(~batch.real[:, None], -math.inf).max(-1).values
        assert (best <= alone[batch.words] + 1e-3).all()
    with pytest.raises(BadInput, match=r"Eq\. 31"):
        QUANTITIES["optimal"](Seq2Seq(TEXTS.vocabulary, width=6), batch)


def test_tables_of_the_proxy_and_of_counts_are_theirs_word_by_word() -> None:
    torch.manual_seed(3)
    words = len(TEXTS.vocabulary)
    bag = BagOfWords(words, words, width=5)
    counted = WordTranslation.learned(TEXTS.train.sources, TEXTS.train.targets, words, words)
    by_bag, by_counts = bag_rows(bag, TEXTS.vocabulary, TEXTS.dev), translation_rows(counted, TEXTS.dev)
    logs, shares = bag.word_weights().log_softmax(-1), counted.translation.toarray()
    row = 0
    for source, target in zip(TEXTS.dev.sources, TEXTS.dev.targets, strict=True):
        for word in target:
            expected = [[table[one, word] for one in source] for table in (logs.numpy(), shares)]
            np.testing.assert_allclose(by_bag[row, : len(source)], expected[0], rtol=1e-4)
            np.testing.assert_allclose(by_counts[row, : len(source)], expected[1])
            row += 1


def test_a_look_has_accuracy_and_bleu(model) -> None:
    shot = TranslationLook(model, TEXTS.dev, beams=2)(7)
    assert (shot.step, set(shot.values)) == (7, {"attention", "lexical"})
    assert shot.performance["bleu"] == corpus_bleu(translations(model, TEXTS.dev, 2), TEXTS.dev.references)
    assert 0 <= shot.performance["accuracy"] == token_accuracy(model, TEXTS.dev) <= 1


def test_trainings_learn_and_keep_their_best(tmp_path) -> None:
    torch.manual_seed(0)
    made = Seq2Seq(TEXTS.vocabulary, **{**TRANSLATION, "dropout": 0.0}, width=16)
    log = train_translation(made, TEXTS, tmp_path / "model", seed=0, steps=100, batch=4, every=25)
    losses = [row["loss"] for row in log if "loss" in row]
    assert losses[-1] < losses[0]
    looks = [row["validation"] for row in log if "validation" in row]
    assert token_accuracy(made, TEXTS.dev) == max(looks)
    bag = train_translation_bag(TEXTS, tmp_path / "bag", epochs=20, batch=4, width=32)
    # under a bag of words that has learned, most words are likeliest to come from their own source word
    rows, real = bag_rows(bag, TEXTS.vocabulary, TEXTS.train), source_rows(TEXTS.train)
    places = torch.cat([torch.arange(len(target)) for target in TEXTS.train.targets])
    right = rows.masked_fill(~real, -torch.inf).argmax(1) == places
    assert right.double().mean() > 0.6
