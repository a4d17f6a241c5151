"""`attnscope reproduce`: a paper run again."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ..errors import BadInput
from ..progress import tokens_done, working
from .answering import AsJson, resumable


def reproduce(
    paper: Annotated[str, typer.Argument(help="The paper to run again: vig2019.")],
    scale: Annotated[
        str,
        typer.Option(help="smoke (seconds, a toy model: a trial), cpu (up to an hour or so), paper (as published)."),
    ] = "smoke",
    model: Annotated[str | None, typer.Option(help="Another model than the paper's; claims are then about it.")] = None,
    corpus: Annotated[
        str | None, typer.Option(help="Another corpus, as survey takes it: ud_ewt:dev, wikitext2, a file.")
    ] = None,
    parser: Annotated[str | None, typer.Option(help="The spaCy model that parses plain text.")] = None,
    limit: Annotated[int | None, typer.Option(help="Read only so many sentences, or texts to parse.")] = None,
    by_genre: Annotated[
        bool, typer.Option("--by-genre", help="One reproduction for each genre of the corpus.")
    ] = False,
    documents: Annotated[bool, typer.Option("--documents", help="Whole documents in place of sentences.")] = False,
    data: Annotated[Path | None, typer.Option(help="Where data sets lie, before $ATTNSCOPE_DATA.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to write; named after the paper by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a paper again: its figures and tables, and each claim judged here, the paper's number beside ours.

    Example: attnscope reproduce vig2019 --scale cpu --model gpt2 --data data --out vig2019
    """
    with working(f"Preparing {paper}"):
        from ..reproduce import EXPERIMENTS
    if paper not in EXPERIMENTS:
        raise BadInput(f"There is no experiment {paper!r}: choose {', '.join(EXPERIMENTS)}.")
    with resumable(), tokens_done() as watch:
        result = EXPERIMENTS[paper](
            out or Path(paper),
            scale=scale,
            model=model,
            corpus=corpus,
            parser=parser,
            limit=limit,
            by_genre=by_genre,
            documents=documents,
            data=data,
            resume=resume,
            watch=watch,
        )
    if as_json:
        typer.echo(json.dumps({"out": str(result.folder), "caution": result.caution, "claims": result.to_json()}))
        return
    typer.echo(result.summary())
    typer.echo(f"Written: {result.folder} (open {result.folder / 'report.html'} in a browser)")
