"""What a statistic is: a measurement over a corpus that accumulates.

A class in `STATISTICS` also has `empty(frame)`, which makes one that has seen nothing, `needs`, `caption`, and
`second_pass`: None, or the class that reads the corpus once more when the first has seen all of it, made by
`after(first, frame)`.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64
from torch import Tensor

from .layer import LayerAttention
from .tally import Additive

TAGS, PARSE = "tags", "parse"
"""What a statistic may need of every sentence: parts of speech; heads and relations."""


@dataclass(frozen=True)
class Caption:
    """What a statistic is called on a screen, in which unit it is, and what it means in one sentence."""

    title: str
    unit: str = ""
    meaning: str = ""


@runtime_checkable
class Accumulator(Protocol):
    """What takes in one layer of one batch at a time, and whose parts merge to the whole."""

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        ...

    def merge(self, other: Any) -> None:
        """Take in what another of its kind has seen."""
        ...

    def blank(self) -> Any:
        """The same labels with nothing seen."""
        ...

    def state(self) -> dict[str, Any]:
        """What has been seen, as plain data and tensors, for `from_state` of its class."""
        ...


@runtime_checkable
class Statistic(Accumulator, Protocol):
    """What has figures to give: all statistics, after their last pass."""

    errors: ClassVar[Mapping[str, str]]
    """The columns that get a standard error, and what the column of the error is called."""

    def result(self) -> pd.DataFrame:
        """The table: layer, head, what tells rows apart, value, and what stands beside it."""
        ...

    def by_layer(self) -> pd.DataFrame | None:
        """The table with one row for each layer, where that means something."""
        ...


# A statistic that is a ratio of sums for each head: its tables, by head and by layer.


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


# Standard errors for every figure, by leaving out one group of shards at a time.
# A shard is a run of neighbouring sentences, so sentences of one document mostly stay together (a delete-a-group
# jackknife over blocks). Nothing is assumed of the statistic but that it merges.


Kind = TypeVar("Kind", bound=Accumulator)


def merge_all(groups: Sequence[Kind], like: Kind | None = None) -> Kind:
    """All groups together, in their order; `like` gives the labels that shall be there in any case."""
    whole: Kind = (groups[0] if like is None else like).blank()
    for group in groups:
        whole.merge(group)
    return whole


def with_errors(
    groups: Sequence[Statistic], table_of: Callable[[Statistic], pd.DataFrame | None]
) -> pd.DataFrame | None:
    """The table of all groups together, with a standard error behind each column that has one; NaN for one group."""
    whole = merge_all(groups)
    table = table_of(whole)
    if table is None:
        return None
    names = {column: error for column, error in whole.errors.items() if column in table}
    parts = [table_of(part) for part in _leaving_one_out(groups, whole)] if len(groups) > 1 and names else []
    for column, error in names.items():
        spread = _jackknife([part[column].to_numpy(dtype=float) for part in parts if part is not None])
        position = list(table.columns).index(column) + 1
        table.insert(position, error, np.full(len(table), np.nan) if spread is None else spread)
    if "error" not in table and "value" in table:
        table.insert(list(table.columns).index("value") + 1, "error", np.nan)
    return table


def _leaving_one_out(groups: Sequence[Kind], whole: Kind) -> list[Kind]:
    """Each time all groups but one: what stands before it and what stands behind it."""
    before = [whole.blank()]
    for group in groups[:-1]:
        before.append(merge_all([before[-1], group], whole))
    behind = [whole.blank()]
    for group in reversed(groups[1:]):
        behind.insert(0, merge_all([group, behind[0]], whole))
    return [merge_all([left, right], whole) for left, right in zip(before, behind, strict=True)]


def _jackknife(values: Sequence[np.ndarray]) -> np.ndarray | None:
    """The standard error out of the values with one group left out at a time."""
    if not values:
        return None
    stacked = np.stack(values)
    count = len(stacked)
    deviations = stacked - stacked.mean(0)
    spread: np.ndarray = np.sqrt((count - 1) / count * (deviations**2).sum(0))
    return spread
