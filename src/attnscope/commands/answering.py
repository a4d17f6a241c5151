"""What the answers of all commands share: JSON on request, exit codes, and how to go on after Ctrl-C."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

BAD_INPUT, FAILURE, INTERRUPTED = 2, 1, 130

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]


@contextmanager
def resumable() -> Iterator[None]:
    """Work that is kept while it grows: who stops it is told that it can go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("Stopped. Go on with --resume, from the last checkpoint if there is one yet.", err=True)
        raise typer.Exit(INTERRUPTED) from None
