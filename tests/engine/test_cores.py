"""The engine of all cores: processes of this machine."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from attnscope.engine import cores
from attnscope.errors import BadInput, WorkerDied


def squares() -> Callable[[int], tuple[int, int, int]]:
    return lambda number: (number * number, os.getpid(), torch.get_num_threads())


def refusing(word: str) -> Callable[[int], int]:
    def work(number: int) -> int:
        if number == 2:
            raise BadInput(f"There is no {word}.")
        return number

    return work


def killed() -> Callable[[int], None]:
    return lambda _number: os.kill(os.getpid(), signal.SIGKILL)


def sleeping() -> Callable[[float], int]:
    def work(seconds: float) -> int:
        time.sleep(seconds)
        return os.getpid()

    return work


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_items_are_spread_over_processes() -> None:
    found = dict(cores.run(squares, enumerate(range(6)), workers=2))
    assert {number: result[0] for number, result in found.items()} == {n: n * n for n in range(6)}
    processes = {result[1] for result in found.values()}
    assert len(processes) <= 2
    assert os.getpid() not in processes
    assert {result[2] for result in found.values()} == {1}
    assert not any(alive(process) for process in processes)


def test_an_error_arrives_as_it_was() -> None:
    with pytest.raises(BadInput, match=r"There is no key\."):
        list(cores.run(partial(refusing, "key"), enumerate(range(4)), workers=1))


def test_a_dead_worker_is_told() -> None:
    with pytest.raises(WorkerDied, match="item 0 died with exit code -9"):
        list(cores.run(killed, [(0, 0)], workers=1))


def test_closing_ends_the_processes() -> None:
    results = cores.run(sleeping, enumerate([0.0, 600.0]), workers=1)
    _, process = next(results)
    results.close()
    assert not alive(process)


def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "asking.py"
    script.write_text(
        "import os, time\n"
        "from attnscope.engine import cores\n"
        "def worker():\n"
        "    return lambda seconds: (time.sleep(seconds), os.getpid())[1]\n"
        "if __name__ == '__main__':\n"
        "    for _, process in cores.run(worker, enumerate([0, 600]), workers=1):\n"
        "        print(process, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        process = int(asking.stdout.readline())
        asking.kill()
    gone = time.monotonic() + 60
    while alive(process) and time.monotonic() < gone:
        time.sleep(0.1)
    assert not alive(process)


def test_numbers_that_no_machine_can_serve_are_refused() -> None:
    for options, match in (
        ({"workers": 0}, "workers must be at least 1, not 0"),
        ({"workers": 10**6}, "workers must be at most 4096"),
        ({"threads": 100_000}, "threads must be at most 1024, not 100000"),
        ({"workers": 10**5000}, "not one of more than 40 digits"),
    ):
        with pytest.raises(BadInput, match=match):
            cores.run(squares, [], **options)


def test_cores_are_counted_where_the_system_tells_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert [result[0] for _, result in cores.run(squares, enumerate(range(2)))] == [0, 1]


def test_a_killed_worker_leaves_no_lock_behind(tmp_path: Path) -> None:
    script = tmp_path / "asking.py"
    script.write_text(
        "import multiprocessing, os, signal\n"
        "from attnscope.engine import cores\n"
        "from attnscope.errors import WorkerDied\n"
        "def make():\n"
        "    lock = multiprocessing.RLock()\n"
        "    return lambda number: (lock, os.kill(os.getpid(), signal.SIGKILL))\n"
        "if __name__ == '__main__':\n"
        "    try:\n"
        "        list(cores.run(make, [(0, 0)], workers=1))\n"
        "    except WorkerDied:\n"
        "        print('told')\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("told\n", "")
