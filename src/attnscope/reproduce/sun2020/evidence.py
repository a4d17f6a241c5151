"""What the claims are judged on: accuracies, the scores of words, the made-up sentences, and what drove the scores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..claims import Unmeasured, rows_with
from .paper import TITLES
from .words import NEGATIVE, NEUTRAL, POSITIVE, RankSum, comparisons, rank_sum, score_summary

EVERY = "in every seed"


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that was measured."""

    accuracies: pd.DataFrame
    """data, variant, scaling (λ), seed, penalty, test_accuracy and what `TrainedRun.row` has."""
    words: pd.DataFrame
    """The rows of `word_table`, with the settings of their run."""
    made_up: pd.DataFrame
    """Of each run on made-up sentences, at its end: set, seed, penalty, dot products, V·W, mean scores."""
    skewed: pd.DataFrame
    """share of positive sentences, seed, V·W at the end."""
    signs: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The rows of `signs_of`."""
    kept: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """The tables "scores" and "comparisons" where the words themselves are not there."""

    def scores(self, **run: Any) -> pd.DataFrame:
        """The median and quartiles of each score over the words of each kind, in the runs with these labels."""
        return self._in_short("scores", score_summary, run)

    def comparisons(self, **run: Any) -> pd.DataFrame:
        """How kinds of words compare in the runs with these labels, with V·W of each."""
        return self._in_short("comparisons", comparisons, run)

    def _in_short(
        self, name: str, made_of: Callable[[pd.DataFrame], pd.DataFrame], run: Mapping[str, Any]
    ) -> pd.DataFrame:
        if name in self.kept:
            return rows_with(self.kept[name], **run)
        words = rows_with(self.words, **run)
        return words if words.empty else made_of(words)

    def accuracy(self, data: str, variant: str, scaling: float, penalty: float = 0.0) -> "pd.Series[float]":
        """The accuracy on test texts of each seed."""
        rows = rows_with(self.accuracies, data=data, variant=variant, scaling=scaling, penalty=penalty)
        if rows.empty:
            raise Unmeasured(f"{TITLES[data]} is not run at this scale.")
        return rows.set_index("seed")["test_accuracy"]

    def runs(self, data: Sequence[str], variant: str, scaling: float, penalty: float = 0.0) -> "list[WordsOfRun]":
        """The words of each run on these data sets, as far as they were run."""
        words = self.words[self.words["data"].isin(data)]
        rows = rows_with(words, variant=variant, scaling=scaling, penalty=penalty)
        if rows.empty:
            sets = [TITLES[name] for name in data]
            raise Unmeasured(f"{' and '.join(sets)} {'is' if len(sets) == 1 else 'are'} not run at this scale.")
        groups = rows.groupby(["data", "seed"], sort=False)
        return [WordsOfRun(str(name), int(seed), group) for (name, seed), group in groups]


@dataclass(frozen=True, eq=False)
class WordsOfRun:
    """The words of one run."""

    data: str
    seed: int
    table: pd.DataFrame

    @property
    def title(self) -> str:
        """The run in few words."""
        return f"{TITLES[self.data]} seed {self.seed}"

    @property
    def context_dot_output(self) -> float:
        """V·W."""
        return float(self.table["context_dot_output"].iloc[0])

    def of(self, kind: str, column: str) -> np.ndarray:
        """A column for the words of a kind, as far as it is known."""
        values: np.ndarray = self.table.loc[self.table["kind"] == kind, column].dropna().to_numpy(dtype=float)
        if not len(values):
            raise Unmeasured(f"{self.title} has no words of the kind “{kind}”.")
        return values

    @property
    def gap(self) -> RankSum:
        """Positive words against negative ones by attention score."""
        return rank_sum(self.of(POSITIVE, "attention"), self.of(NEGATIVE, "attention"))


# What drives the scores along training: whether each term has the sign that the paper gives it.


SAME_SIDE, BOTH_UP = {POSITIVE: 1, NEGATIVE: -1}, {POSITIVE: 1, NEGATIVE: 1}
SIGNS: Mapping[str, Mapping[str, int]] = {"B": SAME_SIDE, "C": SAME_SIDE, "E": BOTH_UP, "F": BOTH_UP}
"""Of each term by the kind of word (sections 4.1 and 4.2). B = |W|² π / m and E = |V|² ρ / (m λ²) have the signs of π
and ρ. All are about zero for neutral words."""


def signs_of(curves: pd.DataFrame, data: str) -> pd.DataFrame:
    """For each run, term and polar kind: at how many looks behind the first step its mean had the paper's sign.

    `curves` has the columns run, step, quantity, group and value. `expected` is the sign, `right` the share of the
    looks that had it, `last` the value at the end, and `neutral` how large the term is for neutral words, over the
    smaller of both polar kinds (the median over the looks).
    """
    rows = []
    seen = curves[(curves["step"] > 0) & curves["quantity"].isin(SIGNS)]
    for (run, term), table in seen.groupby(["run", "quantity"], sort=False):
        values = table.pivot_table(index="step", columns="group", values="value").sort_index()
        neutral = values[NEUTRAL].abs() / values[[POSITIVE, NEGATIVE]].abs().min(axis=1)
        for kind, sign in SIGNS[str(term)].items():
            row = {"data": data, "run": run, "term": term, "kind": kind, "expected": sign, "looks": len(values)}
            row |= {"right": float((sign * values[kind] >= 0).mean()), "last": float(values[kind].iloc[-1])}
            rows.append(row | {"neutral": float(neutral.median())})
    return pd.DataFrame(rows)
