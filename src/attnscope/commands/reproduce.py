"""`attnscope reproduce`: a paper run again."""

import inspect
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ..errors import BadInput
from ..progress import tokens_done, working
from .answering import AsJson, resumable

PAPERS = ("vig2019", "abnar2020", "wu2020", "sun2020", "snell2021")


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"The paper to run again: {', '.join(PAPERS)}.")],
    scale: Annotated[
        str,
        typer.Option(
            help="smoke (seconds, a toy model: a trial), cpu (an hour or so; snell2021 four), paper (as published)."
        ),
    ] = "smoke",
    model: Annotated[
        str | None, typer.Option(help="vig2019: another model than the paper's; abnar2020: a masked one, for Figure 4.")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="abnar2020: what Table 3's classifier is fine-tuned from; sun2020: what reads SST beyond the paper."
            " A hub name or a folder."
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            help="vig2019: another corpus, as survey takes it. abnar2020: a file that `attnscope data build agreement`"
            " wrote, or Linzen's .tsv."
        ),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(help="wu2020, sun2020, snell2021: word vectors, a GloVe file, glove-50 (the package) or scratch."),
    ] = None,
    lexicon: Annotated[
        str | None, typer.Option(help="wu2020: what raters say of words, warriner, vader or a file.")
    ] = None,
    send: Annotated[
        Path | None, typer.Option(help="wu2020: the folder of SEND, which its authors give on request.")
    ] = None,
    probabilities: Annotated[
        str | None, typer.Option(help="wu2020: how classes are learned, sigmoid as in the paper's code, or softmax.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="sun2020, snell2021: local, or cores or ray, which spread the models to train over workers."),
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(help="snell2021: which to run now, with commas between them; kept ones are taken as they are."),
    ] = None,
    parser: Annotated[str | None, typer.Option(help="The spaCy model that parses plain text.")] = None,
    limit: Annotated[
        int | None, typer.Option(help="Read only so many sentences, or texts to parse, of each source.")
    ] = None,
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
    if paper not in PAPERS:  # told before the papers themselves are imported, which takes seconds
        raise BadInput(f"There is no experiment {paper!r}: choose {', '.join(PAPERS)}.")
    with working(f"Preparing {paper}"):
        from ..reproduce import EXPERIMENTS
    given = {
        "model": model,
        "encoder": encoder,
        "corpus": corpus,
        "vectors": vectors,
        "lexicon": lexicon,
        "send": send,
        "probabilities": probabilities,
        "engine": engine,
        "stages": stages,
        "parser": parser,
        "limit": limit,
        "by_genre": by_genre or None,
        "documents": documents or None,
        "data": data,
    }
    given = {name: value for name, value in given.items() if value is not None}
    taken = inspect.signature(EXPERIMENTS[paper]).parameters
    if unknown := [name for name in given if name not in taken]:
        raise BadInput(f"{paper} takes no --{unknown[0].replace('_', '-')}.")
    with resumable(), tokens_done() if "watch" in taken else nullcontext() as watch:
        options = {"watch": watch} if "watch" in taken else {}
        result = EXPERIMENTS[paper](out or Path(paper), scale=scale, resume=resume, **given, **options)
    if as_json:
        typer.echo(json.dumps({"out": str(result.folder), "caution": result.caution, "claims": result.to_json()}))
        return
    typer.echo(result.summary())
    typer.echo(f"Written: {result.folder} (open {result.folder / 'report.html'} in a browser)")
