"""The command line: parse, call one function, print. Whatever needs torch is imported inside its command."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import __version__
from .errors import BadInput

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
    with _working("Recording the demo model"):
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
    with _working(f"Explaining with {model}"):
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
    with _working(f"Recording {model}"):
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
    with _working("Starting"):
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
    with _working(f"Loading {model}"):
        from . import evaluation
        from .capture import load

        texts = evaluation.read_texts(corpus, limit)
        loaded = load(model)
    with _texts_done() as watch:
        result = evaluation.trust(loaded, texts, methods, out=out, resume=resume, watch=watch)
    if as_json:
        typer.echo(json.dumps(result.to_dict()))
        return
    from rich.console import Console

    Console().print(result)
    if out is not None:
        typer.echo(f"Written: {out}")


@app.command()
def bench(
    name: Annotated[str | None, typer.Argument(help="The benchmark to run; all by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure speed beside the peers, in one run.

    Example: attnscope bench flow --json
    """
    with _working("Measuring"):
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


@contextmanager
def _texts_done() -> Iterator[Callable[[int, Any], None]]:
    """On a terminal, say what the work will cost and then show how many texts are done and the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("", total=None)

        def watch(done: int, cost: Any) -> None:
            if progress.tasks[0].total is None and console.is_terminal:
                console.print(f"{cost}.", highlight=False)
            progress.update(task, completed=done, total=cost.texts)

        yield watch


@contextmanager
def _working(what: str) -> Iterator[None]:
    """Tell on a terminal that work goes on, and keep the libraries' own chatter out of the output."""
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        from transformers.utils import logging

        logging.disable_progress_bar()
        logging.set_verbosity_error()
        yield


def main() -> None:
    """Run the command line."""
    app()
