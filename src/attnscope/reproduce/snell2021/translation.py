"""Translation of Multi30k and of what is brought (Tables 2-8, A.1): the runs, each kept, and the tables of them.

Run A, seed 0, gives α, at its best checkpoint; run B, seed 1, gives the curve of α̂ and p̂, and β; a run under uniform
attention gives β_uf; the variant softmax(W(c + d)) gives α_opt; the bag of words gives β_px; and counts alone give that
of IBM Model 1. A run keeps snapshots of the same sentences of training and validation at every checkpoint.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from ...lab.models.seq2seq import TRANSLATION, Seq2Seq
from .agreements import TranslationRuns, agreements_of, worth_of
from .brought import brought_pairs
from .paper import BROUGHT, TranslationScale
from .sentence_pairs import (
    TranslatedPart,
    TranslatedTexts,
    multi30k,
    read_multi30k,
    sentencepiece_library,
    translation_statistics,
    word_for_word,
)
from .snapshots import Snapshot, SnapshotProbe, TranslationLook, bag_rows, save_snapshot, source_rows
from .training import Rows, all_runs, stage_store, train_translation, train_translation_bag, with_seed

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
    samples: dict[str, TranslatedPart]


def run_translation(
    folder: Path, scale: TranslationScale, engine: str = "local", data: str | Path | None = None, name: str = NAME
) -> dict[str, pd.DataFrame]:
    """The tables agreements, contexts, performance and table_9; what is in `folder` already is not trained again.

    Performance has a row for each run, part and checkpoint; table_9 has the statistics of the sentences. `data` is
    where the data sets are, before $ATTNSCOPE_DATA.
    """
    place = folder.resolve()  # the workers of a cluster stand in folders of their own
    # here first, so that the subwords are learned once
    sentences = translation_data(place, scale, data, name)
    scale = _with_epochs(scale, sentences)
    runs = [TranslationRun("learned", 0), TranslationRun("learned", 1)]
    runs += [TranslationRun("uniform", seed) for seed in scale.uniform_seeds]
    runs += [TranslationRun("sum", 0), TranslationRun("proxy", 0)]
    rows = all_runs("Translation", partial(_make_worker, place, scale, data, name), runs, engine)
    done = TranslationRuns(place, sentences.texts, sentences.samples, scale.uniform_seeds, scale.iterations)
    agreements = agreements_of(done)
    return {
        "agreements": agreements,
        "contexts": worth_of(done, agreements),
        "performance": pd.DataFrame(rows).assign(data=name),
        "table_9": translation_statistics(sentences.texts),
    }


def _with_epochs(scale: TranslationScale, data: TranslationData) -> TranslationScale:
    """The scale with the steps of its epochs, where a data set has a number of its own."""
    epochs = scale.epochs.get(data.texts.name)
    return scale if epochs is None else replace(scale, steps=epochs * math.ceil(len(data.texts.train) / scale.batch))


def check_sentences(scale: TranslationScale, data: str | Path | None = None) -> None:
    """Read what a run will read, before it begins; bad input is refused now."""
    if scale.made_up is None:
        sentencepiece_library()
        for part in PARTS.values():
            read_multi30k(part, data)


def translation_data(
    folder: Path, scale: TranslationScale, data: str | Path | None = None, name: str = NAME
) -> TranslationData:
    """The sentences of a scale; subwords are kept in the folder."""
    if scale.made_up is not None:
        texts = replace(word_for_word(**scale.made_up), name=name)
    elif name in BROUGHT:
        texts = brought_pairs(name, data, folder / "subwords.model")
    else:
        texts = multi30k(data, subwords_file=folder / "subwords.model")
    samples = {}
    for part, pairs in (("validation", scale.validation_pairs), ("training", scale.training_pairs)):
        whole: TranslatedPart = getattr(texts, PARTS[part])
        order = np.random.default_rng(SAMPLE_SEED).permutation(len(whole))[:pairs]
        samples[part] = whole.select(sorted(order.tolist()))
    return TranslationData(texts, samples)


def _make_worker(folder: Path, scale: TranslationScale, data: str | Path | None, name: str) -> "partial[Rows]":
    return partial(do_translation_run, folder, scale, translation_data(folder, scale, data, name))


def do_translation_run(folder: Path, scale: TranslationScale, data: TranslationData, run: TranslationRun) -> Rows:
    """How well a run did at its checkpoints, trained now, continued, or kept from before."""
    train = _train_proxy if run.kind == "proxy" else _train_model
    return stage_store(folder, scale).grow(run.name, partial(train, folder / run.name, scale, data, run))


def _train_model(
    folder: Path, scale: TranslationScale, data: TranslationData, run: TranslationRun, checkpoint: Path
) -> Rows:
    settings = {**TRANSLATION, "width": scale.width, **SETTINGS[run.kind]}
    model = with_seed(run.seed, lambda: Seq2Seq(data.texts.vocabulary, **settings))
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
        details={**settings, "looked at": [len(sample) for sample in data.samples.values()]},
    )
    model.save(folder / "model")
    rows = [_row(run, row["probe"], int(row["step"]), row) for row in log if "probe" in row]
    return rows + [
        _row(run, part, shot.step, shot.performance)
        for part, shot in _look_at_best(folder, scale, data, run, model, log)
    ]


def _look_at_best(
    folder: Path, scale: TranslationScale, data: TranslationData, run: TranslationRun, model: Seq2Seq, log: list[Any]
) -> Iterator[tuple[str, Snapshot]]:
    """Look at the best weights, and keep what is seen beside the snapshots of checkpoints."""
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
    return asdict(run) | {"part": part, "step": step, **{name: performance[name] for name in ("accuracy", "bleu")}}


def _train_proxy(
    folder: Path, scale: TranslationScale, data: TranslationData, run: TranslationRun, checkpoint: Path
) -> Rows:
    """Its β_px of the sentences that are looked at; it writes nothing, so there is no performance."""
    model = train_translation_bag(data.texts, checkpoint, seed=run.seed, epochs=scale.bag_epochs, width=scale.width)
    for part, sample in data.samples.items():
        shot = Snapshot(0, {}, {"lexical": bag_rows(model, data.texts.vocabulary, sample)}, source_rows(sample))
        save_snapshot(folder / "best" / f"{part}.safetensors", shot)
    return []
