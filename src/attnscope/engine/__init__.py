"""Long computations that survive a kill, on one machine or many: every engine by its name."""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Literal

from ..errors import BadInput, WorkerDied
from . import cores, ray
from .cores import Item, Result
from .store import (
    RECIPE,
    UNFINISHED,
    Store,
    check_recipe,
    checked_folder,
    fingerprint_of,
    load_checkpoint,
    recipe_in,
    save_checkpoint,
)

Engine = Callable[..., Iterator[tuple[int, Any]]]
EngineName = Literal["local", "cores", "ray"]


def run_here(
    make_worker: Callable[[], Callable[[Item], Result]], items: Iterable[tuple[int, Item]]
) -> Generator[tuple[int, Result], None, None]:
    """Give the result of each numbered item, in order, by one worker in this process, made when the first item comes.

    >>> list(run_here(lambda: str.upper, [(0, "the"), (1, "key")]))
    [(0, 'THE'), (1, 'KEY')]
    """
    work = None
    for number, item in items:
        work = work or make_worker()
        yield number, work(item)


# All have the signature of `run_here`; more options are keywords. Our ray.py imports the library only when it runs.
ENGINES: dict[EngineName, Engine] = {"local": run_here, "cores": cores.run, "ray": ray.run}


def engine(name: str | Engine) -> Engine:
    """The engine of that name; a function with the signature of `run_here` is an engine itself.

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
    "EngineName",
    "Store",
    "WorkerDied",
    "check_recipe",
    "checked_folder",
    "engine",
    "fingerprint_of",
    "load_checkpoint",
    "recipe_in",
    "run_here",
    "save_checkpoint",
]
