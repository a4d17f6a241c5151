"""What commands share: options of the same name, what they say, JSON on request, exit codes, going on after Ctrl-C."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

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


# ---- what explain and report are asked alike: which methods, about what, and for how long

Methods = Annotated[
    list[str] | None,
    typer.Option("--methods", help='A method to ask; may be given again. "all", however long it takes.'),
]
Target = Annotated[str | None, typer.Option(help="The outcome to explain, a label or a token, not the predicted one.")]
Against = Annotated[
    str | None, typer.Option(help="Another outcome: why is the answer not that? Methods follow the logit difference.")
]
By = Annotated[Literal["token", "word", "sentence"], typer.Option(help="What gets a score each.")]
Signed = Annotated[
    bool,
    typer.Option("--signed/--unsigned", help="Tell what speaks for the outcome from what speaks against it, or not."),
]
Replacement = Annotated[
    str | None, typer.Option(help="What blank-out puts in a word's place: unk, mask, pad, delete or zero.")
]
Truncate = Annotated[bool, typer.Option("--truncate", help="Cut a text that is too long for the model.")]
Budget = Annotated[
    float,
    typer.Option(
        parser=seconds_of,
        metavar="TIME",
        help="For slow methods, all texts together (90s, 2m, 1h); what does not fit is named.",
    ),
]
