"""The sweep of Table 2: every λ, variant and seed of a data set; accuracies and the words' scores are what is kept."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path

import pandas as pd

from ...engine import UNFINISHED, Store
from ...lab.data import ClassifiedTexts
from ...lab.sweep import RunSettings, TrainedRun, sweep_groups
from ...progress import items_done
from .scales import L2, PENALTIES, SCALINGS, Scale
from .word_tables import kinds_of, model_of, word_table

MODERATE, LARGE = 10.0, 100.0
"""The λ of Figures 2, 4 and 5, and that of Figure 3."""


def swept(
    folder: Path, data: ClassifiedTexts, variant: str, seeds: Sequence[int], scale: Scale, engine: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The accuracy of every λ and seed of a variant, and the words' scores in some of these runs."""
    l2 = 0.0 if variant == "dot" else L2
    runs = [RunSettings(variant, scaling, seed, l2) for seed in seeds for scaling in SCALINGS]
    return trained(folder / f"{data.name}-{variant}", data, runs, scale, engine, _looked_at)


def penalised(
    folder: Path, data: ClassifiedTexts, seeds: Sequence[int], scale: Scale, engine: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same for dot products at a large λ, with a penalty on |V·W| of several strengths."""
    runs = [RunSettings("dot", LARGE, seed, penalty=strength) for seed in seeds for strength in PENALTIES]
    return trained(folder / f"{data.name}-penalty", data, runs, scale, engine, lambda _data, _run: True)


def _looked_at(data: str, run: RunSettings) -> bool:
    """Whether the words of a run are looked at: of dot products on SST all, elsewhere those that figures show."""
    if run.variant == "dot":
        return data == "sst" or run.scaling in {MODERATE, LARGE}
    return data == "sst" and run.scaling == MODERATE


def trained(
    place: Path,
    data: ClassifiedTexts,
    runs: Sequence[RunSettings],
    scale: Scale,
    engine: str,
    looked_at: Callable[[str, RunSettings], bool],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train these runs, or read what was kept of them; checkpoints go when all are done."""
    store = Store(place, "sweep", {})
    rows, words = store.find("accuracies"), store.find_table("words")
    if rows is None or words is None:
        training = scale.training(runs[0].variant)
        # the workers of a cluster stand in folders of their own
        checkpoints = (place / UNFINISHED).resolve()
        with items_done(place.name) as bar:
            if engine == "local":  # a worker elsewhere cannot reach the bar
                epochs, seen = training["epochs"] * len({run.seed for run in runs}), count(1)
                training["watch"] = lambda *_: bar(next(seen), epochs)
            found = sweep_groups(data, runs, on=engine, checkpoints=checkpoints, **training)
        kinds = kinds_of(data)
        tables = [
            _told_apart(word_table(data, model_of(data, run, scale.width), kinds), run)
            for run in found
            if looked_at(data.name, run.settings)
        ]
        words = store.keep_table("words", pd.concat(tables, ignore_index=True) if tables else pd.DataFrame())
        rows = [{"data": data.name, "epochs": len(run.dev_accuracy), **run.row()} for run in found]
        store.keep("accuracies", rows)
        shutil.rmtree(checkpoints, ignore_errors=True)
    return pd.DataFrame(rows), words.assign(data=data.name)


def _told_apart(table: pd.DataFrame, run: TrainedRun) -> pd.DataFrame:
    """The words of a run with its settings, and V·W of the weights they are from."""
    product = run.context_dot_output[run.best_epoch - 1]
    return table.assign(**asdict(run.settings), context_dot_output=float(product[0]) if len(product) == 1 else None)
