"""The engine of many machines where no Ray runs yet: it starts one of its own, and says what it cannot reach."""

import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from attnscope.engine import ray
from attnscope.errors import BadInput


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no Ray runs, though the cluster of other tests may."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if "ray" in sys.modules:
        monkeypatch.setattr("ray.is_initialized", lambda: False)


def test_a_ray_of_its_own_is_ended_when_the_generator_is_closed(ray_library, environment) -> None:
    script = (
        "import os, signal\n"
        "from itertools import count\n"
        "from attnscope.engine import ray\n"
        "before = signal.getsignal(signal.SIGTERM)\n"
        "results = ray.run(lambda: lambda item: os.getpid(), enumerate(count()), workers=1)\n"
        "import ray as library\n"
        "print(library.is_initialized())\n"
        "_, worker = next(results)\n"
        "print(library.is_initialized(), worker != os.getpid(), library.cluster_resources()['CPU'])\n"
        "results.close()\n"
        "print(library.is_initialized(), signal.getsignal(signal.SIGTERM) is before)\n"
        "try:\n"
        "    os.kill(worker, 0)\n"
        "except ProcessLookupError:\n"
        "    print('gone')\n"
    )
    command = [sys.executable, "-W", "error", "-c", script]
    for _ in range(4):  # Ray gives itself 30 seconds to start, which a busy machine may not have
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if "timed out during startup" not in done.stderr:
            break
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["False", "True True 1.0", "False True", "gone"]


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nothing_answers(ray_library, scheme: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # ours, so that nobody listens there
        address = f"{scheme}127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(BadInput, match=f"^Nothing answers at {address}: start Ray there"):
            list(ray.run(lambda: str, [(0, 0)], address=address))


@pytest.mark.parametrize("address", ["cluster", "cluster:port", ":6379", "ray://", "host:0"])
def test_what_is_no_address(ray_library, address: str) -> None:
    with pytest.raises(BadInput, match="is no address of a Ray cluster: give host:port"):
        list(ray.run(lambda: str, [(0, 0)], address=address))


def test_what_ray_says_of_a_failure_to_connect_is_one_sentence() -> None:
    def init(address, **options):
        raise ConnectionError("Could not find\nany running Ray instance.")

    library = SimpleNamespace(is_initialized=lambda: False, init=init, shutdown=lambda: None)
    with (
        pytest.raises(BadInput, match=r"^Cannot connect to Ray at auto: Could not find any running Ray instance\.$"),
        ray._connected(library, "auto", None),
    ):
        pass


@pytest.mark.parametrize("option", ["workers", "threads", "attempts"])
def test_less_than_one_is_refused_at_once(option: str) -> None:
    with pytest.raises(BadInput, match=f"{option} must be at least 1, not 0"):
        ray.run(lambda: str, [], **{option: 0})


def test_a_missing_library_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadInput, match=r"needs Ray: pip install 'attnscope\[ray\]'\.$"):
        ray.run(lambda: str, [])
