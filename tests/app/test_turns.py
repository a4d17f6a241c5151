"""One at a time, in order, a few waiting; who goes away gives their place up."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from attnscope.app.turns import Busy, Cancelled, Turns, Work
from attnscope.progress import tell


def in_own_loop(coroutine):
    """Run in a thread of its own: this one may have the loop of a browser already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def test_work_is_done_one_at_a_time_and_in_order():
    async def run():
        turns, running, seen = Turns("Model"), [], []

        def step(number):
            running.append(number)
            assert len(running) == 1
            seen.append(number)
            running.remove(number)
            return number

        answers = await asyncio.gather(*(turns.ask(Work(), lambda _, n=n: step(n)) for n in range(5)))
        turns.close()
        return answers, seen

    assert in_own_loop(run()) == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])


def test_more_than_can_wait_is_refused_and_a_place_that_is_free_is_taken():
    async def run():
        turns, go = Turns("Model", most_waiting=1), threading.Event()
        first, second = (turns.ask(Work(), lambda _: go.wait(10)) for _ in range(2))
        with pytest.raises(Busy, match="Model is busy with 2 requests: try again in a moment"):
            turns.ask(Work(), lambda _: None)
        go.set()
        await asyncio.gather(first, second)
        await asyncio.sleep(0)
        assert await turns.ask(Work(), lambda _: "free again") == "free again"
        turns.close()

    in_own_loop(run())


def test_work_that_nobody_wants_ends_at_its_next_word_and_what_waits_never_starts():
    async def run():
        turns, begun, started = Turns("Model"), threading.Event(), []

        def endless(_):
            begun.set()
            while True:
                tell(1, 2)

        running, waiting = Work(), Work()
        first = turns.ask(running, endless)
        second = turns.ask(waiting, lambda _: started.append(1))
        await asyncio.to_thread(begun.wait, 10)
        assert (running.done, running.whole) in {(0, 0), (1, 2)}
        running.wanted.clear()
        waiting.wanted.clear()
        for future in (first, second):
            with pytest.raises(Cancelled):
                await future
        assert started == []
        turns.close()

    in_own_loop(run())


def test_closing_ends_what_runs():
    async def run():
        turns, begun = Turns("Model"), threading.Event()

        def endless(_):
            begun.set()
            while True:
                tell(1, 2)

        future = turns.ask(Work(), endless)
        await asyncio.to_thread(begun.wait, 10)
        turns.close()
        with pytest.raises(Cancelled):
            await future

    in_own_loop(run())
