"""Texts as numbers of words, all in one row: what a loop over many runs reads without touching Python objects."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Int32, Int64

from ...engine import load_checkpoint, save_checkpoint
from ...errors import BadInput
from ..vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class PackedTexts:
    """The words of all texts behind each other: text t is `tokens[starts[t] : starts[t + 1]]`, of class `labels[t]`."""

    tokens: Int32[np.ndarray, " token"]
    starts: Int64[np.ndarray, " text_and_end"]
    labels: Int64[np.ndarray, " text"]

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]], labels: Sequence[int]) -> "PackedTexts":
        """From the numbers of the words of each text.

        >>> packed = PackedTexts.of([[5, 7], [6]], [1, 0])
        >>> packed.tokens.tolist(), packed.starts.tolist(), [text.tolist() for text in packed]
        ([5, 7, 6], [0, 2, 3], [[5, 7], [6]])
        """
        if len(texts) != len(labels):
            raise BadInput(f"There are {len(texts)} texts and {len(labels)} labels: give one to each.")
        if empty := [number for number, text in enumerate(texts) if not len(text)]:
            raise BadInput(f"Text {empty[0]} has no words: leave it out.")
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=starts[1:])
        tokens = np.array([token for text in texts for token in text], np.int32)
        return cls(tokens, starts, np.array(labels, np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Int32[np.ndarray, " token"]]:
        return iter(np.split(self.tokens, self.starts[1:-1]))

    def padded(
        self, numbers: Int64[np.ndarray, " chosen"]
    ) -> tuple[Int64[np.ndarray, "chosen longest"], Bool[np.ndarray, "chosen longest"]]:
        """The texts of these numbers as one table with zeros behind the shorter ones, and where words are.

        >>> PackedTexts.of([[5, 7], [6]], [1, 0]).padded(np.array([1, 0]))[0].tolist()
        [[6, 0], [5, 7]]
        """
        lengths = self.lengths[numbers]
        real = np.arange(lengths.max()) < lengths[:, None]
        table = np.zeros(real.shape, np.int64)
        places = self.starts[numbers][:, None] + np.arange(real.shape[1])
        table[real] = self.tokens[places[real]]
        return table, real

    @property
    def fingerprint(self) -> str:
        """What tells these texts and classes from others, in their order."""
        tables = (self.tokens, self.starts, self.labels)
        return hashlib.sha256(b"".join(table.tobytes() for table in tables)).hexdigest()

    @property
    def lengths(self) -> Int64[np.ndarray, " text"]:
        """How many words each text has."""
        return np.diff(self.starts)


@dataclass(frozen=True, eq=False)
class ClassifiedTexts:
    """A data set of texts in two classes or more: what is learned from, chosen by and tested on."""

    name: str
    classes: tuple[str, ...]
    """Negative before positive where there are two."""
    vocabulary: Vocabulary
    train: PackedTexts
    dev: PackedTexts
    test: PackedTexts


# A data set of texts in one file, so that many workers need not prepare it each for itself.


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
