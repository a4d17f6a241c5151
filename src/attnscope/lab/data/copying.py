"""Endless sequences to copy: permutations of the same words, some of many words, mixtures, and a fixed reordering.

The tasks of Snell et al. 2021, sections 3.3 and 6.2. A source is x and the end, an output begins with bos and is x.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ...errors import BadInput
from ..vocabulary import FRAMED, Vocabulary


@dataclass(frozen=True)
class CopyingTask:
    """Sequences of `length` different words; each is drawn from one of `sets` disjoint sets of `words` words.

    With as many words as places, every sequence of a set holds the same words, in another order. `reordered` is None
    for copying, or the seed of the fixed permutation π in which the output names the words (Eq. 25).

    >>> sources, read, right = CopyingTask(length=3, words=5).batch(2, seed=0, step=0)
    >>> tuple(sources.shape), tuple(read.shape), bool((read[:, 1:] == right[:, :-1]).all())
    ((2, 4), (2, 4), True)
    """

    length: int = 40
    words: int = 60
    sets: int = 1
    reordered: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.length <= self.words:
            raise BadInput(
                f"A sequence has different words, so its length lies between 1 and the number of words: {self.length}"
                f" is not in 1 to {self.words}."
            )
        if self.sets < 1:
            raise BadInput(f"Words are drawn from at least 1 set, not {self.sets}.")

    @property
    def vocabulary(self) -> Vocabulary:
        """The words, named by their numbers from 1, set after set."""
        return Vocabulary([str(number + 1) for number in range(self.words * self.sets)], special=FRAMED)

    @property
    def order(self) -> Int[np.ndarray, " length"]:
        """π: the place in the source that each place of the output names, from zero."""
        places = np.arange(self.length)
        return places if self.reordered is None else np.random.default_rng(self.reordered).permutation(places)

    def batch(
        self, rows: int, seed: int, step: int
    ) -> tuple[Int[Tensor, "row place"], Int[Tensor, "row place"], Int[Tensor, "row place"]]:
        """Sources, what the decoder reads, and what it is to say; they depend on the seed and the step alone.

        Tasks with the same words have the same sources, whatever the order of their outputs.
        """
        random = np.random.default_rng([seed, step])
        sets = random.integers(self.sets, size=(rows, 1))
        # Ranks of random numbers are a random permutation; its first places are a random choice in random order.
        drawn = random.random((rows, self.words)).argsort(1)[:, : self.length]
        words = drawn + sets * self.words + len(FRAMED)
        specials = list(FRAMED)
        begin, end = (np.full((rows, 1), specials.index(name)) for name in ("bos", "eos"))
        named = words[:, self.order]
        tables = (np.hstack(pair) for pair in ((words, end), (begin, named), (named, end)))
        sources, read, right = (torch.from_numpy(table) for table in tables)
        return sources, read, right


def copying_task(name: str, length: int = 40) -> CopyingTask:
    """One of the paper's tasks, by its name.

    They are permutations of the `same` words, a `choice` of words out of half as many again (40 of 60), a `mixture` of
    two sets (1-40 or 41-80), and such a choice `reordered`, always in the same way.
    """
    tasks = {
        "same": CopyingTask(length, length),
        "choice": CopyingTask(length, length * 3 // 2),
        "mixture": CopyingTask(length, length, sets=2),
        "reordered": CopyingTask(length, length * 3 // 2, reordered=0),
    }
    if name not in tasks:
        raise BadInput(f"There is no copying task {name!r}: choose {', '.join(tasks)}.")
    return tasks[name]
