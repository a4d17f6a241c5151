"""A pool of Ray workers that outlives the death of any of them.

A worker gets items only once it is ready, so that one the cluster has no room for yet holds nothing up. It has two
items at most: the one it works on, and the next one, so that it never waits for the post. What a dead worker had in
hand is tried again, each item alone, so that the one that kills is found. The library itself is an argument, because
ray.py alone imports it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any

from ..errors import WorkerDied

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
