"""Mutations of real files: some of those that `make fuzz` tries."""

import json
import subprocess
import sys
from pathlib import Path


def test_mutated_files_are_read_or_refused_in_one_sentence():
    """In a process of its own, without the run-time type checks of tests: those would hide what a user gets."""
    script = Path(__file__).with_name("files.py")
    done = subprocess.run([sys.executable, script, "1500"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    outcomes = json.loads(done.stdout.splitlines()[-1])
    assert outcomes["refused"] > 1000
    assert outcomes["read"] > 50
    assert outcomes["read"] + outcomes["refused"] == 1500
