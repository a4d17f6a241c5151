"""What a benchmark reports: ratios inside one run, medians of runs that take turns."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One comparison: how often ours fits into the time of the other, or what share of it ours takes."""

    case: str
    other: str
    ours: float
    others: float
    ratio: float
    """The other's over ours, unless `goal` is a share: then ours over the other's."""
    goal: str
    met: bool | None
    note: str = ""
    unit: str = "s"

    def to_dict(self) -> dict[str, Any]:
        """The figure as plain data, ready for JSON."""
        return asdict(self)


def faster(case: str, other: str, ours: float, others: float, goal: int | float | None, note: str = "") -> Figure:
    """Ours against a slower other: the ratio should be at least the goal."""
    ratio = others / ours
    return Figure(case, other, ours, others, ratio, "" if goal is None else f">= {goal:g}x", _met(goal, ratio), note)


def share(case: str, other: str, ours: float, others: float, goal: float, note: str = "", unit: str = "s") -> Figure:
    """Ours as a part of what must be done anyway: the share should be at most the goal."""
    return Figure(case, other, ours, others, ours / others, f"<= {goal:.1%}", ours / others <= goal, note, unit)


def _met(goal: int | float | None, ratio: float) -> bool | None:
    return None if goal is None else ratio >= goal


def table_of(figures: Sequence[Figure]) -> Table:
    """The figures as a table for the terminal."""
    table = Table("case", "against", "ours", "ratio", "goal", "met")
    for figure in figures:
        ratio = f"{figure.ratio:.2%}" if figure.goal.endswith("%") else f"{figure.ratio:,.1f}x"
        met = "" if figure.met is None else "yes" if figure.met else "no"
        table.add_row(figure.case, figure.other, f"{figure.ours:.4g} {figure.unit}", ratio, figure.goal, met)
    return table


def taking_turns(work: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """The median seconds of each piece of work, run by turns so that a busy moment hits all alike."""
    for run in work.values():
        run()  # once unmeasured: compilation, caches
    return seconds_by_turns(work, rounds)


def seconds_by_turns(work: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The same from the first run on: for what takes minutes, of which compilation is no part worth a name."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, run in work.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(times) for name, times in seconds.items()}
