"""The engine of one machine: one worker, in this process, one item after the other."""

from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def run(
    make_worker: Callable[[], Callable[[Item], Result]], items: Iterable[tuple[int, Item]]
) -> Generator[tuple[int, Result], None, None]:
    """Give the result of each numbered item, in order; the worker is made when the first item comes.

    >>> list(run(lambda: str.upper, [(0, "the"), (1, "key")]))
    [(0, 'THE'), (1, 'KEY')]
    """
    work = None
    for number, item in items:
        work = work or make_worker()
        yield number, work(item)
