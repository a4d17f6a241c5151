"""What the tests of attribution share."""

import importlib.util
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The slow, obvious versions of every method (reference.py beside this file)."""
    name = "attribution_reference"
    if name not in sys.modules:
        specification = importlib.util.spec_from_file_location(name, Path(__file__).with_name("reference.py"))
        module = importlib.util.module_from_spec(specification)
        sys.modules[name] = module
        specification.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def tiny() -> SimpleNamespace:
    """The tiny models of every family, as tests/capture/conftest.py builds them."""
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "capture" / "conftest.py")))
