"""The runs of the classification stage: each trained once, with its snapshots in a folder of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from ...engine import save_checkpoint
from ...lab.bag_training import mean_loss, train_bag
from ...lab.data import ClassifiedTexts, PackedTexts
from ...lab.data.texts_file import load_texts
from ...lab.models import RecurrentClassifier
from ...lab.models.logistic_words import logistic_words
from ...lab.recurrent_training import checkpoints, look_at, only_attention_learns, train_recurrent
from ...lab.snapshots import SnapshotProbe
from .classification_data import FILE, begin_with_vectors, embedding_width
from .classification_scale import ClassificationScale
from .kept_runs import Rows, once

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
    return once(place / f"{run.name}.json", partial(train, place, scale, run))


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
