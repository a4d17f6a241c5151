"""What a statistic is: a measurement over a corpus that accumulates.

A class in `STATISTICS` also has `empty(frame)`, which makes one that has seen nothing, `needs`, `caption`, `reads`
(how it is shown a long text), and `second_pass`: None, or the class that reads the corpus once more when the first has
seen all of it, made by `after(first, frame)`.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from ..errors import BadInput
from .batch import Batch, Frame, Pairs

# One layer's attention on a batch, with the sums that several statistics share, each worked out once.


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
        real = self.batch.at_queries(self.batch.real).unsqueeze(1).to(self.weights.device)
        return self.weights.sum(-1).masked_fill(~real, 0.0)

    @cached_property
    def columns(self) -> Float[Tensor, "sentence head key"]:
        """What each column gets from all rows, null attention included."""
        real = self.batch.at_queries(self.batch.real).to(self.weights.device)
        sums = (real.to(self.weights)[:, None, None] @ self.weights).squeeze(2)
        if not sums.sum().isnan():
            return sums
        return self.weights.masked_fill(~real[:, None, :, None], 0.0).sum(-2)

    @cached_property
    def offered(self) -> Float[Tensor, "sentence head key"]:
        """What the rows that see each column give to all that counts."""
        return self.given @ self.batch.kept.to(self.given)

    @cached_property
    def received_alike(self) -> Float[Tensor, "sentence head key"]:
        """What each column would get if every row shared what it gives alike."""
        return self.given @ self.batch.shared_alike.to(self.given)

    @cached_property
    def linked(self) -> Float[Tensor, "pair head"]:
        """What counts of the weights of pairs that a dependency links."""
        return self.along(self.batch.links.pairs)

    def received_by(self, keys: Bool[Tensor, "sentence token"]) -> Float64[Tensor, " head"]:
        """What all rows together give to these columns, null attention included."""
        return (self.columns * keys.unsqueeze(1).to(self.columns)).double().sum((0, 2))

    def along(self, pairs: Pairs) -> Float[Tensor, "pair head"]:
        """What counts of the weights of these pairs."""
        return self.kept[pairs.sentence, :, pairs.query, pairs.key]


@runtime_checkable
class Watcher(Protocol):
    """What can be shown a layer of a batch."""

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""


# Sums that can be split and merged: float64, with labels, and never a division before the end.


ROWS: Literal["rows"] = "rows"
Reads = Literal["rows"] | tuple[str, ...] | None
"""What a statistic reads of a layer, which says how it is shown one of a long text (showing.py).

`ROWS`: its sums add up over queries, so it may be shown some queries at a time. Names of sums of `LayerAttention`, such
as "given" and "received": they are all it reads, with what the batch knows of tokens. None: the map of a whole layer.
"""

Need = Literal["tags", "parse"]
TAGS: Need = "tags"
PARSE: Need = "parse"
"""What a statistic may need of every sentence: parts of speech; heads and relations."""
SOLE = ("",)
"""The label of a tally that has only one."""


@dataclass(eq=False)
class Tally:
    """One sum, or an array of sums, for each label; two tallies add up whatever labels each has seen."""

    labels: tuple[str, ...]
    sums: Float64[Tensor, "label *rest"]

    @classmethod
    def zeros(cls, labels: Sequence[str], *shape: int) -> "Tally":
        """A tally of nothing yet."""
        return cls(tuple(labels), torch.zeros(len(labels), *shape, dtype=torch.float64))

    def plus(self, other: "Tally") -> "Tally":
        """Both together; labels that only one has are kept, in order of first appearance."""
        if self.labels == other.labels:
            return Tally(self.labels, self.sums + other.sums)
        labels = tuple(dict.fromkeys(self.labels + other.labels))
        place = {label: position for position, label in enumerate(labels)}
        joined = Tally.zeros(labels, *self.sums.shape[1:])
        for tally in (self, other):
            joined.sums[[place[label] for label in tally.labels]] += tally.sums
        return joined

    def blank(self) -> "Tally":
        """The same labels with nothing counted."""
        return Tally(self.labels, torch.zeros_like(self.sums))

    def add_rows(
        self, layer: int, labels: Int[Tensor, " row"], rows: Float[Tensor, "row head"] | Float64[Tensor, "row head"]
    ) -> None:
        """Add each row of numbers, one for each head, to the label it belongs to; labels past the last are no label."""
        unlabelled = torch.zeros(len(self.labels) + 1, rows.shape[1], dtype=torch.float64)
        self.sums[:, layer] += unlabelled.index_add_(0, labels, rows.to("cpu", torch.float64))[:-1]

    def add(self, layer: int, numbers: Float[Tensor, " head"] | Float64[Tensor, " head"]) -> None:
        """Add one number for each head to the only label."""
        self.sums[0, layer] += numbers.to("cpu", torch.float64)

    def count(self, labels: Int[Tensor, " row"], weights: Float64[Tensor, " row"] | None = None) -> None:
        """Count labels once for the corpus, not for each layer and head; labels past the last are no label."""
        counts = torch.bincount(labels, weights=weights, minlength=len(self.labels) + 1)
        self.sums[:, 0, 0] += counts[: len(self.labels)].to(torch.float64)


Labels = Sequence[str] | Callable[[Frame], Sequence[str]]
"""The labels of a tally, or how they follow from the frame of a shard."""


def per_head(labels: Labels = SOLE, *shape: int) -> Any:
    """A field of a statistic: a tally of one sum, or an array of sums, for each label, layer and head."""
    return field(metadata={"labels": labels, "shape": lambda frame: (frame.layers, frame.heads, *shape)})


def per_corpus(labels: Labels = SOLE, *shape: int) -> Any:
    """A field of a statistic: a tally that is the same for every layer and head."""
    return field(metadata={"labels": labels, "shape": lambda _: shape or (1, 1)})


def no_counts(kind: type["Additive"], frame: Frame) -> dict[str, Tally]:
    """The tallies that the fields of a statistic ask for, with nothing counted."""
    tallies = {}
    for entry in fields(kind):
        if entry.metadata:
            labels = entry.metadata["labels"]
            tallies[entry.name] = Tally.zeros(
                labels(frame) if callable(labels) else labels, *entry.metadata["shape"](frame)
            )
    return tallies


Summed = TypeVar("Summed", bound="Additive")


@dataclass
class Additive:
    """A statistic that is nothing but tallies: merging adds them, and its state lists them."""

    needs: ClassVar[tuple[Need, ...]] = ()
    reads: ClassVar[Reads] = None
    errors: ClassVar[Mapping[str, str]] = {"value": "error"}
    second_pass: ClassVar[type[Any] | None] = None

    @classmethod
    def empty(cls: type[Summed], frame: Frame) -> Summed:
        """One that has seen nothing."""
        return cls(**no_counts(cls, frame))

    def merge(self, other: "Additive") -> None:
        """Take in what another has counted."""
        for entry in fields(self):
            mine, theirs = getattr(self, entry.name), getattr(other, entry.name)
            if isinstance(mine, Tally):
                setattr(self, entry.name, mine.plus(theirs))

    def blank(self: Summed) -> Summed:
        """The same labels with nothing counted."""
        found = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return type(self)(
            **{name: value.blank() if isinstance(value, Tally) else value for name, value in found.items()}
        )

    def state(self) -> dict[str, Any]:
        """What has been counted, as plain data and tensors."""
        found = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {
            name: {"labels": value.labels, "sums": value.sums} if isinstance(value, Tally) else value
            for name, value in found.items()
        }

    @classmethod
    def from_state(cls: type[Summed], state: Mapping[str, Any]) -> Summed:
        """Read what `state` gave, unless it was given by another version of the class."""
        known = {entry.name for entry in fields(cls)}
        if changed := sorted(known ^ set(state)):
            raise BadInput(
                f"What was saved of {cls.__name__} does not fit it any more ({', '.join(changed)}): it was changed"
                " since, so begin again in another folder."
            )
        return cls(**{name: Tally(**value) if isinstance(value, dict) else value for name, value in state.items()})


@dataclass(frozen=True)
class Caption:
    """What a statistic is called on a screen, in which unit it is, and what it means in one sentence."""

    title: str
    unit: str = ""
    meaning: str = ""


@runtime_checkable
class Accumulator(Watcher, Protocol):
    """What takes in one layer of one batch at a time, and whose parts merge to the whole."""

    def merge(self, other: Any) -> None:
        """Take in what another of its kind has seen."""

    def blank(self) -> Any:
        """The same labels with nothing seen."""

    def state(self) -> dict[str, Any]:
        """What has been seen, as plain data and tensors, for `from_state` of its class."""


@runtime_checkable
class Statistic(Accumulator, Protocol):
    """What has figures to give: all statistics, after their last pass."""

    errors: ClassVar[Mapping[str, str]]
    """The columns that get a standard error, and what the column of the error is called."""

    def result(self) -> pd.DataFrame:
        """The table: layer, head, what tells rows apart, value, and what stands beside it."""

    def by_layer(self) -> pd.DataFrame | None:
        """The table with one row for each layer, where that means something."""


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
