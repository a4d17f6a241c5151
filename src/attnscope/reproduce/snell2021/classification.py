"""Classification, Tables 2, 3, 5, 7, 10 and 11: attention, lexical knowledge and saliency of many runs, compared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from ...engine import Store, load_checkpoint, save_checkpoint
from ...lab.bag_training import mean_loss, train_bag
from ...lab.data import ClassifiedTexts, PackedTexts, word_level_statistics
from ...lab.data.packed import load_texts
from ...lab.models import RecurrentClassifier
from ...lab.models.bag_of_words import logistic_words
from ...lab.recurrent_training import checkpoints, look_at, only_attention_learns, train_recurrent
from ...lab.snapshots import Snapshot, SnapshotProbe, best_snapshot, load_snapshot, load_snapshots
from .classification_data import (
    CPU,
    FILE,
    PAPER,
    SMOKE,
    ClassificationScale,
    begin_with_vectors,
    embedding_width,
    prepared,
)
from .kept_runs import STAGE, Rows, all_runs
from .row_agreement import contexts_of, row_agreement

__all__ = ["CPU", "PAPER", "SMOKE", "ClassificationScale", "classification"]


def classification(
    folder: Path,
    scale: ClassificationScale,
    engine: str = "local",
    data: str | Path | None = None,
    vectors: str | Path | None = None,
) -> dict[str, pd.DataFrame]:
    """The tables agreements, contexts, performance and statistics; what is in `folder` already is not trained again.

    Performance has a row for each run, part and checkpoint, and one for each proxy and regression; statistics are those
    of the texts that were used, as in Table 9. `data` is where data sets lie, before $ATTNSCOPE_DATA. `vectors` are
    those that words begin with; random ones by default.
    """
    folder = folder.resolve()  # the workers of a cluster stand in folders of their own
    # here first, so that each is prepared once
    texts = [prepared(folder, name, scale, data, vectors) for name in scale.data]
    runs = [run for name in scale.data for run in runs_of(name, scale)]
    rows = all_runs("Classifiers", partial(worker, folder, scale), runs, engine)
    agreements, contexts = zip(*(compared(folder, name, scale) for name in scale.data), strict=True)
    return {
        "agreements": pd.concat(agreements, ignore_index=True),
        "contexts": pd.concat(contexts, ignore_index=True),
        "performance": pd.DataFrame(rows),
        "statistics": pd.concat([word_level_statistics(each) for each in texts], ignore_index=True),
    }


# The runs of the classification stage: each trained once, with its snapshots in a folder of its own.


PARTS = {"validation": "dev", "training": "test"}
"""What is looked at, and where the prepared data set has it."""
REFERENCE, SECOND = 0, 1
"""The seeds of run A, and of run B; the uniform and the frozen run have the latter."""


@dataclass(frozen=True)
class ClassificationRun:
    """One training on one data set: "learned", "uniform" or "frozen" attention, or the "proxy" or "logistic"."""

    data: str
    kind: str
    seed: int

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.kind}-{self.seed}"


def runs_of(data: str, scale: ClassificationScale) -> list[ClassificationRun]:
    """All runs of a data set: what others are compared with first."""
    others = range(SECOND, SECOND + scale.data[data].others)
    return [
        ClassificationRun(data, "learned", REFERENCE),
        ClassificationRun(data, "uniform", SECOND),
        *(ClassificationRun(data, "learned", seed) for seed in others),
        ClassificationRun(data, "proxy", REFERENCE),
        ClassificationRun(data, "logistic", REFERENCE),
        ClassificationRun(data, "frozen", SECOND),
    ]


def worker(folder: Path, scale: ClassificationScale) -> "partial[Rows]":
    """What an engine calls with each run."""
    return partial(one_run, folder, scale)


def one_run(folder: Path, scale: ClassificationScale, run: ClassificationRun) -> Rows:
    """What was seen of a run, trained now, gone on with, or kept from before."""
    place = folder / run.data
    train = {"proxy": _proxy, "logistic": _logistic}.get(run.kind, _recurrent)
    return Store(place, STAGE, {}).grow(run.name, partial(train, place, scale, run))


def weights_file(folder: Path, run: ClassificationRun) -> Path:
    """Where the word weights of a proxy or a logistic regression are."""
    return folder / run.data / f"{run.name}-words.safetensors"


def snapshot_folder(folder: Path, run: ClassificationRun, part: str) -> Path:
    """Where the snapshots of a run are."""
    return folder / run.data / run.name / part


def _recurrent(place: Path, scale: ClassificationScale, run: ClassificationRun, checkpoint: Path) -> Rows:
    data = load_texts(place / FILE)
    steps = scale.data[run.data].steps
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        model = RecurrentClassifier(
            data.vocabulary,
            width=embedding_width(place, scale.width),
            hidden=scale.hidden,
            attention_width=scale.attention_width,
            attention="uniform" if run.kind == "uniform" else "learned",
            classes=data.classes,
        )
    begin_with_vectors(model.embeddings, place)
    if run.kind == "frozen":
        only_attention_learns(model)
    log = train_recurrent(
        model,
        data.train,
        checkpoint,
        seed=run.seed,
        steps=steps,
        probes=_probes(place, run, model, data, checkpoints(steps)),
        said={"data": run.data, "kind": run.kind},
    )
    named = {"data": run.data, "kind": run.kind, "seed": run.seed}
    return [{**named, "part": row["probe"], **_without_probe(row)} for row in log if "probe" in row]


def _without_probe(row: dict[str, int | float | str]) -> dict[str, int | float | str]:
    return {name: value for name, value in row.items() if name != "probe"}


def _probes(
    place: Path, run: ClassificationRun, model: RecurrentClassifier, data: ClassifiedTexts, steps: Sequence[int]
) -> list[SnapshotProbe]:
    """What looks at both parts; Δ is asked of the first two runs with learned attention alone."""
    compared = run.kind == "learned" and run.seed in (REFERENCE, SECOND)
    quantities = ("attention", "lexical", *(("saliency",) if compared else ()))
    texts: dict[str, PackedTexts] = {name: getattr(data, part) for name, part in PARTS.items()}
    return [
        SnapshotProbe(name, place / run.name / name, steps, partial(look_at, model, part, quantities))
        for name, part in texts.items()
    ]


def _proxy(place: Path, scale: ClassificationScale, run: ClassificationRun, checkpoint: Path) -> Rows:
    data = load_texts(place / FILE)
    model = train_bag(
        data,
        checkpoint,
        seed=run.seed,
        epochs=scale.proxy_epochs,
        rate=scale.proxy_rate(run.data),
        width=scale.proxy_width,
    )
    save_checkpoint(weights_file(place.parent, run), {"weights": model.word_weights()[:, 0]})
    return [{"data": run.data, "kind": run.kind, "seed": run.seed, "loss": mean_loss(model, data.dev)}]


def _logistic(place: Path, _scale: ClassificationScale, run: ClassificationRun, _checkpoint: Path) -> Rows:
    data = load_texts(place / FILE)
    found = logistic_words(data.train, data.dev, len(data.vocabulary))
    save_checkpoint(weights_file(place.parent, run), {"weights": torch.from_numpy(found.weights)})
    named = {"data": run.data, "kind": run.kind, "seed": run.seed}
    return [{**named, "strength": found.strength, "accuracy": found.accuracy}]


# The comparisons of classifiers, from the snapshots of their runs alone: agreements over checkpoints, and their
# worth.
# Whose top is asked for (u) and in whose order (v) is as the authors' code has it, which in one case is not as they
# write it: A(α, β_uf), A(Δ, β_uf) and A(α, β) have u first, but A(β_uf, β_px) has u = β_px and v = β_uf. `seeds` says
# whether the two quantities come from runs of two seeds, as the authors have it, or of the same.


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
