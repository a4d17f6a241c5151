"""Endless sequences in two classes: the positive ones hold a keyword, once (Snell et al. 2021, section 6.1)."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ...errors import BadInput
from ..vocabulary import Vocabulary

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]"}
"""A sequence begins and ends with words, so that its last state is the state at a word."""


@dataclass(frozen=True)
class KeywordTask:
    """Sequences of `length` words out of `words`, drawn with replacement; the keyword is "1".

    >>> ids, classes, places = KeywordTask(length=5, words=4).batch(6, seed=0, step=0)
    >>> tuple(ids.shape), classes.tolist(), bool((places[classes == 0] == -1).all())
    ((6, 5), [1, 1, 1, 0, 0, 0], True)
    """

    length: int = 40
    words: int = 40

    def __post_init__(self) -> None:
        if self.length < 1 or self.words < 2:
            raise BadInput(f"A sequence has a word and a language two: length={self.length}, words={self.words}.")

    @property
    def vocabulary(self) -> Vocabulary:
        """The words, named by their numbers; the keyword is the first."""
        return Vocabulary([str(number + 1) for number in range(self.words)], special=SPECIAL)

    def batch(
        self, rows: int, seed: int, step: int
    ) -> tuple[Int[Tensor, "row place"], Int[Tensor, " row"], Int[Tensor, " row"]]:
        """Sequences, their classes (half of them 1, first), and the keyword's place, -1 where there is none.

        They depend on the seed and the step alone. Words that are not the keyword are uniform over the others, which is
        what the paper's rejection of sequences gives: given how often the keyword appears, the others stay uniform.
        """
        random = np.random.default_rng([seed, step])
        ids = random.integers(1, self.words, (rows, self.length)) + len(SPECIAL)
        classes = (np.arange(rows) < rows - rows // 2).astype(np.int64)
        places = np.where(classes == 1, random.integers(self.length, size=rows), -1)
        positive = np.flatnonzero(classes)
        ids[positive, places[positive]] = len(SPECIAL)
        return torch.from_numpy(ids), torch.from_numpy(classes), torch.from_numpy(places)
