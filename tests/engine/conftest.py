"""One real Ray cluster for the tests that need one: two processors, little memory."""

import importlib.util
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from attnscope.engine import ENGINES

TOO_BUSY = "timed out during startup"
"""What Ray says of a machine that has not started it in 30 seconds."""


@pytest.fixture(scope="session")
def ray_library() -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is missing: pip install 'attnscope[ray]'.")


def begin_ray(tries: int = 4) -> None:
    """Start a Ray here; again if the machine is so busy that the 30 seconds are over which Ray gives itself."""
    import ray

    try:
        ray.init(
            "local",
            num_cpus=2,
            object_store_memory=100_000_000,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:
        ray.shutdown()
        if tries == 1 or TOO_BUSY not in str(error):
            raise
        begin_ray(tries - 1)


@pytest.fixture(scope="module")
def cluster(ray_library: None) -> Iterator[str]:
    """The address of a cluster this process is connected to."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        begin_ray()
        yield ray.get_runtime_context().gcs_address
        ray.shutdown()


@pytest.fixture
def run_on_ray(cluster: str) -> Callable[..., Any]:
    """The engine, with two workers if not told otherwise."""

    def run(make_worker: Any, items: Any, **options: Any) -> Any:
        return ENGINES["ray"](make_worker, items, **{"workers": 2, **options})

    return run


@pytest.fixture
def environment() -> dict[str, str]:
    """For a process that starts a Ray of its own: a small one."""
    kept = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    return {**kept, "RAY_DEFAULT_OBJECT_STORE_MEMORY_PROPORTION": "0.01"}
