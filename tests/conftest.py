"""The environment of every test, and the fixtures that more than one folder uses."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Read by the libraries when they are imported, so set before any test is.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# Tiny tensors: waking a second thread costs more than it saves, many times over on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine is no failure: nothing here is timed.
settings.register_profile("attnscope", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("attnscope")


@pytest.hookimpl(optionalhook=True)  # pytest-xdist's: `pytest -n 2 --dist loadfile`, as in the Makefile
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep each file to one process, so that its fixtures are made once, and all files of Ray to the same one."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        """Two clusters at a time would starve each other: Ray gives itself 30 seconds to start."""

        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "ray" if Path(file).stem.startswith("test_ray") else file

    return ByFile(config, log)


@pytest.fixture(scope="session")
def real_model() -> Callable[[str], Path]:
    """Give the folder of a real pretrained model (`minilm`, `smollm2`), or skip where it is not laid out."""
    home = Path(os.environ.get("ATTNSCOPE_REAL_MODELS", Path.home() / ".cache" / "attnscope-real"))

    def find(name: str) -> Path:
        folder = home / name
        if not (folder / "model.safetensors").is_file():
            pytest.skip(
                f"The real model {name} is missing: lay it out with the real-models tool, "
                "or set ATTNSCOPE_REAL_MODELS to the folder that holds it."
            )
        return folder

    return find
