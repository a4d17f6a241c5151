"""The stages in the order of what matters most: all that is asked for is trained, or read where it is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from ..claims import Unmeasured
from .classification import classification
from .classification_data import prepared
from .copying import copying
from .heads import heads
from .locality import locality
from .scales import Scale
from .theory import theory
from .translation import NAME, translation, translation_data

# What the claims are judged on: the tables that each stage gives.


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


NOTHING = pd.DataFrame()


@dataclass(frozen=True, eq=False)
class Measured:
    """What the claims are judged on, how well every run did, and the data sets."""

    evidence: Evidence
    performance: pd.DataFrame
    statistics: pd.DataFrame
    tables: Mapping[str, pd.DataFrame]
    """Everything that is written as a table, by its name."""


def wanted_data(stages: Sequence[str], scale: Scale) -> list[str]:
    """The data sets that these stages read."""
    texts = list(scale.classification.data) if "classification" in stages else []
    return [*texts, *([NAME] if "translation" in stages else [])]


def measured(
    folder: Path,
    scale: Scale,
    stages: Sequence[str],
    engine: str,
    data: str | Path | None,
    missing: Mapping[str, str],
    vectors: str | Path | None = None,
) -> Measured:
    """Run these stages, each in a folder of its own, without the data sets that are missing."""
    read = [name for name in wanted_data(stages, scale) if name not in missing]
    texts = replace(scale.classification, data={name: scale.classification.data[name] for name in read if name != NAME})
    # before anything is trained, so that files that cannot be read are told at once
    for name in texts.data:
        prepared(folder / "classification", name, texts, data, vectors)
    if NAME in read:
        translation_data(folder / "translation", scale.translation, data)
    tables: dict[str, pd.DataFrame] = {}
    if "copying" in stages:
        tables["copying"] = copying(folder / "copying", scale.copying, engine)
    if "locality" in stages:
        tables["locality"] = locality(folder / "locality", scale.locality, engine)
    derived = theory(scale.widths) if "theory" in stages else {}
    compared = [classification(folder / "classification", texts, engine, data, vectors)] if texts.data else []
    if "heads" in stages:
        tables["heads"], tables["heads_tried"] = heads(folder / "heads", scale.heads, engine)
    if NAME in read:
        compared.append(translation(folder / "translation", scale.translation, engine, data))
    of_all = {
        name: pd.concat([stage[name] for stage in compared], ignore_index=True) if compared else NOTHING
        for name in ("agreements", "contexts", "performance", "statistics")
    }
    evidence = Evidence(
        copying=tables.get("copying", NOTHING),
        heads=tables.get("heads", NOTHING),
        locality=tables.get("locality", NOTHING),
        agreements=of_all["agreements"],
        contexts=of_all["contexts"],
        theory=derived,
        missing=missing,
    )
    tables |= {"table_9" if name == "statistics" else name: table for name, table in of_all.items() if len(table)}
    return Measured(evidence, of_all["performance"], of_all["statistics"], tables | derived)
