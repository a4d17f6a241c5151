"""Training classifiers on texts of one's own: what is refused, whose checkpoint is taken, and what a proxy learns."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attnscope.errors import BadInput
from attnscope.lab.data import PackedTexts, toy_polarity
from attnscope.lab.models import RecurrentClassifier
from attnscope.lab.models.bag_of_words import logistic_words, word_shares
from attnscope.lab.vocabulary import FRAMED, Vocabulary
from attnscope.reproduce.snell2021.snapshots import look_at
from attnscope.reproduce.snell2021.training import mean_loss, train_bag, train_recurrent

WORDS = Vocabulary(["good", "bad", "film"], special=FRAMED)


def made(**settings: int) -> RecurrentClassifier:
    torch.manual_seed(0)
    return RecurrentClassifier(WORDS, **{"width": 4, "hidden": 3, "attention_width": 3, **settings})


def packed(labels: list[int]) -> PackedTexts:
    return PackedTexts.of([WORDS.encode(text.split()) for text in ("good film", "bad film", "good")], labels)


def test_a_checkpoint_is_of_its_own_texts_and_model(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint.safetensors")
    log = train_recurrent(made(), packed([1, 0, 1]), checkpoint, steps=3)
    assert train_recurrent(made(), packed([1, 0, 1]), checkpoint, steps=3) == log
    with pytest.raises(BadInput, match="belongs to another training"):
        train_recurrent(made(), packed([0, 1, 0]), checkpoint, steps=3)
    with pytest.raises(BadInput, match="belongs to another training"):
        train_recurrent(made(hidden=5), packed([1, 0, 1]), checkpoint, steps=3)


def test_what_cannot_be_learned_from_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="for negative and positive give 0 and 1"):
        train_recurrent(made(), packed([2, 1, 2]), tmp_path / "checkpoint", steps=3)
    with pytest.raises(BadInput, match="no texts"):
        train_recurrent(made(), PackedTexts.of([], []), tmp_path / "checkpoint", steps=3)
    with pytest.raises(BadInput, match="no quantity 'colour': choose of attention, lexical, saliency"):
        look_at(made(), packed([1, 0, 1]), ["colour"], 0)


def test_a_setting_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(BadInput, match="no setting 'widht': its settings are width, hidden"):
        made(widht=3)


def test_without_a_penalty_it_is_logistic_regression(tmp_path: Path) -> None:
    """A.10: both have the same optimum of the same convex loss, which has one here because the classes overlap."""
    random = np.random.default_rng(0)
    texts = [random.integers(0, 4, 6).tolist() for _ in range(400)]
    labels = [int(random.random() < 1 / (1 + np.exp(3 * (text.count(0) - text.count(1)) / 3))) for text in texts]
    packed = PackedTexts.of(texts, labels)
    regression = logistic_words(packed, packed, 4, strengths=[1e8])
    data = replace(toy_polarity(), train=packed, dev=packed)
    bag = train_bag(data, tmp_path / "checkpoint", epochs=150, rate=0.02, width=8, batch=400)
    shares = torch.from_numpy(word_shares(packed, 4).toarray())
    signs = torch.tensor(labels).double() * 2 - 1
    logits = shares @ torch.from_numpy(regression.weights) + regression.bias
    assert mean_loss(bag, packed) == pytest.approx(float(-(signs * logits).sigmoid().log().mean()), abs=1e-4)
    # shares sum to one, so that the weights are told up to a constant that the bias takes
    ours, theirs = bag.word_weights()[:4, 0].numpy(), regression.weights
    np.testing.assert_allclose(ours - ours.mean(), theirs - theirs.mean(), atol=0.1)
