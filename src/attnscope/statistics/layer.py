"""One layer's attention on a batch, with the sums that several statistics share, each worked out once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from .batch import Batch, Frame
from .pairs import Pairs
from .reading import Reading


@dataclass(frozen=True, eq=False)
class LayerAttention:
    """The weights of one layer on the sentences of a batch; rows of padding may hold anything."""

    batch: Batch
    layer: int
    weights: Float[Tensor, "sentence head query key"]

    @cached_property
    def kept(self) -> Float[Tensor, "sentence head query key"]:
        """The weights that count, 0 elsewhere."""
        mask = self.batch.kept.unsqueeze(1).to(self.weights.device)
        # a product is many times faster than a choice, which is needed only where a model makes NaN of padding
        product = self.weights * mask.to(self.weights.dtype)
        return torch.where(mask, self.weights, 0.0) if product.sum().isnan() else product

    @cached_property
    def given(self) -> Float[Tensor, "sentence head query"]:
        """How much of each row counts."""
        return self.kept.sum(-1)

    @cached_property
    def received(self) -> Float[Tensor, "sentence head key"]:
        """How much each column gets of what counts."""
        return self.kept.sum(-2)

    @cached_property
    def mass(self) -> Float64[Tensor, " head"]:
        """All that counts."""
        return self.given.double().sum((0, 2))

    @cached_property
    def rows(self) -> Float[Tensor, "sentence head query"]:
        """What each row sums to, null attention included: one, but for rounding."""
        return self.weights.sum(-1).masked_fill(~self.batch.real.unsqueeze(1).to(self.weights.device), 0.0)

    @cached_property
    def columns(self) -> Float[Tensor, "sentence head key"]:
        """What each column gets from all rows, null attention included."""
        real = self.batch.real.to(self.weights)
        sums = (real[:, None, None] @ self.weights).squeeze(2)
        if not sums.sum().isnan():
            return sums
        return self.weights.masked_fill(~self.batch.real[:, None, :, None].to(self.weights.device), 0.0).sum(-2)

    def received_by(self, keys: Bool[Tensor, "sentence token"]) -> Float64[Tensor, " head"]:
        """What all rows together give to these columns, null attention included."""
        return (self.columns * keys.unsqueeze(1).to(self.columns)).double().sum((0, 2))

    def along(self, pairs: Pairs) -> Float[Tensor, "pair head"]:
        """What counts of the weights of these pairs."""
        return self.kept[pairs.sentence, :, pairs.query, pairs.key]


# Shows a layer's attention to the statistics, a few sentences at a time so that the work stays small and near.


PART_ELEMENTS = {"cpu": 2**20, "cuda": 2**25}
"""Weights that are reduced together: on a CPU what stays in its cache, and keeps the memory beside the model small."""


@runtime_checkable
class Watcher(Protocol):
    """What can be shown a layer of a batch."""

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        ...


def observer(
    readings: Sequence[Reading], frame: Frame, statistics: Sequence[Watcher]
) -> Callable[[int, Float[Tensor, "text head query key"]], None]:
    """What is called with each layer of a batch, in order; the batch is laid out once, when its size is known."""
    parts: list[tuple[slice, Batch]] = []

    def observe(layer: int, weights: Float[Tensor, "text head query key"]) -> None:
        if not parts:
            elements = PART_ELEMENTS.get(weights.device.type, PART_ELEMENTS["cpu"])
            size = max(1, elements // weights[0].numel())
            starts = range(0, len(readings), size)
            parts.extend((slice(start, start + size), Batch(readings[start : start + size], frame)) for start in starts)
        if weights.device.type == "mps":  # it has no float64
            weights = weights.cpu()
        for chosen, part in parts:
            attention = LayerAttention(part, layer, weights[chosen, :, : part.longest, : part.longest].float())
            for statistic in statistics:
                statistic.update(attention)

    return observe
