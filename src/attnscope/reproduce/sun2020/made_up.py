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

from ...engine import Store
from ...lab.data import ClassifiedTexts, synthetic_polarity
from ...lab.models import AttentionClassifier
from ...lab.polarity_training import curves, train_watched
from ...lab.probes import WatchedTerms
from ...lab.sweep import Recipe, RunSettings, begun, train_epoch
from ...progress import items_done
from .scales import Scale
from .sweeping import LARGE, MODERATE
from .word_tables import NEGATIVE, NEUTRAL, POSITIVE, kinds_of

Rows = list[dict[str, Any]]
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
    """One run on made-up sentences, and the name by which what was seen of it is kept."""

    name: str
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
                runs.append(_Run(f"{name}-{penalty:g}-{seed}", data, said, scale.made_up_epochs, scale.width, told))
    seen = _all_seen(folder, runs, "Made-up sentences")
    drawn = [run.told | row for run, rows in zip(runs, seen, strict=True) for row in curves(rows)]
    return _ends(runs, seen), pd.DataFrame(drawn)


def skewed_runs(folder: Path, scale: Scale) -> pd.DataFrame:
    """How runs end on data with more positive than negative sentences, from several beginnings."""
    runs = []
    for share in SHARES:
        data = synthetic_polarity(positive_share=share, **scale.made_up)
        for seed in BEGINNINGS:
            name, said = f"share-{share:g}-{seed}", RunSettings("dot", MODERATE, seed)
            runs.append(_Run(name, data, said, scale.skew_epochs, scale.width, {"share": share, "seed": seed}))
    return _ends(runs, _all_seen(folder, runs, "Skewed sentences"))


def _ends(runs: Iterable[_Run], seen: Iterable[Rows]) -> pd.DataFrame:
    return pd.DataFrame([run.told | rows[-1] for run, rows in zip(runs, seen, strict=True)]).drop(columns="probe")


def _all_seen(folder: Path, runs: Sequence[_Run], title: str) -> list[Rows]:
    """What was seen of each run, trained now or before; those that are left go side by side."""
    store = Store(folder, "study", {})
    with ThreadPoolExecutor(torch.get_num_threads()) as pool, items_done(title) as watch:
        found = []
        for number, rows in enumerate(pool.map(lambda run: store.once(run.name, lambda: _watched(run)), runs)):
            watch(number + 1, len(runs))
            found.append(rows)
        return found


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


# What drives the scores of words while a classifier learns from real text: the terms A to F over the first epochs.


TERM_EPOCHS, TERM_LOOKS, TERM_SEED = 8, 40, 1


def term_curves(folder: Path, data: ClassifiedTexts, scale: Scale) -> pd.DataFrame:
    """Rows of scaling (λ), step, quantity, name, group and value."""
    drawn = []
    for scaling in (MODERATE, LARGE):
        rows = Store(folder, "study", {}).grow(f"terms-{scaling:g}", partial(_watched_terms, data, scaling, scale))
        drawn += [{"scaling": scaling, **row} for row in curves(rows)]
    return pd.DataFrame(drawn)


def _watched_terms(data: ClassifiedTexts, scaling: float, scale: Scale, checkpoint: Path) -> Rows:
    """What the probe sees of a run that is trained now."""
    steps = TERM_EPOCHS * -(-len(data.train) // 100)
    looks = {round(look * steps / TERM_LOOKS) for look in range(TERM_LOOKS + 1)}
    chosen = {kind: numbers for kind, numbers in kinds_of(data).items() if kind in {POSITIVE, NEGATIVE, NEUTRAL}}
    _, log = train_watched(
        data,
        lambda: AttentionClassifier(data.vocabulary, scaling=scaling, classes=data.classes, width=scale.width),
        checkpoint,
        epochs=TERM_EPOCHS,
        seed=TERM_SEED,
        probes=lambda model: [WatchedTerms(model, data.train, chosen, steps=looks)],
    )
    return [row for row in log if "probe" in row]
