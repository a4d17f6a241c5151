"""The command line: parse, call one function, print. Whatever needs torch is imported inside its command."""

import atexit
import errno
import gc
import io
import json
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import __version__, commands
from .commands.answering import (
    BAD_INPUT,
    FAILURE,
    INTERRUPTED,
    Against,
    AsJson,
    Budget,
    By,
    Methods,
    Replacement,
    Signed,
    Target,
    Truncate,
    complain,
    resumable,
    say,
)
from .errors import BadInput, WorkerDied, is_text
from .progress import begin_log, items_done, methods_done, texts_done, working


class Commands(TyperGroup):
    """The commands, with one sentence on stderr and an exit code of its own for each way to fail."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the arguments, if they are text."""
        for number, argument in enumerate(args, start=1):
            if not is_text(argument) or "\0" in argument:
                complain(f"Argument {number} is not text in UTF-8, or has a NUL in it: {argument!r}.")
                raise typer.Exit(BAD_INPUT)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what the user can mend is told without a traceback."""
        begin_log()
        try:
            return super().invoke(ctx)
        except BadInput as error:
            complain(error)
            raise typer.Exit(BAD_INPUT) from None
        except WorkerDied as error:
            complain(error)
            raise typer.Exit(FAILURE) from None
        except BrokenPipeError:
            raise  # the reader of our output has gone (`| head`), which typer ends quietly
        except OSError as error:
            complain(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
            raise typer.Exit(BAD_INPUT if error.errno == errno.ENAMETOOLONG else FAILURE) from None
        except KeyboardInterrupt:
            complain("stopped.")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands,
    help="Shows, traces, measures and trains attention. Start with: attnscope demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # --method is what --methods was called in some commands
    context_settings={"token_normalize_func": lambda name: "methods" if name == "method" else name},
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        say(f"attnscope {__version__}")
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
    out: Annotated[Path, typer.Option(help="The folder that report.html and survey.html are written to.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Show what the shipped model looks at, which method to trust and what its heads do; write two pages.

    report.html has two texts, with every layer and head; survey.html has what each head does over 128 sentences.

    Example: attnscope demo --out somewhere
    """
    with working("Recording the demo model"):
        from .demo import run_demo, show

        result = run_demo(out)
    if as_json:
        say(json.dumps(result.to_dict()))
    else:
        from .terminal import PlainConsole

        show(PlainConsole(), result)


@app.command()
def explain(
    model: Annotated[str, typer.Argument(help='A name on the Hugging Face hub, a local folder, or "demo".')],
    text: Annotated[str, typer.Argument(help="The text to explain.")],
    pair: Annotated[str | None, typer.Argument(help="A second text, for a model that reads pairs.")] = None,
    methods: Methods = None,
    query: Annotated[int | None, typer.Option(help="The position to ask about, instead of the read-out.")] = None,
    layer: Annotated[int | None, typer.Option(help="The layer to ask about, instead of the last.")] = None,
    target: Target = None,
    against: Against = None,
    by: By = "word",
    signed: Signed = True,
    replacement: Replacement = None,
    truncate: Truncate = False,
    budget: Budget = 60.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how much memory it would take, over the loaded model; run nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show which tokens a model used, by every method, with what each cannot say.

    Of an encoder-decoder, each token that it writes is shown with the words of the source that rollout finds in it.

    Example: attnscope explain demo "the key to the cabinets" --methods rollout --methods blank_out
    """
    with working(f"Loading {model}"):
        from .capture import load
        from .explaining import explain as explain_text
        from .explaining import foretell, show
        from .syntax import names_a_file

        if names_a_file(text):
            raise BadInput(f"{text!r} is the name of a file, and explain takes a text: attnscope report reads files.")

        loaded = load(model)
    asked = text if pair is None else (text, pair)
    named = None if methods == ["all"] else methods
    if dry_run:
        told = foretell(loaded, asked, named, truncate)
        lines = [f"{name}: {estimate}." for name, estimate in told.items()]
        say(json.dumps({name: asdict(cost) for name, cost in told.items()}) if as_json else "\n".join(lines))
        return
    with methods_done() as watch:
        result = explain_text(
            loaded,
            asked,
            named,
            query,
            layer,
            target=target,
            against=against,
            by=by,
            signed=signed,
            replacement=replacement,
            truncate=truncate,
            budget=None if methods else budget,
            watch=watch,
            show_first=None if as_json else lambda quick: show(watch.console, quick),
        )
    if as_json:
        say(json.dumps(result.to_dict()))
    else:
        from .terminal import PlainConsole

        show(PlainConsole(), result)


app.command()(commands.answer)
app.command()(commands.report)
app.command()(commands.train)


@app.command()
def trust(
    model: Annotated[str, typer.Argument(help='A name on the Hugging Face hub, a local folder, or "demo".')],
    corpus: Annotated[
        str,
        typer.Argument(
            help='A file (.txt with a text to a line; .jsonl, .tsv or .csv with "text"; .conllu; also .gz), a data set'
            ' as survey takes it (imdb:test), or "demo". With a .jsonl of finished answers ("question", "documents",'
            ' "answer") it is measured who finds what they rest on.'
        ),
    ],
    methods: Annotated[
        list[str] | None, typer.Option("--methods", help="A method to measure; may be given again. All by default.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Read only so many texts.")] = None,
    by: Annotated[
        str | None, typer.Option(help="Of finished answers: what is ranked, document, sentence (by default) or word.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder that the table is kept in, also while it grows.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a measurement that was stopped.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure which methods follow what a model does, and end in a verdict.

    Example: attnscope trust demo demo --methods raw --methods rollout --limit 50
    """
    with nullcontext() if out is None else resumable():
        with working(f"Loading {model}"):
            from . import evaluation
            from .answering import holds_answers, trust_answers
            from .capture import load

            of_answers = holds_answers(corpus)
            if by is not None and not of_answers:
                raise BadInput("--by is for finished answers: texts are ranked by token.")
            texts = [] if of_answers else evaluation.read_texts(corpus, limit)
            loaded = load(model)
        if of_answers:
            asked: dict[str, Any] = {"by": by or "sentence", "out": out, "resume": resume, "limit": limit}
            with items_done("Answers") as answers_done:
                result = trust_answers(loaded, corpus, methods, **asked, watch=answers_done)
        else:
            with texts_done() as watch:
                result = evaluation.trust(loaded, texts, methods, out=out, resume=resume, watch=watch)
    if as_json:
        say(json.dumps(result.to_dict()))
        return
    from .terminal import PlainConsole

    PlainConsole().print(result)
    if out is not None:
        say(f"Written: {out}")


app.command()(commands.lexicon)
app.command()(commands.survey)
app.add_typer(commands.reproduce, name="reproduce")
app.add_typer(commands.data, name="data")
app.command()(commands.serve)


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
        say(json.dumps([figure.to_dict() for figure in figures]))
        return
    from .bench.figure import table_of
    from .terminal import PlainConsole

    PlainConsole().print(table_of(figures))


def main() -> None:
    """Run the command line.

    The libraries make a million objects that stay. To look for garbage among them takes a second while they are
    imported, and more than another when the command is done.
    """
    gc.set_threshold(10_000)
    atexit.register(gc.freeze)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a stream cannot write, as → in Latin-1, is spelled out
            stream.reconfigure(errors="backslashreplace")
    app()
