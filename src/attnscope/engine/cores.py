"""The engine of all cores: several processes of this machine, each with a worker of its own.

For work that one process cannot spread well, such as many small trainings: two processes of one thread do more than one
process of two threads. A worker ends with the process that asked for it, however that ends.
"""

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context, parent_process, set_start_method
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from ..errors import WorkerDied, check_workers

Item = TypeVar("Item")
Result = TypeVar("Result")


def run(
    make_worker: Callable[[], Callable[[Item], Result]],
    items: Iterable[tuple[int, Item]],
    *,
    workers: int | None = None,
    threads: int = 1,
) -> Generator[tuple[int, Result], None, None]:
    """Give the result of each numbered item as it comes.

    An error in the work is raised here as it was there. Close the generator to stop early: its processes are ended.

    Args:
        make_worker: Called once in each process; it must be importable there, such as a function of a module or a
            `functools.partial` of one, and a script that asks needs the usual `if __name__ == "__main__":`.
        items: Read as workers become free.
        workers: How many processes; as many as this process may use cores if not given.
        threads: Of each worker.
    """
    check_workers(workers, threads)
    return _results(make_worker, iter(items), workers or _own_cores(), threads)


def _own_cores() -> int:
    """How many cores this process may use; where the system does not tell that (macOS, Windows), all of them."""
    tell = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if tell is None else len(tell(0))


def _results(
    make_worker: Callable[[], Callable[[Any], Any]], source: Any, workers: int, threads: int
) -> Generator[tuple[int, Any], None, None]:
    """Hand an item to each worker, and the next to whoever is done."""
    # spawn, because a fork of a process with running threads may hang
    context = get_context("spawn")
    busy: dict[Any, tuple[SpawnProcess, int]] = {}
    processes: list[SpawnProcess] = []
    try:
        for number, item in islice(source, workers):
            own, there = context.Pipe()
            process = context.Process(target=_work, args=(there, make_worker, threads), daemon=True)
            with _deaf_to_ctrl_c():
                process.start()
            there.close()  # so that the end of the process is the end of the pipe
            processes.append(process)
            busy[own] = (process, number)
            _hand(own, item, process, number)
        while busy:
            for ready in wait(list(busy)):
                here: Any = ready
                process, number = busy.pop(here)
                try:
                    result, error = here.recv()
                except (EOFError, ConnectionError):
                    raise _death(process, number) from None
                if error is not None:
                    raise error
                following = next(source, None)
                if following is None:
                    here.close()
                else:
                    busy[here] = (process, following[0])
                    _hand(here, following[1], process, following[0])
                yield number, result
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _hand(there: Any, item: Any, process: SpawnProcess, number: int) -> None:
    """Give an item to a worker that may have died since its last one."""
    try:
        there.send(item)
    except ConnectionError:
        raise _death(process, number) from None


def _death(process: SpawnProcess, number: int) -> WorkerDied:
    process.join()
    return WorkerDied(
        f"The process that worked on item {number} died with exit code {process.exitcode}, perhaps for want of memory: "
        "have fewer workers."
    )


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """A process begun within this hears no Ctrl-C, which is for the one that asked: that one ends its workers."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(there: Any, make_worker: Callable[[], Callable[[Any], Any]], threads: int) -> None:
    """What a process does: item in, result or error out, until there are no more."""
    os.environ["TTY_COMPATIBLE"] = "0"  # several progress bars on one terminal write over each other
    if os.name == "posix":
        # Locks of a library (tqdm) then have no name that outlives a worker that is killed, and nobody warns of them. A
        # worker begins no processes of its own, so nothing else hangs on this.
        set_start_method("fork", force=True)
    threading.Thread(target=_end_with_asker, daemon=True).start()
    import torch

    torch.set_num_threads(threads)
    work = None
    while True:
        try:
            item = there.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            work = work or make_worker()
            answer: tuple[Any, Exception | None] = (work(item), None)
        except KeyboardInterrupt:
            return  # the process that asked gets the signal too, and raises
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the work was asked for
            answer = (None, error)
        there.send(answer)


def _end_with_asker() -> None:
    """End this process when the one that asked for it is gone, so that none works on for nobody."""
    asker = parent_process()
    if asker is not None:
        asker.join()
        os._exit(1)
