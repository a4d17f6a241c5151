"""The engine of many machines: a pool of Ray workers, each with a model of its own.

Items and results travel by Ray's own transport; each machine needs the same attnscope, Python and Ray as this one. This
is the only file that imports the library.
"""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from textwrap import shorten
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ..errors import BadInput, check_number
from .cores import check_workers
from .pool import Pool

Item = TypeVar("Item")
Result = TypeVar("Result")

_PATIENCE = 5.0  # seconds until an address that does not answer is given up; Ray itself takes minutes
# Ray prints these on the standard output, log or no log; the pool deals with them, and says so where it cannot.
_KNOWN_NEWS = "A worker died or was killed|killed due to memory pressure"


def run(
    make_worker: Callable[[], Callable[[Item], Result]],
    items: Iterable[tuple[int, Item]],
    *,
    address: str | None = None,
    workers: int | None = None,
    threads: int = 1,
    attempts: int = 3,
) -> Generator[tuple[int, Result], None, None]:
    """Give the result of each numbered item as it comes, from a pool of workers that each call `make_worker` once.

    An error in the work is raised here as it was there. Close the generator to stop early: its workers are killed.

    Args:
        make_worker: Loads the model, in the worker's process, and gives the function from an item to its result.
        items: Read as they are needed, about two per worker ahead of the results.
        address: Of a Ray cluster: `host:port`, `ray://host:port`, or `auto` for the one on this machine. Without it,
            the Ray this process is connected to, the one `RAY_ADDRESS` names, or one of our own, begun and ended here.
        workers: How many; as many as the cluster has room for if not given. A worker has a GPU if the cluster has any,
            else `threads` processors.
        threads: Of each worker. Sums of as many threads have the same bits in every engine.
        attempts: How often an item may be tried whose worker dies; then `WorkerDied` is raised.
    """
    check_workers(workers, threads)
    check_number("attempts", attempts, 1)
    return _results(_library(), make_worker, items, address, workers, threads, attempts)


def _library() -> Any:
    """The library Ray, which the rest of this file takes as an argument."""
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", _KNOWN_NEWS)  # read when Ray is imported
    try:
        import ray
    except ImportError as error:
        raise BadInput("The engine ray needs Ray: pip install 'attnscope[ray]'.") from error
    return ray


def _results(
    ray: Any,
    make_worker: Callable[[], Callable[[Any], Any]],
    items: Iterable[tuple[int, Any]],
    address: str | None,
    workers: int | None,
    threads: int,
    attempts: int,
) -> Generator[tuple[int, Any], None, None]:
    with _connected(ray, address, None if workers is None else workers * threads):
        needs, room = _needs_and_room(ray.nodes(), threads)
        if not room:
            raise BadInput(
                f"No machine of the Ray cluster has {threads} processors for one worker: ask for fewer threads."
            )
        with closing(Pool(ray, make_worker, needs, workers or room, threads, attempts)) as pool:
            yield from pool.results(items)


@contextmanager
def _connected(ray: Any, address: str | None, processors: int | None) -> Iterator[None]:
    """Be connected to a Ray that runs, or to one of our own with that many processors; what begins here ends here."""
    if ray.is_initialized():
        if address not in {None, "auto"} and address != ray.get_runtime_context().gcs_address:
            raise BadInput(f"This process is connected to another Ray than {address}: call ray.shutdown() first.")
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": True, "logging_level": logging.ERROR}
    if address == "local":
        options |= {"include_dashboard": False, "num_cpus": processors}
    elif address != "auto":
        _check_that_it_answers(address)
    on_terminate = signal.getsignal(signal.SIGTERM)
    try:
        try:
            ray.init(address, **options)
        except Exception as error:  # a bare one if the machine is so busy that Ray's patience with itself ends
            doing = "start Ray on this machine" if address == "local" else f"connect to Ray at {address}"
            raise BadInput(f"Cannot {doing}: {shorten(str(error), 240, placeholder=' …')}") from error
        yield
    finally:
        ray.shutdown()
        # Ray puts a handler of its own there and leaves it behind.
        if threading.current_thread() is threading.main_thread() and on_terminate is not None:
            signal.signal(signal.SIGTERM, on_terminate)


def _check_that_it_answers(address: str) -> None:
    try:
        parts = urlsplit(address if "://" in address else f"ray://{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise BadInput(f"{address!r} is no address of a Ray cluster: give host:port, ray://host:port or auto.")
    try:
        socket.create_connection((host, port), timeout=_PATIENCE).close()
    except OSError as error:
        raise BadInput(
            f"Nothing answers at {address}: start Ray there (ray start --head), or give another address."
        ) from error


def _needs_and_room(nodes: Sequence[Mapping[str, Any]], threads: int) -> tuple[dict[str, int], int]:
    """What a worker asks of Ray, and how many such workers the machines of a cluster hold."""
    machines = [node["Resources"] for node in nodes if node["Alive"]]
    gpus = sum(int(machine.get("GPU", 0)) for machine in machines)
    if gpus:
        return {"num_gpus": 1, "num_cpus": 0}, gpus
    return {"num_cpus": threads}, sum(int(machine.get("CPU", 0)) // threads for machine in machines)
