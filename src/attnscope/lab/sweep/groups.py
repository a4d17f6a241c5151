"""A sweep spread over an engine: one group for each variant and seed, each with a checkpoint of its own."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...engine import Engine, engine
from ..data.packed import ClassifiedTexts
from .runs import RunSettings, TrainedRun
from .training import sweep


def groups_of(runs: Sequence[RunSettings]) -> dict[str, list[RunSettings]]:
    """The runs of each variant and seed, by a name that fits a file.

    >>> list(groups_of([RunSettings("dot", 1), RunSettings("dot", 10), RunSettings("additive", 1, seed=3)]))
    ['dot-0', 'additive-3']
    """
    groups: dict[str, list[RunSettings]] = {}
    for run in runs:
        groups.setdefault(f"{run.variant}-{run.seed}", []).append(run)
    return groups


def sweep_groups(
    data: ClassifiedTexts,
    runs: Sequence[RunSettings],
    *,
    on: str | Engine = "local",
    options: Mapping[str, Any] | None = None,
    checkpoints: Path | None = None,
    **training: Any,
) -> list[TrainedRun]:
    """Train groups of runs on an engine, and give all runs in the order they were asked in.

    Args:
        data: As `sweep` takes it; it travels to each worker once.
        runs: What is asked of each.
        on: `local`, where groups follow each other and each has all threads, or `ray`, where workers take them.
        options: Of the engine, such as `workers` and `threads`.
        checkpoints: A folder with one checkpoint for each group, which all workers must see.
        **training: As `sweep` takes them.
    """
    groups = groups_of(runs)
    items = list(enumerate(groups.items()))
    work = partial(_worker, data, checkpoints, training)
    found: dict[RunSettings, TrainedRun] = {}
    for _, trained in engine(on)(work, items, **(options or {})):
        found |= {run.settings: run for run in trained}
    return [found[run] for run in runs]


def _worker(
    data: ClassifiedTexts, checkpoints: Path | None, training: Mapping[str, Any]
) -> Callable[[tuple[str, list[RunSettings]]], list[TrainedRun]]:
    """What trains one group."""

    def train(group: tuple[str, list[RunSettings]]) -> list[TrainedRun]:
        name, runs = group
        file = None if checkpoints is None else checkpoints / f"{name}.safetensors"
        return sweep(data, runs, checkpoint=file, **training)

    return train
