"""Several heads, Figure 6: good and bad initialisations of a head, found by trial, and eight of them together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ...lab.copying_training import CopyingAccuracy, train_copying
from ...lab.data.copying import CopyingTask
from ...lab.models import Seq2Seq
from ...lab.models.seq2seq import HEADS
from ...lab.models.seq2seq_attention import AttentionHead
from .kept_runs import Rows, all_runs, stage

GOOD, BAD = 0.95, 0.6
"""A head is good above the first accuracy at some check, bad below the second at the last one, for all data seeds."""
FIRST_HEAD = 1000
"""Head number n begins with the weights that seed FIRST_HEAD + n gives."""
BEGINNING = 0
"""The seed of all other weights, which every model of this study shares."""
CHECKED_WITH = 99
"""The seed of the sequences on which every model is checked."""
KINDS = ("bad", "good", "random")
"""Only bad heads, one good head among bad ones, and heads taken as they come."""


@dataclass(frozen=True)
class HeadsScale:
    """How long a sequence is, how many heads are tried, and how many are combined."""

    length: int
    width: int
    batch: int
    steps: int
    data_seeds: int
    """Each head is tried on so many streams of sequences."""
    wanted: int
    """Of good heads and of bad ones; trying ends when there are so many of both."""
    tried: int
    """At most so many heads are tried."""
    together: int
    """Heads of a combined model."""
    pool: int
    """Random heads are taken from the first so many, whatever they are."""
    combinations: int
    """Of each kind."""
    sequences: int = 400
    every: int = 10
    wave: int = 10
    """So many heads are tried before their kinds are counted, the same on every engine."""

    @property
    def task(self) -> CopyingTask:
        """Permutations of the same words."""
        return CopyingTask(self.length, self.length)


SMOKE = HeadsScale(3, 8, 8, 10, 2, 2, 4, 2, 3, 2, sequences=20, every=5, wave=2)
# At length 20, width 128 and batch 64, within 150 steps some heads learn and some do not, as at length 40 within 200.
CPU = HeadsScale(20, 128, 64, 150, 3, 10, 60, 8, 30, 20, sequences=200)
PAPER = HeadsScale(40, 256, 128, 200, 3, 20, 400, 8, 30, 20)


@dataclass(frozen=True)
class HeadsRun:
    """One training: the numbers of the heads, and the seed of the sequences."""

    heads: tuple[int, ...]
    data_seed: int


def heads(folder: Path, scale: HeadsScale, engine: str = "local") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Models of several heads, and the heads that were tried alone.

    The first table has one row for each kind, combination and step: accuracy, loss, and the numbers of the heads; a
    kind for which there were too few heads is not in it. The second has one row for each head, data seed and step, and
    in `found` what the head is: good, bad or neither.
    """
    folder = folder.resolve()
    tried = _tried(folder, scale, engine)
    found = tried.groupby("head")["found"].first()
    bad, good = (found.index[found == kind].tolist() for kind in ("bad", "good"))
    chosen = [
        (kind, number, members)
        for number in range(scale.combinations)
        for kind, members in _members(scale, bad, good, number).items()
    ]
    # Two combinations may have the same heads.
    runs = list(dict.fromkeys(HeadsRun(members, 0) for _, _, members in chosen))
    rows = _run(folder, scale, runs, engine, "Several heads")
    told = [
        {"kind": kind, "combination": number, "heads": " ".join(map(str, members)), **row}
        for kind, number, members in chosen
        for row in rows[HeadsRun(members, 0)]
    ]
    columns = ["kind", "combination", "heads", "step", "accuracy", "loss"]
    return pd.DataFrame(told, columns=columns), tried


def kind_of(curves: Sequence[Sequence[float]]) -> str:
    """What a head is by its accuracies over training, one curve for each data seed.

    >>> kind_of([[0.1, 0.97, 0.9], [0.1, 0.2, 0.96]]), kind_of([[0.1, 0.5], [0.1, 0.2]]), kind_of([[0.99], [0.1]])
    ('good', 'bad', 'neither')
    """
    if all(max(curve) > GOOD for curve in curves):
        return "good"
    return "bad" if all(curve[-1] < BAD for curve in curves) else "neither"


def _tried(folder: Path, scale: HeadsScale, engine: str) -> pd.DataFrame:
    """Try heads in the order of their numbers, a wave at a time, until there are enough of both kinds."""
    told: Rows = []
    kinds: dict[int, str] = {}
    while len(kinds) < scale.tried and not all(
        list(kinds.values()).count(kind) >= scale.wanted for kind in ("good", "bad")
    ):
        wave = range(len(kinds), min(len(kinds) + scale.wave, scale.tried))
        going = list(wave)
        seen: dict[int, list[Rows]] = {head: [] for head in wave}
        for data_seed in range(scale.data_seeds):
            runs = [HeadsRun((head,), data_seed) for head in going]
            rows = _run(folder, scale, runs, engine, "Heads alone")
            for run in runs:
                seen[run.heads[0]].append(rows[run])
            # A head that is neither on one stream is neither on all: the others need not be tried.
            going = [head for head in going if _kind(seen[head]) != "neither"]
        for head in wave:
            kinds[head] = _kind(seen[head])
            told += [
                {"head": head, "found": kinds[head], "data_seed": data_seed, **row}
                for data_seed, rows_of_seed in enumerate(seen[head])
                for row in rows_of_seed
            ]
    return pd.DataFrame(told)


def _kind(seen: Sequence[Rows]) -> str:
    return kind_of([[row["accuracy"] for row in rows] for rows in seen])


def _members(scale: HeadsScale, bad: Sequence[int], good: Sequence[int], number: int) -> dict[str, tuple[int, ...]]:
    """The heads of a combination of each kind in their order, as far as there are enough, none of them twice."""
    random = np.random.default_rng([CHECKED_WITH, number])
    many = scale.together
    drawn = random.permutation(range(scale.pool))  # first, because it does not depend on what was found
    mixed = random.permutation(bad)
    one = random.permutation(good)
    chosen = {
        "bad": mixed[:many],
        "good": np.concatenate([mixed[: many - 1], one[:1]]),
        "random": drawn[:many],
    }
    return {kind: tuple(sorted(int(head) for head in chosen[kind])) for kind in KINDS if len(chosen[kind]) == many}


def _run(folder: Path, scale: HeadsScale, runs: Sequence[HeadsRun], engine: str, title: str) -> dict[HeadsRun, Rows]:
    """The rows of each run."""
    rows = all_runs(title, partial(_worker, folder, scale), runs, engine)
    checks = len(rows) // max(len(runs), 1)
    return {run: rows[place * checks : (place + 1) * checks] for place, run in enumerate(runs)}


def _worker(folder: Path, scale: HeadsScale) -> "partial[Rows]":
    return partial(one_run, folder, scale)


def one_run(folder: Path, scale: HeadsScale, run: HeadsRun) -> Rows:
    """What was seen of a run, trained now, gone on with, or kept from before."""
    name = "-".join(map(str, run.heads))
    return stage(folder, scale).grow(f"{name}-on-{run.data_seed}", partial(_trained, scale, run))


def begun(scale: HeadsScale, numbers: Sequence[int]) -> Seq2Seq:
    """The model before training: the weights that all share, and the heads with these numbers."""
    task = scale.task
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(BEGINNING)
        model = Seq2Seq(task.vocabulary, **{**HEADS, "heads": 1, "width": scale.width})
        shared = {name: part for name, part in model.state_dict().items() if not name.startswith("attention.heads.")}
        model = Seq2Seq(task.vocabulary, **{**HEADS, "heads": len(numbers), "width": scale.width})
        model.load_state_dict(shared, strict=False)
        for head, number in zip(model.attention.heads, numbers, strict=True):
            torch.manual_seed(FIRST_HEAD + number)
            head.load_state_dict(AttentionHead(scale.width, scale.width).state_dict())
    return model


def _trained(scale: HeadsScale, run: HeadsRun, checkpoint: Path) -> Rows:
    model, task = begun(scale, run.heads), scale.task
    looks = CopyingAccuracy(
        model, task, CHECKED_WITH, range(0, scale.steps + 1, scale.every), scale.sequences, fixed=True
    )
    return train_copying(
        model,
        task,
        checkpoint,
        seed=run.data_seed,
        steps=scale.steps,
        batch=scale.batch,
        looks=looks,
        said={"width": scale.width, "heads": list(run.heads)},
    )
