"""What a long computation is asked for: how many workers it may have, and that one that goes on is asked the same."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import BadInput, check_number

LONGEST_SHOWN = 80
MOST_WORKERS, MOST_THREADS = 4096, 1024
"""More than any machine has use for; with far more, the system gives up in the middle of the work."""


def check_workers(workers: int | None, threads: int) -> None:
    """Refuse numbers of workers and of threads of each that no machine can serve; None is as many as there is room."""
    if workers is not None:
        check_number("workers", workers, 1, MOST_WORKERS)
    check_number("threads", threads, 1, MOST_THREADS)


def check_recipe(where: Path, what: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Refuse to go on with what another has begun.

    >>> check_recipe(Path("out"), "survey", {"limit": 2, "null": "none"}, {"limit": 3, "null": "none"})
    Traceback (most recent call last):
    attnscope.errors.BadInput: out belongs to another survey (limit was 2, is now 3): choose another folder, or ask the
    same again.
    """
    if different := "; ".join(_differences(theirs, ours)):
        raise BadInput(
            f"{where} belongs to another {what} ({different}): choose another folder, or ask the same again."
        )


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any], inside: str = "") -> Iterator[str]:
    """What was asked otherwise, with both values; of a nest, only the entries that differ."""
    for name, now in ours.items():
        before = theirs.get(name)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            yield from _differences(before, now, f"{inside}{name} ")
        elif before != now:
            yield f"{inside}{name} was {_shown(before)}, is now {_shown(now)}"


def _shown(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    if value is None:
        return "not given"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
