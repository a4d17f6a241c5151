"""The engine of many machines, on a real Ray of two workers: what arrives, what survives, and what is said if not.

What the workers run is written inside the tests: such functions travel whole, and workers cannot import this file.
"""

import os
import signal
import subprocess
import sys
import time
from itertools import count, islice
from pathlib import Path

import pytest
import torch

from attnscope.engine import WorkerDied, ray, run_here
from attnscope.errors import BadInput


def returns_to_rest() -> bool:
    """Whether the cluster has all its processors back; it takes Ray a moment to count them."""
    import ray as library

    for _ in range(200):
        if library.available_resources().get("CPU") == library.cluster_resources()["CPU"]:
            return True
        time.sleep(0.05)
    return False


def test_the_results_are_those_of_the_local_engine_with_one_model_per_worker(run_on_ray, tmp_path: Path) -> None:
    def make_worker():
        (tmp_path / str(os.getpid())).touch()
        weights = torch.randn(300, 300, generator=torch.Generator().manual_seed(0))

        def work(item):
            for _ in range(1200):  # the other worker may be slow to start: nobody does all the work before it is there
                if len(list(tmp_path.iterdir())) > 1:
                    break
                time.sleep(0.05)
            return {"sums": (weights * item).double().sum(0), "threads": torch.get_num_threads(), "text": f"{item}"}

        return work

    items = [(number, number / 7) for number in range(12)]
    found = dict(run_on_ray(make_worker, items))
    assert len(list(tmp_path.iterdir())) == 2
    assert returns_to_rest()
    expected = dict(run_here(make_worker, items))
    assert sorted(found) == sorted(expected)
    for number, result in expected.items():
        assert torch.equal(found[number]["sums"], result["sums"])
        assert found[number]["text"] == result["text"]
        assert found[number]["threads"] == 1


def test_no_more_workers_are_started_than_there_are_items(run_on_ray, cluster, tmp_path: Path) -> None:
    def make_worker():
        (tmp_path / str(os.getpid())).touch()
        return str

    assert list(run_on_ray(make_worker, [])) == []
    assert list(run_on_ray(make_worker, [(5, 1)], threads=2, address=cluster)) == [(5, "1")]
    assert len(list(tmp_path.iterdir())) == 1


def test_an_endless_corpus_is_read_as_it_is_needed_and_closing_kills_the_workers(cluster) -> None:
    read = []

    def endless():
        for number in count():
            read.append(number)
            yield number, number

    results = ray.run(lambda: str, endless(), workers=3)  # there is room for two: the third must hold nothing up
    found = list(islice(results, 10))  # as they are done: a quick worker may be ahead of the other
    assert len(dict(found)) == 10
    assert all(result == str(number) and number in read for number, result in found)
    assert len(read) <= 10 + 2 * 3
    results.close()
    assert returns_to_rest()


def test_a_worker_that_is_killed_in_mid_run_is_replaced(run_on_ray, tmp_path: Path) -> None:
    def make_worker():
        (tmp_path / f"worker {os.getpid()}").touch()

        def work(item):
            died = tmp_path / f"died of {item}"
            if item in {3, 4} and not died.exists():
                died.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return -item

        return work

    results = list(run_on_ray(make_worker, ((number, number) for number in range(20)), workers=1, attempts=2))
    assert sorted(results) == [(number, -number) for number in range(20)]
    assert len(list(tmp_path.glob("died of *"))) == 2
    assert len(list(tmp_path.glob("worker *"))) == 3


def test_a_shard_that_kills_every_worker_is_named(run_on_ray, tmp_path: Path) -> None:
    def make_worker():
        def work(item):
            if item == 2:
                (tmp_path / str(os.getpid())).touch()
                time.sleep(2)  # the result of shard 1 is on its way: had it not left, shard 1 would be charged
                os.kill(os.getpid(), signal.SIGKILL)
            return item

        return work

    with pytest.raises(WorkerDied, match=r"^Shard 2 killed its worker 2 times, .*Ray says: "):
        list(run_on_ray(make_worker, ((number, number) for number in count()), workers=1, attempts=2))
    assert len(list(tmp_path.iterdir())) == 2
    assert returns_to_rest()


def test_a_model_that_kills_every_worker_is_told_from_a_shard(run_on_ray) -> None:
    def make_worker():
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(WorkerDied, match=r"^2 workers in a row died before they were ready\. Ray says: "):
        list(run_on_ray(make_worker, [(0, 0), (1, 1)], workers=1, attempts=2))


@pytest.mark.parametrize(("place", "kind"), [("shard", BadInput), ("model", ZeroDivisionError)])
def test_an_error_in_the_work_is_raised_here_as_it_was_there(run_on_ray, place: str, kind: type[Exception]) -> None:
    def fail():
        raise kind("The sentence for the user.")

    def make_worker():
        if place == "model":
            fail()
        return lambda item: fail() if item == 3 else item

    with pytest.raises(kind) as raised:
        list(run_on_ray(make_worker, ((number, number) for number in count()), workers=1))
    assert type(raised.value) is kind
    assert str(raised.value) == "The sentence for the user."
    assert returns_to_rest()


def test_an_error_in_the_corpus_is_raised_as_it_is(run_on_ray) -> None:
    def items():
        yield 0, 0
        raise BadInput("Line 7 is no sentence.")

    with pytest.raises(BadInput, match=r"^Line 7 is no sentence\.$"):
        list(run_on_ray(lambda: str, items(), workers=1))
    assert returns_to_rest()


def test_a_worker_that_fits_no_machine_is_refused(cluster) -> None:
    with pytest.raises(BadInput, match="has 64 processors for one worker: ask for fewer threads"):
        list(ray.run(lambda: str, [(0, 0)], threads=64))


def test_another_cluster_than_the_one_connected_to_is_refused(cluster) -> None:
    with pytest.raises(BadInput, match="connected to another Ray than elsewhere:6379"):
        list(ray.run(lambda: str, [(0, 0)], address="elsewhere:6379"))


def test_another_process_joins_by_the_address_and_prints_nothing_of_ray(cluster, environment, tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from attnscope.engine import ray\n"
        "marker = Path(sys.argv[2])\n"
        "def work(item):\n"
        "    if not marker.exists():\n"
        "        marker.touch()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return item + 1\n"
        "print(sorted(ray.run(lambda: work, enumerate(range(3)), address=sys.argv[1])))\n"
        "import ray as library\n"
        "print(library.is_initialized())\n"
    )
    command = [sys.executable, "-c", script, cluster, str(tmp_path / "marker")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stderr == ""
    assert done.stdout == "[(0, 1), (1, 2), (2, 3)]\nFalse\n"
    assert returns_to_rest()


def test_what_a_worker_asks_for_and_how_many_fit() -> None:
    machines = [
        {"Alive": True, "Resources": {"CPU": 5.0}},
        {"Alive": True, "Resources": {"CPU": 3.0}},
        {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}},
        {"Alive": True, "Resources": {}},
    ]
    assert ray._needs_and_room(machines, 1) == ({"num_cpus": 1}, 8)
    assert ray._needs_and_room(machines, 2) == ({"num_cpus": 2}, 3)  # a worker does not span machines
    assert ray._needs_and_room(machines, 6) == ({"num_cpus": 6}, 0)
    machines += [{"Alive": True, "Resources": {"CPU": 64.0, "GPU": 4.0}}]
    assert ray._needs_and_room(machines, 8) == ({"num_gpus": 1, "num_cpus": 0}, 4)
