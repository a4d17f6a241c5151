"""What the claims are judged on: the models of all seeds, what their sentences gave, and the classifier of Table 3."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from ..claims import Finding, Unmeasured
from .scoring import METHODS, Scored
from .tables import Cell, Correlations

NAMES = {
    "blank_out": "blank-out",
    "gradient": "input gradients",
    "gradient_sum": "the sum of input gradients",
    "cls": "by the row of [CLS]",
    "maximum": "by the maximum over sources",
}
"""What the tables are about, in words."""

Counts = dict[int, tuple[int, int]]
"""By attractors: how many verbs were right, and of how many."""


@dataclass(frozen=True, eq=False)
class Run:
    """One model: its seed, every figure of Tables 1 and 2, and how often it is right."""

    correlations: Correlations
    first_layers_apart: float
    """The largest difference of any token's share between rollout and flow at the first layer."""
    held_out: Counts
    """On sentences of the text it was trained on."""
    testing: Counts
    """On all test sentences."""

    @property
    def name(self) -> str:
        """The model in words."""
        return self.correlations.name


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that was measured."""

    runs: tuple[Run, ...]
    saturation: pd.DataFrame
    """By seed and layer."""
    evenness: pd.DataFrame
    """By seed, method and layer."""
    subjects: pd.DataFrame
    """By seed, attractors, method and layer."""
    sentiment: Correlations | str
    """Table 3, or the sentence that says why there is none."""

    @property
    def layers(self) -> int:
        """How many layers the agreement model has."""
        return int(self.saturation["layer"].max())

    def tables(self) -> pd.DataFrame:
        """Every figure of Tables 1 and 2, of all seeds."""
        return pd.concat([run.correlations.table() for run in self.runs], ignore_index=True)


def first_layers_apart(sentences: Sequence[Scored]) -> float:
    """The largest difference between rollout and flow at the first layer."""
    rollout, flow = METHODS.index("rollout"), METHODS.index("flow")
    return float(max((one.methods[rollout, 0] - one.methods[flow, 0]).abs().max().item() for one in sentences))


def rows_of(table: pd.DataFrame, layers: Sequence[int], method: str | None = None) -> pd.DataFrame:
    """The rows of a table at these layers, of this method."""
    table = table if method is None else table[table["method"] == method]
    return table[table["layer"].isin(list(layers))]


def headline(reference: str, method: str, layer: int) -> Cell:
    """The figure that the paper shows: dense ranks in the formula without ties, over all tokens."""
    return (reference, method, layer, "authors", "all")


def share(counts: Counts) -> float:
    """The share of right answers, over all attractors."""
    return sum(right for right, _ in counts.values()) / sum(of for _, of in counts.values())


def higher(
    runs: Sequence[Correlations], pairs: Sequence[tuple[Cell, Cell]], least: float = 0.0, note: str = ""
) -> Finding:
    """Whether the first of every pair is above the second in every run, the whole 95% interval by more than `least`.

    The interval is that of the difference when sentences are drawn again. What is shown of each run is the pair whose
    interval begins lowest.
    """
    shown, holds = [], True
    for run in runs:
        found = [(*run.difference(one, other), one) for one, other in pairs]
        if not found or any(math.isnan(apart) for apart, *_ in found):
            raise Unmeasured("Not every layer that is asked about has a figure here.")
        apart, low, high, cell = min(found, key=lambda item: item[1])
        holds &= low > least
        shown.append(f"{run.name} {apart:+.2f} [{low:.2f}, {high:.2f}] (layer {cell[2]}, {NAMES[cell[0]]})")
    return Finding("smallest difference: " + "; ".join(shown), holds, note)


def by_layer(runs: Sequence[Correlations], cell: Cell, layers: Sequence[int]) -> str:
    """The means of a cell at some layers, for each seed."""
    return "; ".join(
        f"{run.name}: {' '.join(_short(run.mean((*cell[:2], layer, *cell[3:]))) for layer in layers)}" for run in runs
    )


def _short(value: float) -> str:
    """A correlation as tables have it.

    >>> _short(0.694), _short(-0.11)
    ('.69', '-.11')
    """
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.2f}"
