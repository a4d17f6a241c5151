"""The supplement's study on made-up sentences: which vectors come to point the same way, and what moves V·W.

Plain descent at a rate of .015, 200 sentences to a step, λ = 10, W from U(-1, 1), dropout of a half.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from ...lab.data import ClassifiedTexts, synthetic_polarity
from ...lab.models import AttentionClassifier
from ...lab.polarity_training import curves
from ...lab.probes import WatchedTerms
from ...lab.sweep import Recipe, RunSettings, begun, train_epoch
from ...progress import items_done
from .kept_rows import Rows, kept_rows
from .scales import Scale
from .sweeping import MODERATE
from .word_tables import NEGATIVE, NEUTRAL, POSITIVE

RATE, BATCH = 0.015, 200
STEADY = 1e8
"""Adagrad divides a step by √Σg² + ε. Beside an ε this large the sum is nothing, and with a rate ε times as large what
is left is plain descent."""
SWAPPED = 0.05
"""The share of sentences of data II with polar words of the other class; the paper has "a few"."""
PENALTY = 1e-3
"""c of c |V·W|, as it stands in the authors' notebook, switched off."""
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Of positive sentences: the paper has five ratios and does not say which."""
BEGINNINGS = (1, 2, 3, 4)
LOOKS = 50
"""How often a run is looked at."""


@dataclass(frozen=True, eq=False)
class _Run:
    """One run on made-up sentences, and the file that keeps what was seen of it."""

    path: Path
    data: ClassifiedTexts
    settings: RunSettings
    epochs: int
    width: int
    told: dict[str, Any]


def made_up_runs(folder: Path, scale: Scale, seeds: Sequence[int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both data sets with and without a penalty: how each run ends, and the curves of all."""
    runs = []
    for name, swapped in (("I", 0.0), ("II", SWAPPED)):
        data = synthetic_polarity(swapped=swapped, **scale.made_up)
        for penalty in (0.0, PENALTY):
            for seed in seeds:
                said = RunSettings("dot", MODERATE, seed, penalty=penalty)
                told = {"set": name, "penalty": penalty, "seed": seed}
                path = folder / f"{name}-{penalty:g}-{seed}.json"
                runs.append(_Run(path, data, said, scale.made_up_epochs, scale.width, told))
    seen = _all_seen(runs, "Made-up sentences")
    drawn = [run.told | row for run, rows in zip(runs, seen, strict=True) for row in curves(rows)]
    return _ends(runs, seen), pd.DataFrame(drawn)


def skewed_runs(folder: Path, scale: Scale) -> pd.DataFrame:
    """How runs end on data with more positive than negative sentences, from several beginnings."""
    runs = []
    for share in SHARES:
        data = synthetic_polarity(positive_share=share, **scale.made_up)
        for seed in BEGINNINGS:
            path, said = folder / f"share-{share:g}-{seed}.json", RunSettings("dot", MODERATE, seed)
            runs.append(_Run(path, data, said, scale.skew_epochs, scale.width, {"share": share, "seed": seed}))
    return _ends(runs, _all_seen(runs, "Skewed sentences"))


def _ends(runs: Iterable[_Run], seen: Iterable[Rows]) -> pd.DataFrame:
    return pd.DataFrame([run.told | rows[-1] for run, rows in zip(runs, seen, strict=True)]).drop(columns="probe")


def _all_seen(runs: Sequence[_Run], title: str) -> list[Rows]:
    """What was seen of each run; those that are left go side by side."""
    with ThreadPoolExecutor(torch.get_num_threads()) as pool, items_done(title) as watch:
        found = []
        for number, rows in enumerate(pool.map(_seen, runs)):
            watch(number + 1, len(runs))
            found.append(rows)
        return found


def _seen(run: _Run) -> Rows:
    """What the probe saw of one run, trained now or before."""
    return kept_rows(run.path, partial(_watched, run))


def _watched(run: _Run) -> Rows:
    """Train a run, and look at it from time to time."""
    recipe = Recipe(run.width, run.epochs, BATCH, RATE * STEADY, 0.0, 0.5, "float32", None, epsilon=STEADY)
    states = begun(run.data, [run.settings], recipe)
    dice = np.random.default_rng(run.settings.seed)
    states[0].weights["output.weight"][:] = dice.uniform(-1, 1, (1, run.width))
    looks = {round(look * run.epochs / LOOKS) for look in range(LOOKS + 1)}
    rows = [_looked_at(run, 0, states[0].weights)]
    for epoch in range(run.epochs):
        train_epoch(run.data, epoch, recipe, states)
        if epoch + 1 in looks:
            rows.append(_looked_at(run, states[0].step, states[0].weights))
    return rows


def _looked_at(run: _Run, step: int, weights: dict[str, np.ndarray]) -> dict[str, Any]:
    """The terms and dot products of a model with these weights."""
    model = AttentionClassifier(run.data.vocabulary, scaling=MODERATE, classes=run.data.classes, width=run.width)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    kinds = {kind: _numbers(run.data, kind) for kind in (POSITIVE, NEGATIVE, NEUTRAL)}
    probe = WatchedTerms(model, run.data.train, kinds, penalty=run.settings.penalty)
    return {"step": step, "probe": probe.name, **probe(step)}


def _numbers(data: ClassifiedTexts, kind: str) -> np.ndarray:
    """The words of a kind, which have it in their names."""
    return np.array([number for number, word in enumerate(data.vocabulary.tokens) if word.startswith(kind)])
