"""What a reader must know first, told by the tables themselves: models, data, seeds, steps, and how they differ."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from .claims import Evidence
from .paper import TABLE_9, TITLES

MODEL = (
    "LSTMs with one head (copying, texts, translation), GRUs (several heads), a bag of words and logistic regression "
    "beside them"
)
Tables = Mapping[str, pd.DataFrame]


def facts_of(
    scale: str, stages: Sequence[str], evidence: Evidence, vectors: str | Path | None = None
) -> dict[str, str]:
    """The table at the top of the report."""
    tables = evidence.tables
    begin = f"vectors of {Path(vectors).name}" if vectors else "random numbers"
    return {
        "scale and stages": f"{scale}: {', '.join(stages)}",
        "model": MODEL,
        "weights": f"all trained here; words begin as {begin}",
        "data": "; ".join(_data(tables)) or "none",
        "seeds": "; ".join(_seeds(tables)) or "none",
        "steps": "; ".join(_steps(tables)) or "none",
        "differs from the paper": "; ".join(_differences(tables)),
        **({"not run": ", ".join(TITLES.get(name, name) for name in evidence.missing)} if evidence.missing else {}),
    }


def _data(tables: Tables) -> Iterator[str]:
    """Texts or pairs to learn from and to look at, by data set."""
    for row in _rows(tables, "table_9"):
        yield f"{TITLES.get(str(row['data']), row['data'])} {int(row['train']):,} and {int(row['validation']):,}"


def _seeds(tables: Tables) -> Iterator[str]:
    """How many seeds each task of copying and each data set has, and how many combinations of heads."""
    if "copying" in tables:
        learned = tables["copying"][tables["copying"]["attention"] == "learned"]
        by_task = learned.groupby("task")["seed"].nunique()
        yield "copying " + ", ".join(f"{task} {many}" for task, many in by_task.items())
    if len(heads := tables.get("heads", pd.DataFrame())):
        for way, rows in heads.groupby("contexts"):
            by_kind = rows.groupby("kind")["combination"].nunique()
            yield f"heads ({way} of contexts) " + ", ".join(f"{many} {kind}" for kind, many in by_kind.items())
    if "performance" in tables:
        performance = _performance(tables)
        learned = performance[performance["kind"] == "learned"]
        by_data = learned.groupby("data")["seed"].nunique()
        yield ", ".join(f"{TITLES.get(str(data), data)} {many}" for data, many in by_data.items())


def _steps(tables: Tables) -> Iterator[str]:
    if "copying" in tables:
        by_task = tables["copying"].groupby("task")["step"].max()
        yield "copying " + ", ".join(f"{task} {int(last)}" for task, last in by_task.items())
    if len(heads := tables.get("heads", pd.DataFrame())):
        yield f"heads {int(heads['step'].max())}"
    if "locality" in tables:
        yield f"locality {int(tables['locality']['step'].max()):,}"
    if "performance" in tables:
        by_data = _performance(tables).dropna(subset="step").groupby("data")["step"].max()
        yield ", ".join(f"{TITLES.get(str(data), data)} {int(last):,}" for data, last in by_data.items())


def _differences(tables: Tables) -> Iterator[str]:
    """Where there is less here than in the paper: texts to learn from, steps, seeds."""
    fewer = [
        f"{TITLES[str(row['data'])]} {int(row['train']):,} of {TABLE_9[str(row['data'])].train:,}"
        for row in _rows(tables, "table_9")
        if str(row["data"]) in TABLE_9 and row["train"] < TABLE_9[str(row["data"])].train
    ]
    if fewer:
        yield f"fewer texts to learn from ({', '.join(fewer)})"
    yield "the paper has 300 steps of copying, 20 seeds of each task, 4,000 steps on texts and 20 epochs of Multi30k"
    yield "several heads are tried at length 40 and width 256 there"
    yield "words begin at random, as in the authors' code, where the text says GloVe"


def _performance(tables: Tables) -> pd.DataFrame:
    """The table performance; rows of earlier runs that name no data set are of Multi30k."""
    return tables["performance"].fillna({"data": "multi30k"})


def _rows(tables: Tables, name: str) -> list[dict[Hashable, Any]]:
    return tables[name].to_dict("records") if name in tables else []
