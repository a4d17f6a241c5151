"""The texts of a step as tensors: a pure function of the seed and the step, in a new order in every epoch."""

import math
from functools import lru_cache

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ..errors import BadInput
from .batches import order_of_epoch
from .data.packed import PackedTexts


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
