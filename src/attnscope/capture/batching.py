"""Texts of like length run together, and come back in the order given."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

Item = TypeVar("Item")
BATCHES_AHEAD = 8
"""How many batches of texts are read ahead to sort them by length: long enough to save padding."""
BYTES_AHEAD = 256_000_000
"""How much their records may take meanwhile, beyond one batch, since the first may be the last to run."""


def windows(items: Iterable[Item], batch_size: int, bytes_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """The items in runs of one to a few batches, read as they are needed."""
    window: list[Item] = []
    held = 0
    for item in items:
        cost = bytes_of(item)
        if len(window) >= batch_size and held + cost > BYTES_AHEAD:
            yield window
            window, held = [], 0
        window.append(item)
        held += cost
        if len(window) == BATCHES_AHEAD * batch_size:
            yield window
            window, held = [], 0
    if window:
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
