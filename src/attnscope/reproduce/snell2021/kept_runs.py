"""Independent runs, each kept in a file of its own: done once, read ever after, and gone on with after a kill."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...engine import engine as engine_named
from ...files import written_atomically
from ...progress import items_done
from ..recipe import check_begun, keep_recipe

Rows = list[dict[str, Any]]
Run = TypeVar("Run")


def kept_folder(folder: Path, settings: Mapping[str, Any]) -> Path:
    """The folder of a stage, if what is kept in it was trained with the same settings."""
    told = json.loads(json.dumps(settings))  # as it is read again
    check_begun(folder, told)
    keep_recipe(folder, told)
    return folder


def once(path: Path, train: Callable[[Path], Rows]) -> Rows:
    """What the file holds, or what `train(checkpoint)` gives, which is then in the file; the checkpoint goes."""
    if path.exists():
        found: Rows = json.loads(path.read_text(encoding="utf-8"))
        return found
    checkpoint = path.with_suffix(".safetensors")
    rows = train(checkpoint)
    with written_atomically(path) as temporary:
        temporary.write_text(json.dumps(rows) + "\n", encoding="utf-8")
    checkpoint.unlink(missing_ok=True)
    return rows


def all_runs(title: str, make_worker: Callable[[], Callable[[Run], Rows]], runs: Sequence[Run], engine: str) -> Rows:
    """The rows of all runs in their order, however the engine spreads them."""
    done: dict[int, Rows] = {}
    with items_done(title) as watch:
        for number, rows in engine_named(engine)(make_worker, enumerate(runs)):
            done[number] = rows
            watch(len(done), len(runs))
    return [row for number in range(len(runs)) for row in done[number]]
