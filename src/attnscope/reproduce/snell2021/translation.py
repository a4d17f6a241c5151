"""Translation of Multi30k (Tables 2-8, A.1): the runs, each kept, and the tables that compare them.

Run A, seed 0, gives α, at its best checkpoint; run B, seed 1, gives the curve of α̂ and p̂, and β; a run under uniform
attention gives β_uf; the variant softmax(W(c + d)) gives α_opt; the bag of words gives β_px; and counts alone give that
of IBM Model 1. A run keeps snapshots of the same sentences of training and validation at every checkpoint.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from ...lab.data.translation import TranslatedPart, TranslatedTexts, multi30k, translation_statistics, word_for_word
from ...lab.models.seq2seq import TRANSLATION, Seq2Seq
from ...lab.snapshots import Snapshot, SnapshotProbe, save_snapshot
from ...lab.translation_looks import TranslationLook, bag_rows, source_rows
from ...lab.translation_training import train_translation, train_translation_bag
from .kept_runs import Rows, all_runs, stage
from .translation_tables import TranslationRuns, agreements_of, worth_of

EARLY = (0, 50, 100, 500, 1000, 1500)
"""The first checkpoints of the paper; it goes on with every 2,000 steps."""
NAME = "multi30k"
PARTS = {"validation": "dev", "training": "train"}
SETTINGS: dict[str, dict[str, Any]] = {
    "learned": {},
    "uniform": {"attention": "uniform"},
    "sum": {"output": "sum"},
}
"""How each kind of run differs from the paper's main model."""
SAMPLE_SEED = 0


@dataclass(frozen=True)
class TranslationScale:
    """How long the models are trained, and on how many sentences they are looked at."""

    steps: int
    every: int
    """Checkpoints after the early ones, and looks for the best weights."""
    batch: int = 16
    bag_epochs: int = 30
    validation_pairs: int = 1_014
    training_pairs: int = 1_014
    beams: int = 5
    width: int = 256
    uniform_seeds: tuple[int, ...] = (2,)
    """Other than 0, that of run A, for the authors' way; 0 adds the same-seed variant."""
    iterations: tuple[int, ...] = (0, 5)
    """Steps of expectation maximisation in IBM Model 1; 0 is the paper's."""
    made_up: dict[str, int] | None = None
    """Sentences translated word for word, in place of Multi30k."""

    @property
    def checkpoints(self) -> list[int]:
        """The steps of snapshots, the last one included."""
        return sorted({*(step for step in EARLY if step <= self.steps), *range(0, self.steps, self.every), self.steps})


SMOKE = TranslationScale(
    10,
    5,
    batch=4,
    bag_epochs=1,
    validation_pairs=6,
    training_pairs=4,
    beams=2,
    width=12,
    uniform_seeds=(2, 0),
    iterations=(0, 1),
    made_up={"words": 12, "longest": 6, "train": 40, "dev": 8},
)
CPU = TranslationScale(7_000, 1_000, bag_epochs=15, validation_pairs=200, training_pairs=100)
PAPER = TranslationScale(36_260, 2_000, uniform_seeds=(2, 0))
"""20 epochs of 29,000 pairs in batches of 16."""


@dataclass(frozen=True)
class TranslationRun:
    """One training: learned, uniform or sum, as in SETTINGS, or proxy; with the seed of weights, order and dropout."""

    kind: str
    seed: int

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.kind}-{self.seed}"


@dataclass(frozen=True, eq=False)
class TranslationData:
    """The data set, and the sentences of each part that every run is looked at with."""

    texts: TranslatedTexts
    samples: dict[str, TranslatedPart] = field(default_factory=dict)


def translation(
    folder: Path, scale: TranslationScale, engine: str = "local", data: str | Path | None = None
) -> dict[str, pd.DataFrame]:
    """The tables agreements, contexts, performance and statistics; what is in `folder` already is not trained again.

    Performance has a row for each run, part and checkpoint. `data` is where data sets lie, before $ATTNSCOPE_DATA.
    """
    place = folder.resolve()  # the workers of a cluster stand in folders of their own
    # here first, so that the subwords are learned once
    found = translation_data(place, scale, data)
    runs = [TranslationRun("learned", 0), TranslationRun("learned", 1)]
    runs += [TranslationRun("uniform", seed) for seed in scale.uniform_seeds]
    runs += [TranslationRun("sum", 0), TranslationRun("proxy", 0)]
    rows = all_runs("Translation", partial(_worker, place, scale, data), runs, engine)
    kept = TranslationRuns(place, found.texts, found.samples, scale.uniform_seeds, scale.iterations)
    agreements = agreements_of(kept)
    return {
        "agreements": agreements,
        "contexts": worth_of(kept, agreements),
        "performance": pd.DataFrame(rows),
        "statistics": translation_statistics(found.texts),
    }


def translation_data(folder: Path, scale: TranslationScale, data: str | Path | None = None) -> TranslationData:
    """The sentences of a scale; subwords are kept in the folder."""
    if scale.made_up is None:
        texts = multi30k(data, kept=folder / "subwords.model")
    else:
        texts = replace(word_for_word(**scale.made_up), name=NAME)
    samples = {}
    for part, pairs in (("validation", scale.validation_pairs), ("training", scale.training_pairs)):
        whole: TranslatedPart = getattr(texts, PARTS[part])
        order = np.random.default_rng(SAMPLE_SEED).permutation(len(whole))[:pairs]
        samples[part] = whole.chosen(sorted(order.tolist()))
    return TranslationData(texts, samples)


def _worker(folder: Path, scale: TranslationScale, data: str | Path | None) -> "partial[Rows]":
    return partial(one_run, folder, scale, translation_data(folder, scale, data))


def one_run(folder: Path, scale: TranslationScale, data: TranslationData, run: TranslationRun) -> Rows:
    """How well a run did at its checkpoints, trained now, gone on with, or kept from before."""
    train = _train_proxy if run.kind == "proxy" else _train_model
    return stage(folder, scale).grow(run.name, partial(train, folder / run.name, scale, data, run))


def _train_model(
    folder: Path, scale: TranslationScale, data: TranslationData, run: TranslationRun, checkpoint: Path
) -> Rows:
    settings = {**TRANSLATION, "width": scale.width, **SETTINGS[run.kind]}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        model = Seq2Seq(data.texts.vocabulary, **settings)
    probes = [
        SnapshotProbe(part, folder / part, scale.checkpoints, TranslationLook(model, sample, beams=scale.beams))
        for part, sample in data.samples.items()
        if run.kind != "sum"  # of which only the end is asked for
    ]
    log = train_translation(
        model,
        data.texts,
        checkpoint,
        seed=run.seed,
        steps=scale.steps,
        batch=scale.batch,
        dev=data.samples["validation"],
        every=scale.every,
        probes=probes,
        said={**settings, "looked at": [len(sample) for sample in data.samples.values()]},
    )
    model.save(folder / "model")
    rows = [_row(run, row["probe"], int(row["step"]), row) for row in log if "probe" in row]
    return rows + [
        _row(run, part, shot.step, shot.performance) for part, shot in _best(folder, scale, data, run, model, log)
    ]


def _best(
    folder: Path, scale: TranslationScale, data: TranslationData, run: TranslationRun, model: Seq2Seq, log: list[Any]
) -> Iterator[tuple[str, Snapshot]]:
    """Look at the best weights, keep what is seen beside the snapshots of checkpoints, and tell it."""
    looks = [row for row in log if "validation" in row]
    step = int(max(looks, key=lambda row: row["validation"])["step"])
    # one backward pass to each word is dear, and only Δ of run A is asked for
    more = {"sum": ("optimal",), "uniform": ()}.get(run.kind, ("saliency",) if run.seed == 0 else ())
    for part, sample in data.samples.items():
        with torch.no_grad():
            shot = TranslationLook(model, sample, ("attention", "lexical", *more), scale.beams)(step)
        save_snapshot(folder / "best" / f"{part}.safetensors", shot)
        if run.kind == "sum":
            yield part, shot


def _row(run: TranslationRun, part: Any, step: int, performance: Any) -> dict[str, Any]:
    return {
        "kind": run.kind,
        "seed": run.seed,
        "part": part,
        "step": step,
        "accuracy": performance["accuracy"],
        "bleu": performance["bleu"],
    }


def _train_proxy(
    folder: Path, scale: TranslationScale, data: TranslationData, run: TranslationRun, checkpoint: Path
) -> Rows:
    """Its β_px of the sentences that are looked at; it writes nothing, so there is no performance to tell."""
    model = train_translation_bag(data.texts, checkpoint, seed=run.seed, epochs=scale.bag_epochs, width=scale.width)
    for part, sample in data.samples.items():
        shot = Snapshot(0, {}, {"lexical": bag_rows(model, data.texts.vocabulary, sample)}, source_rows(sample))
        save_snapshot(folder / "best" / f"{part}.safetensors", shot)
    return []
