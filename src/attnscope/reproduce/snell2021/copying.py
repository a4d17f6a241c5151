"""Copying, Figure 3 and section 6.2: what is learned by seed, and the lexical probe under uniform attention."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import torch

from ...lab.copying_training import CopyingAccuracy, CopyingLexical, train_copying
from ...lab.data.copying import CopyingTask, copying_task
from ...lab.models import Seq2Seq
from .kept_runs import Rows, all_runs, stage

TASKS = ("same", "choice", "mixture", "reordered")
"""Permutations of the same words, some of half as many again, one of two sets, and a fixed order of the output."""
PROBED = ("choice", "reordered")
"""The two tasks of section 6.2, for which the paper says that β under uniform attention is the same."""


@dataclass(frozen=True)
class CopyingScale:
    """How many seeds each task has, and how long it is trained."""

    length: int
    width: int
    steps: int
    reordered_steps: int
    """Of the output in a fixed order, of which the paper speaks after 300."""
    batch: int
    seeds: Mapping[str, int]
    """Of each task with learned attention."""
    uniform_seeds: int
    """Of the two tasks of section 6.2 with uniform attention."""
    every: int = 10
    sequences: int = 50

    def steps_of(self, run: "CopyingRun") -> int:
        """How long a run is trained; both tasks under uniform attention equally long."""
        return self.reordered_steps if (run.task, run.attention) == ("reordered", "learned") else self.steps

    def task(self, name: str) -> CopyingTask:
        """A task at this scale's length."""
        return copying_task(name, self.length)


SMOKE = CopyingScale(5, 16, 20, 30, 8, dict.fromkeys(TASKS, 2), 1, sequences=10)
CPU = CopyingScale(40, 256, 200, 300, 128, {"same": 20, "choice": 20, "mixture": 6, "reordered": 4}, 2)
PAPER = CopyingScale(40, 256, 300, 300, 128, dict.fromkeys(TASKS, 20), 5)


@dataclass(frozen=True)
class CopyingRun:
    """One training: the task, whether attention is learned or uniform, and the seed of weights and sequences."""

    task: str
    attention: str
    seed: int


def copying(folder: Path, scale: CopyingScale, engine: str = "local") -> pd.DataFrame:
    """One row for each task, attention, seed and step: accuracy, loss, and the lexical probe of uniform attention.

    `lexical_right` and `lexical_other` are means of log β at the source place of the right word and at others,
    `lexical_top` how often β is largest at the right place; they are there where attention is uniform.
    """
    runs = [
        CopyingRun(task, "learned", seed)
        for seed in range(max(scale.seeds.values()))
        for task in TASKS
        if seed < scale.seeds.get(task, 0)
    ]
    runs += [CopyingRun(task, "uniform", seed) for seed in range(scale.uniform_seeds) for task in PROBED]
    worker = partial(_worker, folder.resolve(), scale)  # the workers of a cluster stand in folders of their own
    return pd.DataFrame(all_runs("Copying", worker, runs, engine))


def _worker(folder: Path, scale: CopyingScale) -> "partial[Rows]":
    return partial(one_run, folder, scale)


def one_run(folder: Path, scale: CopyingScale, run: CopyingRun) -> Rows:
    """What was seen of a run, trained now, gone on with, or kept from before."""
    return stage(folder, scale).grow(f"{run.task}-{run.attention}-{run.seed}", partial(_trained, scale, run))


def _trained(scale: CopyingScale, run: CopyingRun, checkpoint: Path) -> Rows:
    task = scale.task(run.task)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        model = Seq2Seq(task.vocabulary, width=scale.width, attention=run.attention)
    probe = CopyingLexical if run.attention == "uniform" else CopyingAccuracy
    looks = probe(model, task, run.seed, range(0, scale.steps_of(run) + 1, scale.every), scale.sequences)
    seen = train_copying(
        model,
        task,
        checkpoint,
        seed=run.seed,
        steps=scale.steps_of(run),
        batch=scale.batch,
        looks=looks,
        said={"width": scale.width, "attention": run.attention},
    )
    return [{"task": run.task, "attention": run.attention, "seed": run.seed, **row} for row in seen]
