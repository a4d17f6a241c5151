"""Independent runs, each kept in a file of its own: done once, read ever after, and gone on with after a kill."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from ...engine import Store
from ...engine import engine as engine_named
from ...progress import items_done

Rows = list[dict[str, Any]]
Run = TypeVar("Run")


STAGE = "stage"


def stage(folder: Path, scale: Any) -> Store:
    """Where the runs of a stage are kept, if what is there was trained at the same scale."""
    return Store(folder, STAGE, asdict(scale))


def all_runs(title: str, make_worker: Callable[[], Callable[[Run], Rows]], runs: Sequence[Run], engine: str) -> Rows:
    """The rows of all runs in their order, however the engine spreads them."""
    done: dict[int, Rows] = {}
    with items_done(title) as watch:
        for number, rows in engine_named(engine)(make_worker, enumerate(runs)):
            done[number] = rows
            watch(len(done), len(runs))
    return [row for number in range(len(runs)) for row in done[number]]
