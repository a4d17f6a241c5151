"""What the tests of engines share."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from attnscope.engine import ENGINES


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
