"""`attnscope survey`: what each head does over a corpus."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ..errors import BadInput
from ..progress import quiet_libraries, tokens_done, waiting, working
from .answering import AsJson, resumable, say


@resumable()
def survey(
    model: Annotated[str, typer.Argument(help='A name on the Hugging Face hub, a local folder, or "demo".')],
    corpus: Annotated[
        str,
        typer.Argument(
            help="A file (.conllu, .txt, .jsonl, .tsv, .csv, also .gz); a data set by its name, with a split"
            " (ud_ewt:dev, wikitext2:valid); one of the Hugging Face hub or in a folder, as NAME:SPLIT or"
            " NAME:CONFIGURATION:SPLIT,"
            ' with #COLUMN where the text is in another column than "text" (fancyzhx/amazon_polarity:test#content);'
            ' or "demo" for the shipped grammar.'
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the survey: tables, page, card; also while it grows.")],
    statistics: Annotated[
        list[str] | None,
        typer.Option("--statistics", help="A statistic to take; may be given again. All that can be by default."),
    ] = None,
    parser: Annotated[
        str | None, typer.Option(help="The spaCy model that parses plain text, e.g. en_core_web_sm.")
    ] = None,
    null: Annotated[
        str | None,
        typer.Option(
            help="What to leave out as null attention: first, special, sinks, none, or positions such as 0,-1."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Read only so many sentences, or texts where they are parsed.")
    ] = None,
    engine: Annotated[str, typer.Option(help="local, cores (processes here) or ray (many machines).")] = "local",
    address: Annotated[str | None, typer.Option(help="Of the Ray cluster; without it Ray is started here.")] = None,
    workers: Annotated[int | None, typer.Option(help="Of cores or ray; all there is room for by default.")] = None,
    threads: Annotated[int | None, typer.Option(help="Of each worker; the same number gives the same bits.")] = None,
    shard_size: Annotated[int | None, typer.Option(help="How many texts are done at a time.")] = None,
    tokens_per_batch: Annotated[
        int, typer.Option(help="Tokens run together, padding included; more for a GPU.")
    ] = 2048,
    figures: Annotated[
        list[str] | None, typer.Option("--figures", help="Also write figures as svg, pdf or png; may be given again.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Where named data sets lie, before $ATTNSCOPE_DATA.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a survey that was stopped.")] = False,
    as_json: AsJson = False,
) -> None:
    """Survey what each head of a model does over a corpus: tables, roles, exemplars and a page.

    Example: attnscope survey demo demo --out my-survey --limit 200
    """
    options = {"address": address, "workers": workers}
    engine_options = {name: value for name, value in options.items() if value is not None}
    left_out = _null(null)
    if unknown := set(figures or ()) - {"svg", "pdf", "png"}:
        raise BadInput(f"Figures are svg, pdf or png, not {', '.join(sorted(unknown))}.")
    if engine_options and engine == "local":
        raise BadInput(f"--{', --'.join(engine_options)} is not for --engine local.")
    with waiting("Checking what is asked"):
        from ..surveying.plan import plan_survey

        plan = plan_survey(
            corpus,
            statistics,
            engine,
            out,
            resume=resume,
            null=left_out,
            parser=parser,
            limit=limit,
            data=data,
            shard_size=shard_size,
            tokens_per_batch=tokens_per_batch,
            threads=threads,
            engine_options=engine_options,
        )
    with working(f"Loading {model}"):
        from ..surveying.passes import measure_corpus
    with quiet_libraries(), tokens_done() as watch:
        result = measure_corpus(model, plan, watch)
    written = result.figures(out / "figures", tuple(figures)) if figures else []
    if as_json:
        say(json.dumps({"out": str(out), "card": dict(result.card), "figures": [str(path) for path in written]}))
        return
    from ..surveying import PAGE

    say(result.summary())
    say(f"Written: {out}" + (f" (open {out / PAGE} in a browser)" if result.has_map else ""))


def _null(text: str | None) -> str | list[int] | None:
    """A rule by name, or positions as numbers between commas."""
    if text is None or text.replace("_", "").isalpha():
        return text
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise BadInput(f"--null is first, special, sinks, none, or positions such as 0,-1, not {text!r}.") from None
