"""Long work on a terminal: that it goes on, how far it is, how fast, the time left. In a log, a line now and then."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

SECONDS_BETWEEN_LINES = 60.0
"""In a log, where there is no bar to look at."""
SECONDS_BETWEEN_STEPS = 10.0
"""The same where a person may be waiting for the end of a pipe."""
MOMENT = 2.0
_watch: ContextVar[Callable[[int, int], None] | None] = ContextVar("attnscope_progress", default=None)
_hear: ContextVar[Callable[[str], None] | None] = ContextVar("attnscope_text", default=None)


@dataclass(frozen=True)
class CorpusProgress:
    """How far work over a corpus is."""

    number: int
    """Which pass this is, from 1; where there are several sources, each is a pass."""
    passes: int
    texts: int
    """Texts done in this pass; a parser may make several sentences of one."""
    size: int | None
    """Texts in the corpus, where that is known."""
    sentences: int
    tokens: int


Watch = Callable[[CorpusProgress], None]
"""Who is told how far work over a corpus is."""


@contextmanager
def told_to(watch: Callable[[int, int], None]) -> Iterator[None]:
    """Within this, `watch` is told how far long loops are; it may raise to end them."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def tell(done: int, whole: int) -> None:
    """Tell whoever watches how far a long loop is."""
    watch = _watch.get()
    if watch is not None:
        watch(done, whole)


@contextmanager
def written_to(hear: Callable[[str], None]) -> Iterator[None]:
    """Within this, `hear` is told the text that a model writes, as far as it has come."""
    token = _hear.set(hear)
    try:
        yield
    finally:
        _hear.reset(token)


def tell_text(spell: Callable[[], str]) -> None:
    """Tell whoever listens what a model has written so far; for nobody it is not spelled."""
    hear = _hear.get()
    if hear is not None:
        hear(spell())


@contextmanager
def texts_done() -> Iterator[Callable[[int, Any], None]]:
    """On a terminal, say what the work will cost and then show how many texts are done and the time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    from .terminal import PlainConsole

    console = PlainConsole(stderr=True)
    columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("", total=None)

        def watch(done: int, cost: Any) -> None:
            if progress.tasks[0].total is None and console.is_terminal:
                console.print(f"{cost}.", highlight=False)
            progress.update(task, completed=done, total=cost.texts)
            tell_log(f"Texts: {done} of {cost.texts}")

        yield watch


@contextmanager
def tokens_done() -> Iterator[Watch]:
    """On a terminal, show how far each pass over the corpus is, how many tokens a second, and the time left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from .terminal import PlainConsole

    console = PlainConsole(stderr=True)
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        tasks: dict[int, Any] = {}
        begun = {1: time.monotonic()}  # when each pass began: the first with the work, the next with the end of that

        def watch(at: CorpusProgress) -> None:
            if at.number not in tasks:
                tasks[at.number] = progress.add_task("", total=at.size)
            begun[at.number + 1] = time.monotonic()
            rate = at.tokens / max(time.monotonic() - begun[at.number], 1e-9)
            what = f"pass {at.number} of {at.passes}, {at.tokens:,} tokens, {rate:,.0f}/s"
            progress.update(tasks[at.number], completed=at.texts, description=what)
            tell_log(f"Texts: {at.texts:,} of {'an unknown number' if at.size is None else f'{at.size:,}'}, {what}")

        yield watch


class Log:
    """The standard error where it is no terminal and has no bar: at most a line in a minute, and none in the first."""

    def __init__(self) -> None:
        self.written = time.monotonic()

    def tell(self, line: str) -> None:
        """Write the line if it is time for one."""
        if time.monotonic() - self.written >= SECONDS_BETWEEN_LINES:
            self.tell_now(line)

    def tell_now(self, line: str) -> None:
        """Write the line, unless a terminal shows what is going on."""
        if not sys.stderr.isatty():
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
            self.written = time.monotonic()


_log = Log()
"""One for all work of this process: many short pieces of it are long together."""


def begin_log() -> None:
    """Long work begins now: the first line is for the end of its first minute."""
    _log.written = time.monotonic()


def tell_log(line: str) -> None:
    """Where no terminal is, tell how far long work is, if nobody has told anything for a minute."""
    from .terminal import visible

    _log.tell(visible(line))


def tell_stage(line: str) -> None:
    """Where no terminal is, tell at once that long work comes to its next stage."""
    from .terminal import visible

    _log.tell_now(visible(line))


@contextmanager
def items_done(what: str) -> Iterator[Callable[[int, int], None]]:
    """On a terminal, show how many items of some work are done and the time left; in a log, tell it now and then."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from .terminal import PlainConsole

    console = PlainConsole(stderr=True)
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(what, total=None)

        def watch(done: int, whole: int) -> None:
            progress.update(task, completed=done, total=whole)
            tell_log(f"{what}: {done} of {whole}")

        yield watch


class MethodBars:
    """A bar for each method that takes its time, on a terminal; in a log, a line for it soon and now and then."""

    def __init__(self, progress: Any) -> None:
        self.progress = progress
        self.bars: dict[str, Any] = {}
        self.due: dict[str, float] = {}  # when the next line of a method is: what is over in a moment needs none

    @property
    def console(self) -> Any:
        """What prints above the bars."""
        return self.progress.console

    def __call__(self, name: str, done: int, whole: int) -> None:
        """Tell how far a method is."""
        now = time.monotonic()
        if name not in self.bars:
            self.bars[name] = self.progress.add_task(name, total=whole)
            self.due[name] = now + MOMENT
        self.progress.update(self.bars[name], completed=done, total=whole)
        if now >= self.due[name] and not self.console.is_terminal:
            self.console.print(f"{name}: {done} of {whole}", highlight=False)
            self.due[name] = now + SECONDS_BETWEEN_STEPS


@contextmanager
def methods_done() -> Iterator[MethodBars]:
    """On a terminal, a bar for each method that takes its time; in a log, a line for it soon and now and then."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from .terminal import PlainConsole

    console = PlainConsole(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        yield MethodBars(progress)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Tell that work goes on, and how far the loops in it are that tell so: on a terminal always, in a log by times."""
    from rich.text import Text

    from .terminal import PlainConsole

    with PlainConsole(stderr=True).status(Text(f"{what} …")) as status, told_in_log(what) as tell_far:

        def watch(done: int, whole: int) -> None:
            status.update(Text(f"{what} … {done} of {whole}"))
            tell_far(f"{done} of {whole}")

        with told_to(watch):
            yield


@contextmanager
def told_in_log(what: str) -> Iterator[Callable[[str], None]]:
    """In a log, tell now and then that work goes on, though nothing in it does; what is yielded takes how far it is."""
    begun, ended, far = time.monotonic(), threading.Event(), [""]

    def tell_by_times() -> None:
        while not ended.wait(SECONDS_BETWEEN_LINES):
            minutes = round((time.monotonic() - begun) / 60)
            tell_log(f"{what} … {minutes} min{far[0]}")

    def tell_far(how_far: str) -> None:
        far[0] = f", at {how_far}"

    teller = threading.Thread(target=tell_by_times, daemon=True)
    if not sys.stderr.isatty():
        teller.start()
    try:
        yield tell_far
    finally:
        ended.set()
        if teller.ident is not None:
            teller.join()


@contextmanager
def working(what: str) -> Iterator[None]:
    """Tell on a terminal that work goes on, and keep the libraries' own chatter out of the output meanwhile."""
    with waiting(what), quiet_libraries():
        yield


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Within this transformers and the hub show no bars and no more than errors; then they do as they did."""
    from transformers.utils import logging as chatter

    hub = logging.getLogger("huggingface_hub")
    verbosity, level, bars = chatter.get_verbosity(), hub.level, chatter.is_progress_bar_enabled()
    chatter.disable_progress_bar()
    chatter.set_verbosity_error()
    hub.setLevel(logging.ERROR)  # it tells each of its tries to reach a hub that is not there
    try:
        yield
    finally:
        chatter.set_verbosity(verbosity)
        hub.setLevel(level)
        if bars:
            chatter.enable_progress_bar()


@contextmanager
def bytes_done() -> Iterator[Callable[[str, int, int | None], None]]:
    """On a terminal, show how much of each download has come, how fast, and the time left."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from .terminal import PlainConsole

    console = PlainConsole(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as progress:
        tasks: dict[str, Any] = {}

        def watch(url: str, come: int, size: int | None) -> None:
            if url not in tasks:
                tasks[url] = progress.add_task(url.rpartition("/")[2], total=size)
            progress.update(tasks[url], completed=come)
            tell_log(f"{url}: {come:,} of {'an unknown number of' if size is None else f'{size:,}'} bytes")

        yield watch
