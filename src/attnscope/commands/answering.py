"""What the answers of all commands share: what they say, JSON on request, exit codes, how to go on after Ctrl-C."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from ..terminal import visible

BAD_INPUT, FAILURE, INTERRUPTED = 2, 1, 130
LONGEST_COMPLAINT = 1000
"""Characters of a sentence on what went wrong."""

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]


def seconds_of(time: str | float) -> float:
    """The seconds of a time as people write it.

    >>> seconds_of("90s"), seconds_of("2m"), seconds_of("1h"), seconds_of("30")
    (90.0, 120.0, 3600.0, 30.0)
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    text = str(time).strip()
    try:
        seconds = float(text.rstrip("smh")) * units.get(text[-1:], 1.0)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise typer.BadParameter(f"{text!r} is no time: write 90s, 2m or 1h.")
    return seconds


def say(text: str, *, err: bool = False) -> None:
    """Print text, of whatever origin, as text; all that a command says comes through here or a `PlainConsole`."""
    typer.echo(visible(text), err=err)


def complain(error: object) -> None:
    """Say what went wrong, in one line, and not at the length of a name that somebody made up."""
    line = visible(" ".join(str(error).split("\n")))
    if len(line) > LONGEST_COMPLAINT:
        line = f"{line[: LONGEST_COMPLAINT // 2]} … {line[-LONGEST_COMPLAINT // 4 :]}"
    typer.echo(f"attnscope: {line}", err=True)


@contextmanager
def resumable() -> Iterator[None]:
    """A command, or a part of it, whose work is kept while it grows: who stops it is told that it can go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("Stopped. Go on with --resume, from the last checkpoint if there is one yet.", err=True)
        raise typer.Exit(INTERRUPTED) from None
