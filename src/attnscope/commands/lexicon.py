"""`attnscope lexicon`: do words that people find emotional get higher scores from a model?"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ..errors import BadInput
from ..progress import items_done, working
from .answering import AsJson, resumable, say

KINDS = ("svg", "pdf", "png")


@resumable()
def lexicon(
    model: Annotated[str, typer.Argument(help='A name on the Hugging Face hub, a local folder, or "demo".')],
    corpus: Annotated[
        str,
        typer.Argument(
            help='A file (.txt with a text to a line; .jsonl, .tsv or .csv with "text"; .conllu; also .gz), a data set'
            ' as survey takes it (imdb:test), or "demo".'
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder of tables, figures and summary, also while it grows.")],
    words: Annotated[
        str,
        typer.Option(
            "--lexicon",
            help="vader (comes with the extra), warriner (a data set), or a CSV or TSV file with word and value.",
        ),
    ] = "vader",
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", help="A method to score words by; may be given again. All that can be by default."),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Read only so many texts.")] = None,
    minimum_count: Annotated[int, typer.Option(help="How often a word must stand in the texts to be used.")] = 1,
    negative_below: Annotated[
        float | None, typer.Option(help="Words below this value are very negative; each lexicon has its own limit.")
    ] = None,
    positive_from: Annotated[
        float | None, typer.Option(help="Words of this value or above are very positive; each lexicon has its own.")
    ] = None,
    truncate: Annotated[bool, typer.Option("--truncate", help="Cut texts that are too long for the model.")] = False,
    figures: Annotated[
        list[str] | None, typer.Option("--figures", help="Write figures as svg (by default), pdf or png.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Where named data sets lie, before $ATTNSCOPE_DATA.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a study that was stopped.")] = False,
    as_json: AsJson = False,
) -> None:
    """Hold the scores that words get from a model against what people say of the words (Wu, Nguyen & Ong 2020).

    Example: attnscope lexicon my-classifier reviews.txt --lexicon vader --out my-study
    """
    kinds = tuple(figures or KINDS[:1])
    if unknown := set(kinds) - set(KINDS):
        raise BadInput(f"Figures are svg, pdf or png, not {', '.join(sorted(unknown))}.")
    if find_spec("matplotlib") is None:
        raise BadInput("The study is drawn by matplotlib: pip install 'attnscope[lexicon]'.")
    with working(f"Loading {model}"):
        from .. import evaluation
        from ..capture import load

        texts = evaluation.read_texts(corpus, limit, data)
        chosen = evaluation.read_lexicon(words, data, negative_below=negative_below, positive_from=positive_from)
        loaded = load(model)
    with items_done("Texts") as watch:
        study = evaluation.lexicon(
            loaded,
            texts,
            chosen,
            methods,
            minimum_count=minimum_count,
            out=out,
            resume=resume,
            truncate=truncate,
            watch=watch,
        )
    with working("Drawing"):
        written = study.save_figures(out / "figures", kinds)
    if as_json:
        say(json.dumps({"out": str(out), "figures": [str(path) for path in written], **study.to_dict()}))
        return
    say(study.summary())
    say(f"Written: {out}")
