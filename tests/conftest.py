"""The environment of every test, and the fixtures that more than one folder uses."""

import os
from collections.abc import Callable
from pathlib import Path

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
