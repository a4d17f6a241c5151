"""Shows a layer's attention to the statistics, a few sentences at a time so that the work stays small and near."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from .batch import Batch, Frame
from .layer import LayerAttention
from .reading import Reading

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
