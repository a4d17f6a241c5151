"""A statistic that is a ratio of sums for each head: its tables, by head and by layer."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64
from torch import Tensor

from .tally import Additive


@dataclass(frozen=True, eq=False)
class Ratio:
    """What is divided in the end: two sums for each label, layer and head.

    `labels` are the columns that tell rows apart, one entry for each label; none where a head has one figure. `beside`
    are further columns, each with one entry for each label, or for each label, layer and head.
    """

    above: Float64[Tensor, "label layer head"]
    below: Float64[Tensor, "label layer head"]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    beside: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass
class RatioStatistic(Additive):
    """Tallies, and the ratio they make; a ratio over nothing is NaN."""

    needs: ClassVar[tuple[str, ...]] = ()
    errors: ClassVar[Mapping[str, str]] = {"value": "error"}
    second_pass: ClassVar[None] = None

    @abstractmethod
    def ratio(self) -> Ratio:
        """The sums to divide."""

    def result(self) -> pd.DataFrame:
        """The table: one row for each label, layer and head."""
        ratio = self.ratio()
        count, layers, heads = ratio.above.shape
        columns: dict[str, np.ndarray] = {
            "layer": _spread(torch.arange(layers).view(1, layers, 1), ratio.above),
            "head": _spread(torch.arange(heads).view(1, 1, heads), ratio.above),
        }
        for name, labels in ratio.labels.items():
            columns[name] = np.repeat(np.array(labels, dtype=object), layers * heads)
        columns["value"] = _spread(ratio.above / ratio.below, ratio.above)
        for name, numbers in ratio.beside.items():
            columns[name] = _spread(numbers.view(count, 1, 1) if numbers.ndim == 1 else numbers, ratio.above)
        return pd.DataFrame(columns).sort_values(["layer", "head"], kind="stable", ignore_index=True)

    def by_layer(self) -> pd.DataFrame | None:
        """One row for each label and layer: the ratio of sums over heads, and the mean of the heads' own ratios."""
        ratio = self.ratio()
        _, layers, _ = ratio.above.shape
        columns: dict[str, np.ndarray] = {"layer": np.tile(np.arange(layers), len(ratio.above))}
        for name, labels in ratio.labels.items():
            columns[name] = np.repeat(np.array(labels, dtype=object), layers)
        columns["value"] = (ratio.above.sum(-1) / ratio.below.sum(-1)).flatten().numpy()
        columns["mean_of_heads"] = (ratio.above / ratio.below).nanmean(-1).flatten().numpy()
        for name, numbers in ratio.beside.items():
            if numbers.ndim == 1:  # what is known of the corpus holds for every layer
                columns[name] = np.repeat(numbers.numpy(), layers)
        return pd.DataFrame(columns).sort_values("layer", kind="stable", ignore_index=True)


def _spread(numbers: Tensor, like: Float64[Tensor, "label layer head"]) -> np.ndarray:
    return numbers.expand(like.shape).flatten().numpy()
