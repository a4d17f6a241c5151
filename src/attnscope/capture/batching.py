"""Texts of like length run together, and come back in the order given."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

Item = TypeVar("Item")
WINDOW = 8
"""How many batches of texts are read ahead to sort by length: long enough to save padding, short enough to stream."""


def windows(items: Iterable[Item], batch_size: int) -> Iterator[list[Item]]:
    """The items in runs of a few batches, read as they are needed."""
    iterator = iter(items)
    while window := list(islice(iterator, WINDOW * batch_size)):
        yield window


def by_length(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Positions grouped into batches of like length."""
    order = sorted(range(len(lengths)), key=lambda position: lengths[position])
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def padded(
    rows: Sequence[Int[Tensor, " _"]], padding: int
) -> tuple[Int[Tensor, "batch longest"], Int[Tensor, "batch longest"]]:
    """Rows as one batch, padded at the right, and the mask that marks what is real."""
    batch = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=padding)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True, padding_value=0)
    return batch, mask
