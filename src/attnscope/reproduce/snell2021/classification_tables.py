"""The comparisons of classifiers, from the snapshots of their runs alone: agreements over checkpoints, and their worth.

Whose top is asked for (u) and in whose order (v) is as the authors' code has it, which in one case is not as they write
it: A(α, β_uf), A(Δ, β_uf) and A(α, β) have u first, but A(β_uf, β_px) has u = β_px and v = β_uf. `seeds` says whether
the two quantities come from runs of two seeds, as the authors have it, or of the same.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from ...engine import load_checkpoint
from ...lab.data import PackedTexts
from ...lab.data.texts_file import load_texts
from ...lab.snapshots import Snapshot, best_snapshot, load_snapshot, load_snapshots
from .classification_data import FILE
from .classification_runs import PARTS, REFERENCE, SECOND, ClassificationRun, snapshot_folder, weights_file
from .classification_scale import ClassificationScale
from .contexts import contexts_of
from .row_agreement import row_agreement

Table = Float[Tensor, "row position"]
KEYS = ["pair", "seeds", "step"]


def compared(folder: Path, data: str, scale: ClassificationScale) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The agreements of one data set, and what they are worth.

    Agreements have a row for each part, pair of quantities, variant of seeds and checkpoint, with the columns of
    `row_agreement`; contexts are those of `contexts_of`.
    """
    agreements, contexts = [], []
    for part in PARTS:
        rows, accuracies = pd.DataFrame(_rows(folder, data, scale, part)), _accuracies(folder, data, scale, part)
        # the runs of several other seeds are one curve: their mean
        table = rows.groupby(KEYS, sort=False, as_index=False).mean()
        agreements.append(table.assign(data=data, part=part))
        labels = _texts(folder, data, part).labels
        guessing = {"accuracy": max(float(labels.mean()), 1 - float(labels.mean()))}
        worth = contexts_of(table, {"accuracy": accuracies}, guessing)
        contexts.append(pd.DataFrame(worth).assign(data=data, part=part))
    return pd.concat(agreements, ignore_index=True), pd.concat(contexts, ignore_index=True)


def _rows(folder: Path, data: str, scale: ClassificationScale, part: str) -> Iterator[dict[str, Any]]:
    def curve(kind: str, seed: int) -> Iterator[Snapshot]:
        return load_snapshots(snapshot_folder(folder, ClassificationRun(data, kind, seed), part))

    first, second = (_best(folder, ClassificationRun(data, "learned", seed), part) for seed in (REFERENCE, SECOND))

    def row(pair: str, seeds: str, told: Table, at: Snapshot, quantity: str) -> dict[str, Any]:
        said = {"pair": pair, "seeds": seeds, "step": at.step}
        return said | row_agreement(told, at.values[quantity], first.real)

    attention = first.values["attention"]
    words = _word_models(folder, data, part)
    for at in curve("uniform", SECOND):
        for seeds, run in (("two", first), ("same", second)):
            yield row("attention_uniform", seeds, run.values["attention"], at, "lexical")
            yield row("saliency_uniform", seeds, run.values["saliency"], at, "lexical")
        for kind, values in words.items():
            yield row(f"uniform_{kind}", "two", values, at, "lexical")
    for at in curve("learned", REFERENCE):
        yield row("attention_lexical", "same", attention, at, "lexical")
    for at in curve("learned", SECOND):
        yield row("attention_lexical", "two", attention, at, "lexical")
    for at in chain.from_iterable(curve("learned", seed) for seed in _others(data, scale)):
        yield row("attention_attention", "two", attention, at, "attention")
    for at in curve("frozen", SECOND):
        yield row("attention_frozen", "two", attention, at, "attention")


def _word_models(folder: Path, data: str, part: str) -> dict[str, Table]:
    """β of the models that know words alone."""
    texts = _texts(folder, data, part)
    kinds = ("proxy", "logistic")
    return {kind: word_values(folder, ClassificationRun(data, kind, REFERENCE), texts) for kind in kinds}


def _accuracies(folder: Path, data: str, scale: ClassificationScale, part: str) -> dict[int, float]:
    """The accuracy at each step, the mean over the other seeds."""
    found: dict[int, list[float]] = {}
    for seed in _others(data, scale):
        for at in load_snapshots(snapshot_folder(folder, ClassificationRun(data, "learned", seed), part)):
            found.setdefault(at.step, []).append(at.performance["accuracy"])
    return {step: float(np.mean(values)) for step, values in found.items()}


def _others(data: str, scale: ClassificationScale) -> range:
    return range(SECOND, SECOND + scale.data[data].others)


def _best(folder: Path, run: ClassificationRun, part: str) -> Snapshot:
    """The snapshot at the step with the best accuracy on validation texts, whichever part is asked for."""
    step = best_snapshot(load_snapshots(snapshot_folder(folder, run, "validation"))).step
    return load_snapshot(snapshot_folder(folder, run, part) / f"{step}.safetensors")


def _texts(folder: Path, data: str, part: str) -> PackedTexts:
    texts: PackedTexts = getattr(load_texts(folder / data / FILE), PARTS[part])
    return texts


def word_values(folder: Path, run: ClassificationRun, texts: PackedTexts) -> Float[Tensor, "row position"]:
    """β of a model that knows words alone, as a logit for the right class, at every position."""
    weights: Float[Tensor, " word"] = load_checkpoint(weights_file(folder, run))["weights"].float()
    ids, real = texts.padded(np.arange(len(texts)))
    signs = torch.from_numpy(2 * texts.labels - 1)[:, None]
    return (weights[torch.from_numpy(ids)] * signs).masked_fill(~torch.from_numpy(real), 0.0)
