"""Standard errors for every figure, by leaving out one group of shards at a time.

A shard is a run of neighbouring sentences, so sentences of one document mostly stay together (a delete-a-group
jackknife over blocks). Nothing is assumed of the statistic but that it merges.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from .statistic import Accumulator, Statistic

Kind = TypeVar("Kind", bound=Accumulator)


def merged(groups: Sequence[Kind], like: Kind | None = None) -> Kind:
    """All groups together, in their order; `like` gives the labels that shall be there in any case."""
    whole: Kind = (groups[0] if like is None else like).blank()
    for group in groups:
        whole.merge(group)
    return whole


def with_errors(
    groups: Sequence[Statistic], table_of: Callable[[Statistic], pd.DataFrame | None]
) -> pd.DataFrame | None:
    """The table of all groups together, with a standard error behind each column that has one; NaN for one group."""
    whole = merged(groups)
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
        before.append(merged([before[-1], group], whole))
    behind = [whole.blank()]
    for group in reversed(groups[1:]):
        behind.insert(0, merged([group, behind[0]], whole))
    return [merged([left, right], whole) for left, right in zip(before, behind, strict=True)]


def _jackknife(values: Sequence[np.ndarray]) -> np.ndarray | None:
    """The standard error out of the values with one group left out at a time."""
    if not values:
        return None
    stacked = np.stack(values)
    count = len(stacked)
    deviations = stacked - stacked.mean(0)
    spread: np.ndarray = np.sqrt((count - 1) / count * (deviations**2).sum(0))
    return spread
