"""`attnscope data`: which data sets there are, where they are, how to get them, and training data built from them."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..corpora import CORPORA, add_file, dataset, dataset_named, fetch, files_here
from ..errors import BadInput
from ..numerals import counted
from ..progress import bytes_done, tokens_done, waiting
from .answering import AsJson, resumable, say

data = typer.Typer(
    help="Data sets: list them, find them, get them, and build training data from them.",
    no_args_is_help=True,
    add_completion=False,
)

Name = Annotated[str, typer.Argument(help="The name of a data set, as `attnscope data list` shows it.")]
Place = Annotated[Path | None, typer.Option("--data", help="Where to look for data sets before $ATTNSCOPE_DATA.")]
Target = Annotated[Path | None, typer.Option("--data", help="Where to put it; the user's cache by default.")]


@data.command("list")
def list_datasets(place: Place = None, as_json: AsJson = False) -> None:
    """Show every data set: what it is, its licence, and which of its splits are here.

    Example: attnscope data list
    """
    found = {name: files_here(name, place) for name in CORPORA}
    if as_json:
        say(json.dumps([_describe(name, files) for name, files in found.items()]))
        return
    from rich.table import Table

    from ..terminal import PlainConsole

    table = Table("name", "splits here", "licence", "what it is")
    for name, files in found.items():
        entry = CORPORA[name]
        here = "all" if len(files) == len(entry.files) else ", ".join(files) or "none"
        table.add_row(name, here, entry.licence, entry.about)
    PlainConsole().print(table)


@data.command()
def where(name: Name, place: Place = None, as_json: AsJson = False) -> None:
    """Print the folder of a data set.

    Example: attnscope data where ud_ewt
    """
    folder = dataset(name, place)
    say(json.dumps(_describe(name, files_here(name, place))) if as_json else str(folder))


@data.command()
def get(
    name: Name,
    splits: Annotated[
        list[str] | None, typer.Option("--split", help="A split to get; may be given again. All by default.")
    ] = None,
    target: Target = None,
    as_json: AsJson = False,
) -> None:
    """Download a data set from its official place, check it and put it in place. What is there already is kept.

    Example: attnscope data get ud_ewt --split dev
    """
    with bytes_done() as watch:
        paths = fetch(name, splits or (), target, watch)
    _tell(name, paths, as_json)


@data.command()
def add(
    name: Name,
    file: Annotated[Path, typer.Argument(help="The file at hand, also gzipped.")],
    split: Annotated[str | None, typer.Option(help="Which split it is, if its name does not tell.")] = None,
    target: Target = None,
    as_json: AsJson = False,
) -> None:
    """Put a file that you have in its place, after checking that it is what it should be.

    Example: attnscope data add sst trees/dev.txt --split dev
    """
    _tell(name, [add_file(name, file, split, target)], as_json)


@data.command()
@resumable()
def build(
    what: Annotated[str, typer.Argument(help='What to build: "agreement".')],
    sources: Annotated[
        list[str],
        typer.Option(
            "--from",
            help="A file (.conllu, .txt, .jsonl, .tsv, also .gz) or a data set (ud_ewt:train, imdb:train, wikitext2);"
            " may be given again. agreement is Linzen's subset, for a test set.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The file of JSON lines to write, packed if it ends in .gz.")],
    limit: Annotated[
        int | None,
        typer.Option(
            help="Read only so many sentences of each source (texts where they are parsed), spread evenly over it."
        ),
    ] = None,
    vocabulary_size: Annotated[
        int, typer.Option(help="How many of the most frequent words are kept; others become their tag.")
    ] = 10_000,
    words: Annotated[
        Path | None, typer.Option(help="The words of another build (.words.txt) to keep instead; for a test set.")
    ] = None,
    parser: Annotated[str, typer.Option(help="The spaCy model that parses plain text.")] = "en_core_web_sm",
    place: Place = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a build that was stopped.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build training data for the small models from text: sentences up to a verb, and the number of that verb.

    Example: attnscope data build agreement --from ud_ewt:train --from imdb:train --out agreement.jsonl.gz
    """
    if what != "agreement":
        raise BadInput(f"There is nothing called {what!r} to build: choose agreement.")
    with waiting("Starting"):
        from ..lab.data import build_agreement
    with tokens_done() as watch:
        card = build_agreement(
            sources,
            out,
            parser=parser,
            limit=limit,
            vocabulary_size=vocabulary_size,
            words=words,
            data=place,
            resume=resume,
            watch=watch,
        )
    say(json.dumps({"out": str(out), "card": card}) if as_json else _summary(card))
    if not as_json:
        say(f"Written: {out}")


def _summary(card: dict[str, Any]) -> str:
    by_attractors = ", ".join(f"{number:,} with {count}" for count, number in card["attractors"].items())
    lines = [f"{counted(card['examples'], 'example')}; by attractors: {by_attractors}."]
    lines += [f"  {source['name']}: {counted(source['examples'], 'example')}" for source in card["sources"]]
    lines += [f"  left out, {reason}: {number:,}" for reason, number in card["left_out"].items()]
    return "\n".join([*lines, f"  Linzen's subset: {card['linzen_subset']}"])


def _describe(name: str, files: dict[str, Path]) -> dict[str, Any]:
    entry = dataset_named(name)
    return {
        "name": name,
        "about": entry.about,
        "licence": entry.licence,
        "source": entry.source,
        "splits": list(entry.files),
        "classes": [] if entry.labels is None else list(dict.fromkeys(entry.labels.classes.values())),
        "here": {split: str(path) for split, path in files.items()},
        "can_be_downloaded": bool(entry.downloads),
    }


def _tell(name: str, paths: list[Path], as_json: bool) -> None:
    if as_json:
        say(json.dumps({"name": name, "files": [str(path) for path in paths]}))
        return
    say(f"{name}: {dataset_named(name).licence}, from {dataset_named(name).source}")
    for path in paths:
        say(f"In place: {path}")
