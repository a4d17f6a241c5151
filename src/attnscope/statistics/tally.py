"""Sums that can be split and merged: float64, with labels, and never a division before the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from ..errors import BadInput

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


Kind = TypeVar("Kind", bound="Additive")


@dataclass
class Additive:
    """A statistic that is nothing but tallies: merging adds them, and its state lists them."""

    def merge(self, other: "Additive") -> None:
        """Take in what another has counted."""
        for entry in fields(self):
            mine, theirs = getattr(self, entry.name), getattr(other, entry.name)
            if isinstance(mine, Tally):
                setattr(self, entry.name, mine.plus(theirs))

    def blank(self: Kind) -> Kind:
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
    def from_state(cls: type[Kind], state: Mapping[str, Any]) -> Kind:
        """Read what `state` gave, unless it was given by another version of the class."""
        known = {entry.name for entry in fields(cls)}
        if changed := sorted(known ^ set(state)):
            raise BadInput(
                f"What was saved of {cls.__name__} does not fit it any more ({', '.join(changed)}): it was changed"
                " since, so begin again in another folder."
            )
        return cls(**{name: Tally(**value) if isinstance(value, dict) else value for name, value in state.items()})
