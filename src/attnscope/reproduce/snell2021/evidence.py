"""What the claims are judged on: the tables that each stage gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from ..judging import Unmeasured


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that was measured; a table is empty where its stage was not run."""

    copying: pd.DataFrame
    """As `copying` gives it."""
    heads: pd.DataFrame
    """As `heads` gives it: kind, combination, heads, step, accuracy."""
    locality: pd.DataFrame
    """As `locality` gives it: seed, step, and the log-odds keyword, after, mean and last."""
    agreements: pd.DataFrame
    """data, part, seeds, pair, step, agreement, error, chance, tau: one row for each checkpoint."""
    contexts: pd.DataFrame
    """data, part, and the columns of `contexts_of`."""
    theory: Mapping[str, pd.DataFrame]
    """As `theory` gives them."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Why a data set was not run, by its name."""

    def curve(self, data: str, pair: str, part: str = "validation", seeds: str = "two") -> pd.DataFrame:
        """An agreement over the checkpoints of training."""
        table = self.agreements
        if len(table):
            chosen = (table["data"] == data) & (table["pair"] == pair)
            table = table[chosen & (table["part"] == part) & (table["seeds"] == seeds)]
        if table.empty:
            raise Unmeasured(self.missing.get(data, f"{data} was not run."))
        return table.sort_values("step")

    def best(self, data: str, pair: str, part: str = "validation", seeds: str = "two") -> "pd.Series[float]":
        """The checkpoint at which an agreement is highest, as the paper reports it."""
        curve = self.curve(data, pair, part, seeds)
        return curve.loc[curve["agreement"].idxmax()]

    def context(self, data: str, pair: str, part: str = "validation", measure: str = "accuracy") -> "pd.Series[float]":
        """ξ of an agreement."""
        table = self.contexts
        if len(table):
            chosen = (table["data"] == data) & (table["pair"] == pair) & (table["seeds"] == "two")
            chosen &= (table["part"] == part) & (table["by"] == "agreement") & (table["measure"] == measure)
            table = table[chosen]
        if table.empty:
            raise Unmeasured(self.missing.get(data, f"{data} was not run."))
        return table.iloc[0]
