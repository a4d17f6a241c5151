"""Which examples a step trains on: a pure function of the seed and the step, like lengths together."""

import math
from collections.abc import Sequence
from functools import lru_cache
from random import Random

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from ..errors import BadInput
from .data.packed import PackedTexts

BATCHES_SORTED = 32
"""How many batches are sorted by length together: enough to save padding, few enough that batches stay mixed."""


class Batches:
    """Batches of examples without end, in a new order in every epoch.

    An epoch has every example once, in batches of like length, which come in an order of their own. The last batch of
    an epoch may be smaller.

    >>> batches = Batches(lengths=[3, 9, 4, 8], size=2, seed=0)
    >>> len(batches), sorted(batches[0] + batches[1])
    (2, [0, 1, 2, 3])
    """

    def __init__(self, lengths: Sequence[int], size: int, seed: int) -> None:
        if not lengths:
            raise BadInput("There is no example to train on.")
        if size < 1:
            raise BadInput(f"A batch has at least one example, not {size}.")
        self.lengths, self.size, self.seed = tuple(lengths), size, seed
        self._epoch = lru_cache(maxsize=1)(self._ordered)

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return math.ceil(len(self.lengths) / self.size)

    def __getitem__(self, step: int) -> list[int]:
        """The numbers of the examples of a step."""
        epoch, turn = divmod(step, len(self))
        return self._epoch(epoch)[turn]

    def _ordered(self, epoch: int) -> list[list[int]]:
        dice = Random(f"{self.seed} {epoch}")
        order = list(range(len(self.lengths)))
        dice.shuffle(order)
        batches: list[list[int]] = []
        for start in range(0, len(order), BATCHES_SORTED * self.size):
            chunk = sorted(order[start : start + BATCHES_SORTED * self.size], key=self.lengths.__getitem__)
            batches += [chunk[first : first + self.size] for first in range(0, len(chunk), self.size)]
        dice.shuffle(batches)
        return batches


def order_of_epoch(seed: int, epoch: int, count: int) -> Int64[np.ndarray, " text"]:
    """The order in which a run of that seed sees the texts in an epoch, from 0."""
    return np.random.default_rng([seed, epoch]).permutation(count)


def in_order_of_length(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Numbers of texts in batches of like length, so that little is padded.

    >>> in_order_of_length([5, 2, 9], size=2)
    [[1, 0], [2]]
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [order[start : start + size] for start in range(0, len(order), size)]


# The texts of a step as tensors: a pure function of the seed and the step, in a new order in every epoch.


class TextBatches:
    """Batches of texts in classes without end; the last one of an epoch may be smaller.

    >>> batches = TextBatches(PackedTexts.of([[5, 7], [6], [8]], [1, 0, 1]), size=2, seed=0)
    >>> len(batches), [tuple(ids.shape) for ids, _, _ in (batches[0], batches[1])]
    (2, [(2, 2), (1, 1)])
    """

    def __init__(self, texts: PackedTexts, size: int, seed: int) -> None:
        if not len(texts):
            raise BadInput("There are no texts to learn from.")
        self.texts, self.size = texts, size
        self._order = lru_cache(maxsize=1)(lambda epoch: order_of_epoch(seed, epoch, len(texts)))
        self._labels = torch.from_numpy(texts.labels)

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return math.ceil(len(self.texts) / self.size)

    def __getitem__(
        self, step: int
    ) -> tuple[Int[Tensor, "text token"], Bool[Tensor, "text token"], Int[Tensor, " text"]]:
        """Words with padding behind the shorter texts, where words are, and classes."""
        epoch, place = divmod(step, len(self))
        chosen = self._order(epoch)[place * self.size : (place + 1) * self.size]
        ids, real = (torch.from_numpy(table) for table in self.texts.padded(chosen))
        return ids, real, self._labels[torch.from_numpy(chosen)]
