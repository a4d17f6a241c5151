"""`attnscope report`: one offline page on texts, or on what a classifier gets wrong."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import BadInput
from ..files import check_can_be_made
from ..numerals import counted
from ..progress import methods_done, working
from .answering import Against, AsJson, Budget, By, Methods, Replacement, Signed, Target, Truncate, say

if TYPE_CHECKING:
    from ..explaining import Explanation


def report(
    model: Annotated[str, typer.Argument(help='A name on the Hugging Face hub, a local folder, or "demo".')],
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT...", help="The texts to report on, or files of them as trust reads them (texts.txt)."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("report.html"),
    methods: Methods = None,
    limit: Annotated[int | None, typer.Option(help="Read only so many texts of each file.")] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="The column of a .tsv, .csv or .jsonl file with the right labels: what is wrong comes first."
        ),
    ] = None,
    target: Target = None,
    against: Against = None,
    by: By = "word",
    signed: Signed = True,
    replacement: Replacement = None,
    truncate: Truncate = False,
    budget: Budget = 60.0,
    measured: Annotated[
        Path | None, typer.Option("--trust", help="What attnscope trust has written: shown beside each method.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write one offline page on your texts: the answer, the tokens under each method, and every layer and head.

    With --labels it is a page for a classifier that fails: wrong predictions first, the words that pushed them, and the
    accuracy when these are taken out.

    Example: attnscope report demo "the key to the cabinets" -o report.html
    Example: attnscope report MODEL texts.tsv --labels gold
    """
    check_can_be_made(out)
    if labels is not None:
        asked: dict[str, object] = {"--methods": methods, "--target": target, "--against": against, "--trust": measured}
        asked |= {"--by": None if by == "word" else by, "--unsigned": None if signed else True}
        if useless := [name for name, value in asked.items() if value is not None]:
            raise BadInput(f"{useless[0]} has no use beside --labels, which holds each answer against the right one.")
        _report_mistakes(model, texts, labels, limit, out, replacement, truncate, budget, as_json)
        return
    given = _given_texts(texts, limit)
    with working(f"Loading {model}"):
        from ..capture import load
        from ..evaluation import Trust
        from ..explaining import explain
        from ..report import write_report

        table = None if measured is None else Trust.load(measured)
        loaded = load(model)
    with methods_done() as watch:

        def show_first(quick: "Explanation") -> None:
            """The page of one text is there before the slow methods begin."""
            if len(given) == 1:
                names = " and ".join(quick.to_come)
                page = write_report(out, quick, trust=table)
                watch.console.print(f"Written: {page}, by the quick methods. {names} will be added.", highlight=False)

        explanations = [
            explain(
                loaded,
                text,
                None if methods == ["all"] else methods,
                target=target,
                against=against,
                by=by,
                signed=signed,
                replacement=replacement,
                truncate=truncate,
                budget=None if methods else budget / len(given),
                watch=watch,
                show_first=show_first,
            )
            for text in given
        ]
    with working(f"Writing on {counted(len(given), 'text')}"):
        written = write_report(out, explanations, trust=table)
    if as_json:
        told = [explanation.to_dict() for explanation in explanations]
        say(json.dumps({"report": str(written), "texts": told}))
    else:
        say(f"Written: {written}")


def _report_mistakes(
    model: str,
    files: list[str],
    column: str,
    limit: int | None,
    out: Path,
    replacement: str | None,
    truncate: bool,
    budget: float,
    as_json: bool,
) -> None:
    """Write the page of what a classifier gets wrong in files with labels."""
    with working(f"Loading {model}"):
        from ..capture import load
        from ..evaluation import mistakes
        from ..report import write_mistakes
        from ..syntax import labelled_texts

        rows = [row for file in files for row in labelled_texts(file, column, limit)]
        loaded = load(model)
    texts, labels = ([row[side] for row in rows] for side in (0, 1))
    with methods_done() as watch:
        found = mistakes(loaded, texts, labels, replacement=replacement, truncate=truncate, budget=budget, watch=watch)
    written = write_mistakes(out, found)
    if as_json:
        say(json.dumps({"report": str(written), **found.to_dict()}))
        return
    say(f"{found.texts - len(found.mistakes)} of {counted(found.texts, 'text')} right ({found.accuracy:.1%}).")
    for word in found.shared:
        say(
            f"  {word.word!r} pushed {len(word.mistakes)} to {word.predicted}: right on {word.right} of {word.texts}"
            f" texts with it, on {word.right_without} without."
        )
    say(f"Written: {written}")


def _given_texts(said: list[str], limit: int | None) -> list[str]:
    """The texts among what is said and those of its files, of which is told that they are read."""
    from ..syntax import names_a_file, texts_of

    files = {text: texts_of(text, limit=limit) for text in said if names_a_file(text)}
    if limit is not None and not files:
        raise BadInput("--limit is for texts that are read from a file, and none is named.")
    for name, inside in files.items():
        say(f"Read as a file: {name}, {counted(len(inside), 'text')}.", err=True)
    return [one for text in said for one in files.get(text, [text])]
