"""Long computations that survive a kill, on one machine or many: every engine by its name."""

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import BadInput, WorkerDied
from . import cores, local, ray
from .cores import check_workers
from .store import RECIPE, UNFINISHED, Store, check_recipe, checked_folder, load_checkpoint, recipe_in, save_checkpoint

Engine = Callable[..., Iterator[tuple[int, Any]]]

# All have the signature of `local.run`; more options are keywords. Our ray.py imports the library only when it runs.
ENGINES: dict[str, Engine] = {"local": local.run, "cores": cores.run, "ray": ray.run}


def engine(name: str | Engine) -> Engine:
    """The engine of that name; a function with the signature of `local.run` is an engine itself.

    >>> list(engine("local")(lambda: len, [(0, "attention")]))
    [(0, 9)]
    """
    if callable(name):
        return name
    if name not in ENGINES:
        raise BadInput(f"There is no engine {name!r}: choose one of {', '.join(ENGINES)}, or pass a function.")
    return ENGINES[name]


__all__ = [
    "ENGINES",
    "RECIPE",
    "UNFINISHED",
    "Engine",
    "Store",
    "WorkerDied",
    "check_recipe",
    "check_workers",
    "checked_folder",
    "engine",
    "load_checkpoint",
    "recipe_in",
    "save_checkpoint",
]
