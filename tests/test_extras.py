"""Without an extra, what needs it says so in one sentence."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_missing_extra_gives_its_sentence():
    script = ROOT / ".ci" / "missing_extras.py"
    done = subprocess.run([sys.executable, script, "--hide"], capture_output=True, text=True, check=False)
    assert done.stdout == "0 without their sentence.\n", done.stderr


def test_all_brings_users_no_development_tools():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    named = set(everything.removeprefix("attnscope[").removesuffix("]").split(","))
    assert named == set(extras) - {"all", "bench", "dev"}
