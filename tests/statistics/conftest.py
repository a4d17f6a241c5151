"""What the tests of statistics share."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _loaded(name: str) -> ModuleType:
    """A file beside this one, as a module: tests are no package."""
    known = f"statistics_{name}"
    if known not in sys.modules:
        specification = importlib.util.spec_from_file_location(known, Path(__file__).with_name(f"{name}.py"))
        sys.modules[known] = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(sys.modules[known])
    return sys.modules[known]


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The slow, obvious versions of every statistic (reference.py beside this file)."""
    return _loaded("reference")


@pytest.fixture(scope="session")
def sample(reference: ModuleType) -> ModuleType:
    """Random sentences with random attention (sample.py beside this file)."""
    module = _loaded("sample")
    module.reference = reference
    return module


LABELS = {
    "part_of_speech": ["layer", "head", "direction", "tag"],
    "dependency_alignment": ["layer", "head", "direction", "relation"],
    "dependency_type": ["layer", "head", "relation"],
    "dependency_by_distance": ["distance"],
    "patterns": ["layer", "head", "pattern"],
    "exemplars": ["layer", "head", "rank"],
}


@pytest.fixture(scope="session")
def labels() -> dict[str, list[str]]:
    """The columns that tell the rows of each table apart."""
    from attnscope.statistics import STATISTICS

    return {name: LABELS.get(name, ["layer", "head"]) for name in STATISTICS}
