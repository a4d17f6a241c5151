"""One piece of work at a time, a few waiting: a busy server says so, and who goes away gives their place up."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from ..errors import BadInput
from ..progress import told_to

Result = TypeVar("Result")
MOST_WAITING = 8
"""Pieces of work that wait behind the one that runs."""


class Busy(BadInput):
    """More is asked for than can wait."""


class Cancelled(Exception):
    """Whoever asked for the work is gone."""


@dataclass(eq=False)
class Work:
    """What is known of a piece of work while it waits and runs."""

    wanted: threading.Event = field(default_factory=threading.Event)
    """Set while someone waits for the result."""
    doing: str = ""
    done: int = 0
    whole: int = 0
    said: str = ""
    """What a model has written so far."""

    def __post_init__(self) -> None:
        self.wanted.set()

    def on(self, doing: str) -> None:
        """Say what is done now."""
        self.tell(0, 0)
        self.doing = doing

    def tell(self, done: int, whole: int) -> None:
        """How far it is; ends the work where nobody wants it any more."""
        if not self.wanted.is_set():
            raise Cancelled
        self.done, self.whole = done, whole


class Turns:
    """A thread that does one piece of work after the other, in the order in which they were asked for."""

    def __init__(self, name: str, most_waiting: int = MOST_WAITING) -> None:
        self.name, self._most = name, most_waiting + 1
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"attnscope {name}")
        self._asked: set[Work] = set()

    @property
    def count(self) -> int:
        """How many pieces of work run or wait."""
        return len(self._asked)

    def ask(self, work: Work, run: Callable[[Work], Result]) -> "asyncio.Future[Result]":
        """Get in line; who does not want the result any more clears `work.wanted`."""
        if len(self._asked) >= self._most:
            raise Busy(f"{self.name} is busy with {len(self._asked)} requests: try again in a moment.")
        self._asked.add(work)
        future: Future[Result] = self._thread.submit(_run, work, run)
        # the place is free when the thread is done with it, not when nobody listens any more
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: _in_loop(loop, self._asked.discard, work))
        result = asyncio.wrap_future(future)
        # looked at here, so that nobody complains of an error that nobody waits for any more
        result.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return result

    def close(self) -> None:
        """End what runs as soon as it can be ended, and start nothing more."""
        for work in list(self._asked):
            work.wanted.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)


def _run(work: Work, run: Callable[[Work], Result]) -> Result:
    work.tell(0, 0)  # who has gone while it waited
    with told_to(work.tell):
        return run(work)


def _in_loop(loop: asyncio.AbstractEventLoop, act: Callable[[Work], None], work: Work) -> None:
    """Act in the loop's thread, unless the loop has ended: then nobody counts any more."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(act, work)
