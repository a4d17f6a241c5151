"""Training a recurrent classifier on texts of one's own: what is refused, and whose checkpoint is taken."""

from pathlib import Path

import pytest
import torch

from attnscope.errors import BadInput
from attnscope.lab.data import PackedTexts
from attnscope.lab.models import RecurrentClassifier
from attnscope.lab.recurrent_training import look_at, train_recurrent
from attnscope.lab.vocabulary import FRAMED, Vocabulary

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
