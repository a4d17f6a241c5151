"""The engine of one machine, and how an engine is chosen."""

from collections.abc import Iterator
from itertools import count, islice

import pytest

from attnscope.engine import ENGINES, engine, run_here
from attnscope.errors import BadInput


def test_results_come_in_order_from_one_worker() -> None:
    made = []

    def make_worker():
        made.append(1)
        return lambda item: item * item

    assert list(run_here(make_worker, ((number, number + 1) for number in range(4)))) == [
        (0, 1),
        (1, 4),
        (2, 9),
        (3, 16),
    ]
    assert len(made) == 1


def test_nothing_is_read_ahead() -> None:
    read = []

    def endless() -> Iterator[tuple[int, int]]:
        for number in count():
            read.append(number)
            yield number, number

    results = run_here(lambda: str, endless())
    assert list(islice(results, 3)) == [(0, "0"), (1, "1"), (2, "2")]
    results.close()
    assert read == [0, 1, 2]


def test_no_worker_is_made_for_no_items() -> None:
    def make_worker():
        pytest.fail("There is nothing to do.")

    assert list(run_here(make_worker, [])) == []


def test_an_interruption_passes_through() -> None:
    def interrupted(item):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_here(lambda: interrupted, [(0, None)]))


def test_an_engine_is_a_name_or_a_function() -> None:
    def own(make_worker, items):
        yield from ()

    assert engine("local") is run_here
    assert engine("ray") is ENGINES["ray"]
    assert engine(own) is own
    with pytest.raises(BadInput, match=r"no engine 'dask': choose one of local, cores, ray, or pass a function\."):
        engine("dask")
