"""A data set of texts in one file, so that many workers need not prepare it each for itself."""

from pathlib import Path

import numpy as np
import torch

from ...engine import load_checkpoint, save_checkpoint
from ..vocabulary import Vocabulary
from .packed import ClassifiedTexts, PackedTexts

PARTS = ("train", "dev", "test")
ARRAYS = ("tokens", "starts", "labels")


def save_texts(path: Path, texts: ClassifiedTexts) -> None:
    """Write a data set, all at once."""
    vocabulary = texts.vocabulary
    save_checkpoint(
        path,
        {
            "name": texts.name,
            "classes": list(texts.classes),
            "words": list(vocabulary.words),
            "counts": None if vocabulary.counts is None else list(vocabulary.counts),
            "special": vocabulary.special,
            "parts": {
                part: {name: torch.from_numpy(getattr(getattr(texts, part), name)) for name in ARRAYS} for part in PARTS
            },
        },
    )


def load_texts(path: Path) -> ClassifiedTexts:
    """The data set that was written."""
    kept = load_checkpoint(path)
    vocabulary = Vocabulary(kept["words"], kept["counts"], kept["special"])
    parts = {part: PackedTexts(*(np.asarray(kept["parts"][part][name].numpy()) for name in ARRAYS)) for part in PARTS}
    return ClassifiedTexts(kept["name"], tuple(kept["classes"]), vocabulary, *(parts[part] for part in PARTS))
