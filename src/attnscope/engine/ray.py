"""The engine of many machines: a pool of Ray workers, each with a model of its own.

Items and results travel by Ray's own transport; each machine needs the same attnscope, Python and Ray as this one. This
is the only file that imports the library.
"""

import logging
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any
from urllib.parse import urlsplit

from ..errors import BadInput, WorkerDied, check_number, check_workers
from .cores import Item, Result

# A pool of Ray workers that outlives the death of any of them.
# A worker gets items only once it is ready, so that one the cluster has no room for yet holds nothing up. It has two
# items at most: the one it works on, and the next one, so that it never waits for the post. What a dead worker had in
# hand is tried again, each item alone, so that the one that kills is found. The library itself is an argument,
# because ray.py alone imports it.


_IN_HAND = 2  # items per worker


class Worker:
    """What lives in the process of a worker."""

    work: Callable[[Any], Any]

    def start(self, make_worker: Callable[[], Callable[[Any], Any]], threads: int) -> None:
        """Make ready; not in `__init__`, because an error there would look like the death of the worker."""
        import torch

        torch.set_num_threads(threads)
        self.work = make_worker()

    def turn(self, item: Any) -> Any:
        """Turn an item into its result."""
        return self.work(item)


@dataclass
class Job:
    """An item on its way to a result, and how many workers died of it; it is a suspect once it was in a dead hand."""

    number: int
    item: Any
    deaths: int = 0
    suspect: bool = False


@dataclass(eq=False)
class Seat:
    """A worker of the pool as it is seen from here; `jobs` are what it has in hand, the one it works on first."""

    actor: Any
    start: Any
    ready: bool = False
    jobs: dict[Any, Job] = field(default_factory=dict)


class Pool:
    """The workers, the jobs they have, and the jobs that wait."""

    def __init__(
        self,
        ray: Any,
        make_worker: Callable[[], Callable[[Any], Any]],
        needs: Mapping[str, int],
        workers: int,
        threads: int,
        attempts: int,
    ) -> None:
        self.ray = ray
        self.actors = ray.remote(Worker).options(**needs, max_restarts=0, max_task_retries=0)
        self.make_worker = ray.put(make_worker)
        self.workers, self.threads, self.attempts = workers, threads, attempts
        self.seats: list[Seat] = []
        self.waiting: deque[Job] = deque()
        self.owners: dict[Any, Seat] = {}  # what is awaited, the oldest first, and from whom
        self.failed_starts = 0
        self.in_hand = _IN_HAND if attempts > 1 else 1  # with one attempt there is none to find the guilty one by

    @property
    def held(self) -> int:
        """How many jobs were begun and have no result yet."""
        return len(self.waiting) + sum(len(seat.jobs) for seat in self.seats)

    def results(self, items: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        """Each number with its result, in the order of completion."""
        source = iter(items)
        more = True
        while True:
            while more and self.held < self.in_hand * self.workers:
                pair = next(source, None)
                if pair is None:
                    more = False
                else:
                    self.waiting.append(Job(*pair))
                    self.hand_out()  # at once, because the next item may be slow to come
            if not self.held:
                return
            self.hand_out()
            # The oldest of those that are there: nobody is passed over.
            (first, *_), _ = self.ray.wait(list(self.owners), num_returns=1)
            yield from self.receive(first)

    def hand_out(self) -> None:
        """Fill the seats as far as there is work for them, then give the jobs to those that have fewest."""
        while len(self.seats) < min(self.workers, self.held):
            actor = self.actors.remote()
            seat = Seat(actor, actor.start.remote(self.make_worker, self.threads))
            self.seats.append(seat)
            self.owners[seat.start] = seat
        starting = sum(not seat.ready for seat in self.seats)
        open_seats = [seat for seat in self.seats if seat.ready and not any(job.suspect for job in seat.jobs.values())]
        while open_seats and self.waiting:
            seat = min(open_seats, key=lambda seat: len(seat.jobs))
            job = self.waiting[0]
            # A second job in hand is worth less than a first one for a worker that is about to be ready.
            if seat.jobs and (job.suspect or len(seat.jobs) >= self.in_hand or len(self.waiting) <= starting):
                return
            reference = seat.actor.turn.remote(job.item)
            self.waiting.popleft()
            seat.jobs[reference] = job
            self.owners[reference] = seat
            if job.suspect:
                open_seats.remove(seat)

    def receive(self, reference: Any) -> Iterator[tuple[int, Any]]:
        """Take what has come: a worker that is ready, a result, or a death."""
        seat = self.owners[reference]
        try:
            result = self.get(reference)
        except WorkerDied as death:
            yield from self.bury(seat, death)
            return
        del self.owners[reference]
        if reference == seat.start:
            seat.ready = True
            self.failed_starts = 0
        else:
            yield seat.jobs.pop(reference).number, result

    def bury(self, seat: Seat, death: WorkerDied) -> Iterator[tuple[int, Any]]:
        """Take a dead worker out of the pool: its jobs wait again, and the one it worked on is charged."""
        self.seats.remove(seat)
        self.ray.kill(seat.actor)  # if it is only out of reach, it must not come back
        for reference in (seat.start, *seat.jobs):
            self.owners.pop(reference, None)
        if not seat.ready:
            self.failed_starts += 1
            if self.failed_starts >= self.attempts:
                raise WorkerDied(
                    f"{self.failed_starts} workers in a row died before they were ready. Ray says: {death}"
                ) from death
        again: list[Job] = []
        for reference, job in seat.jobs.items():
            try:
                result = self.get(reference)
            except WorkerDied as end:
                # It works in order, so it died of the first without a result, or of the next if it died too fast to
                # send that result. Alone, there is no doubt.
                if not again:
                    job.deaths += 1
                    if job.deaths >= self.attempts:
                        raise WorkerDied(
                            f"Shard {job.number} killed its worker {job.deaths} times, perhaps for want of memory: "
                            f"make it smaller, or have fewer workers. Ray says: {end}"
                        ) from end
                job.suspect = True
                again.append(job)
            else:
                yield job.number, result
        self.waiting.extendleft(reversed(again))

    def get(self, reference: Any) -> Any:
        """The value; an error in the work as it was raised there, and `WorkerDied` for what the work did not cause."""
        kinds = self.ray.exceptions
        try:
            return self.ray.get(reference)
        except kinds.RayTaskError as error:
            raise error.cause from error
        except (
            kinds.RayActorError,
            kinds.WorkerCrashedError,
            kinds.OutOfMemoryError,
            kinds.NodeDiedError,
            kinds.ObjectLostError,
        ) as error:
            reason = str(error).strip().rpartition("\n")[2]  # the last line
            raise WorkerDied(shorten(reason, 240, placeholder=" …")) from error

    def close(self) -> None:
        """Kill every worker."""
        for seat in self.seats:
            self.ray.kill(seat.actor)


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
