"""What the claims are judged on: accuracies, the scores of words, and the made-up sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..claims import Unmeasured


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

    def accuracy(self, data: str, variant: str, scaling: float, penalty: float = 0.0) -> "pd.Series[float]":
        """The accuracy on test texts of each seed."""
        table = self.accuracies
        rows = table[
            (table["data"] == data)
            & (table["variant"] == variant)
            & (table["scaling"] == scaling)
            & (table["penalty"] == penalty)
        ]
        if rows.empty:
            raise Unmeasured(f"{data} is not run at this scale.")
        return rows.set_index("seed")["test_accuracy"]

    def runs(self, data: Sequence[str], variant: str, scaling: float, penalty: float = 0.0) -> "list[WordsOfRun]":
        """The words of each run on these data sets, as far as they were run."""
        table = self.words
        rows = table[
            table["data"].isin(data)
            & (table["variant"] == variant)
            & (table["scaling"] == scaling)
            & (table["penalty"] == penalty)
        ]
        if rows.empty:
            raise Unmeasured(f"{' and '.join(data)} are not run at this scale.")
        return [
            WordsOfRun(str(name), int(seed), group)
            for (name, seed), group in rows.groupby(["data", "seed"], sort=False)
        ]


@dataclass(frozen=True, eq=False)
class WordsOfRun:
    """The words of one run."""

    data: str
    seed: int
    table: pd.DataFrame

    @property
    def title(self) -> str:
        """The run in few letters."""
        return f"{self.data} seed {self.seed}"

    @property
    def context_dot_output(self) -> float:
        """V·W."""
        return float(self.table["context_dot_output"].iloc[0])

    def of(self, kind: str, column: str) -> np.ndarray:
        """A column for the words of a kind, as far as it is known."""
        values: np.ndarray = self.table.loc[self.table["kind"] == kind, column].dropna().to_numpy(dtype=float)
        if not len(values):
            raise Unmeasured(f"{self.title.capitalize()} has no words of the kind “{kind}”.")
        return values
