"""The command line: parse, call one function, print. Whatever needs torch is imported inside its command."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import __version__
from .errors import BadInput, WorkerDied
from .progress import texts_done, tokens_done, working

BAD_INPUT, FAILURE, INTERRUPTED = 2, 1, 130


class Commands(TyperGroup):
    """The commands, with one sentence on stderr and an exit code of its own for each way to fail."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what the user can mend is told without a traceback."""
        try:
            return super().invoke(ctx)
        except BadInput as error:
            typer.echo(f"attnscope: {error}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except WorkerDied as error:
            typer.echo(f"attnscope: {error}", err=True)
            raise typer.Exit(FAILURE) from None
        except BrokenPipeError:
            raise  # the reader of our output has gone (`| head`), which typer ends quietly
        except OSError as error:
            typer.echo(f"attnscope: {error.strerror or error}: {error.filename or ''}".rstrip(": "), err=True)
            raise typer.Exit(FAILURE) from None
        except KeyboardInterrupt:
            typer.echo("attnscope: stopped.", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands,
    help="Shows, traces, measures and trains attention. Start with: attnscope demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"attnscope {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def attnscope(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Shows, traces, measures and trains attention. Start with: attnscope demo."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder that report.html is written to.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Show what the shipped model looks at, and write report.html.

    Example: attnscope demo --out somewhere
    """
    with working("Recording the demo model"):
        from .demo import run_demo, show

        result = run_demo(out)
    if as_json:
        typer.echo(json.dumps(result.to_dict()))
    else:
        from rich.console import Console

        show(Console(), result)


@app.command()
def explain(
    model: Annotated[str, typer.Argument(help='A name on the Hugging Face hub, a local folder, or "demo".')],
    text: Annotated[str, typer.Argument(help="The text to explain.")],
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="A method to use; may be given again. All by default.")
    ] = None,
    query: Annotated[int | None, typer.Option(help="The position to ask about, instead of the read-out.")] = None,
    layer: Annotated[int | None, typer.Option(help="The layer to ask about, instead of the last.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show which tokens a model used, by every method, with what each cannot say.

    Example: attnscope explain demo "the key to the cabinets" --method rollout --method blank_out
    """
    with working(f"Explaining with {model}"):
        from . import explaining
        from .capture import load

        result = explaining.explain(load(model), text, methods, query, layer)
    if as_json:
        typer.echo(json.dumps(result.to_dict()))
    else:
        from rich.console import Console

        explaining.show(Console(), result)


@app.command()
def report(
    model: Annotated[str, typer.Argument(help='A name on the Hugging Face hub, a local folder, or "demo".')],
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...", help="The texts to report on.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("report.html"),
    as_json: AsJson = False,
) -> None:
    """Write one offline page on what a model looks at in your texts.

    Example: attnscope report demo "the key to the cabinets" -o report.html
    """
    with working(f"Recording {model}"):
        from .capture import load
        from .report import summary, write_report

        records = list(load(model).records(texts))
        written = write_report(out, records)
    if as_json:
        typer.echo(json.dumps({"report": str(written), "texts": [summary(record) for record in records]}))
    else:
        typer.echo(f"Written: {written}")


@app.command()
def train(
    task: Annotated[str, typer.Argument(help='What to train: "demo" makes the shipped model again.')],
    out: Annotated[Path | None, typer.Option(help="The folder of the model; named after the task by default.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed makes the same model.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")] = False,
) -> None:
    """Train a small model here, from a seed.

    Example: attnscope train demo --out my-demo --seed 1
    """
    with working("Starting"):
        from .lab import TASKS
    if task not in TASKS:
        raise BadInput(f"There is no task {task!r}: choose {', '.join(TASKS)}.")
    typer.echo(f"Written: {TASKS[task](out or Path(task), seed=seed, resume=resume)}")


@app.command()
def trust(
    model: Annotated[str, typer.Argument(help='A name on the Hugging Face hub, a local folder, or "demo".')],
    corpus: Annotated[
        str, typer.Argument(help='A file with one text to a line, JSON lines with "text" (both also .gz), or "demo".')
    ],
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="A method to measure; may be given again. All by default.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Read only so many texts.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder that the table is kept in, also while it grows.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a measurement that was stopped.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure which methods follow what a model does, and end in a verdict.

    Example: attnscope trust demo demo --method raw --method rollout --limit 50
    """
    with working(f"Loading {model}"):
        from . import evaluation
        from .capture import load

        texts = evaluation.read_texts(corpus, limit)
        loaded = load(model)
    with texts_done() as watch:
        result = evaluation.trust(loaded, texts, methods, out=out, resume=resume, watch=watch)
    if as_json:
        typer.echo(json.dumps(result.to_dict()))
        return
    from rich.console import Console

    Console().print(result)
    if out is not None:
        typer.echo(f"Written: {out}")


@app.command()
def survey(
    model: Annotated[str, typer.Argument(help='A name on the Hugging Face hub, a local folder, or "demo".')],
    corpus: Annotated[
        str,
        typer.Argument(
            help="A file (.conllu, .txt, .jsonl, also .gz), a data set by its name (ud_ewt, wikitext2, or one of the"
            ' Hugging Face hub), or "demo" for the shipped grammar.'
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
        typer.Option(help="What to leave out as null attention: first, special, none, or positions such as 0,-1."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Read only so many sentences, or texts where they are parsed.")
    ] = None,
    engine: Annotated[str, typer.Option(help="local, or ray for many machines.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of the Ray cluster; without it Ray is started here.")] = None,
    workers: Annotated[int | None, typer.Option(help="How many Ray workers; all there is room for by default.")] = None,
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
    with working(f"Loading {model}"):
        from . import surveying

        options = {"address": address, "workers": workers}
        asked = {name: value for name, value in options.items() if value is not None}
        if unknown := set(figures or ()) - {"svg", "pdf", "png"}:
            raise BadInput(f"Figures are svg, pdf or png, not {', '.join(sorted(unknown))}.")
        if asked and engine == "local":
            raise BadInput(f"--{', --'.join(asked)} is for --engine ray.")
    with tokens_done() as watch:
        result = surveying.survey(
            model,
            corpus,
            statistics,
            engine,
            out,
            resume,
            null=_null(null),
            parser=parser,
            limit=limit,
            data=data,
            shard_size=shard_size,
            tokens_per_batch=tokens_per_batch,
            threads=threads,
            engine_options=asked,
            watch=watch,
        )
    written = result.figures(out / "figures", tuple(figures)) if figures else []
    if as_json:
        typer.echo(json.dumps({"out": str(out), "card": dict(result.card), "figures": [str(path) for path in written]}))
        return
    typer.echo(result.summary())
    typer.echo(f"Written: {out}" + (f" (open {out / surveying.PAGE} in a browser)" if result.has_map else ""))


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help="The paper to run again: vig2019.")],
    scale: Annotated[
        str, typer.Option(help="smoke (seconds), cpu (up to an hour or so), paper (as published).")
    ] = "smoke",
    model: Annotated[str | None, typer.Option(help="Another model than the paper's; claims are then about it.")] = None,
    corpus: Annotated[str | None, typer.Option(help="Another corpus: ud_ewt, wikitext2, or a file.")] = None,
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
        from .reproduce import EXPERIMENTS
    if paper not in EXPERIMENTS:
        raise BadInput(f"There is no experiment {paper!r}: choose {', '.join(EXPERIMENTS)}.")
    with tokens_done() as watch:
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
        typer.echo(json.dumps({"out": str(result.folder), "claims": result.to_json()}))
        return
    typer.echo(result.summary())
    typer.echo(f"Written: {result.folder} (open {result.folder / 'report.html'} in a browser)")


@app.command()
def bench(
    name: Annotated[str | None, typer.Argument(help="The benchmark to run; all by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure speed beside the peers, in one run.

    Example: attnscope bench flow --json
    """
    with working("Measuring"):
        from .bench import BENCHMARKS

        if name is not None and name not in BENCHMARKS:
            raise BadInput(f"There is no benchmark {name!r}: choose {', '.join(BENCHMARKS)}.")
        figures = [figure for key in ([name] if name else BENCHMARKS) for figure in BENCHMARKS[key]()]
    if as_json:
        typer.echo(json.dumps([figure.to_dict() for figure in figures]))
        return
    from rich.console import Console

    from .bench.figure import table_of

    Console().print(table_of(figures))


def _null(text: str | None) -> str | list[int] | None:
    """A rule by name, or positions as numbers between commas."""
    if text is None or text.replace("_", "").isalpha():
        return text
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise BadInput(f"--null is first, special, none, or positions such as 0,-1, not {text!r}.") from None


def main() -> None:
    """Run the command line."""
    app()
