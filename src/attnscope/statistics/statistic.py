"""What a statistic is: a measurement over a corpus that accumulates.

A class in `STATISTICS` also has `empty(frame)`, which makes one that has seen nothing, `needs`, `caption`, and
`second_pass`: None, or the class that reads the corpus once more when the first has seen all of it, made by
`after(first, frame)`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import pandas as pd

from .layer import LayerAttention

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
