"""Ctrl-C in the shell: a short line that says how to go on, an exit code of its own, and nothing that looks done."""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to a child.")

GO_ON = "Stopped. Go on with --resume, from the last checkpoint if there is one yet.\n"
STAGE = "vig2019, stage 1 of 1: survey\n"
NOTHING_KEPT = "attnscope: stopped.\n"
FEW = ["--statistics", "distance", "--statistics", "null_attention", "--threads", "1"]
STOPPED = {
    "train": (["train", "demo"], "at once", GO_ON),
    "trust that is kept": (["trust", "demo", "demo", "--out", "kept"], "at once", GO_ON),
    "trust": (["trust", "demo", "demo"], "at once", NOTHING_KEPT),
    "survey": (
        ["survey", "demo", "demo", "--out", "out", "--limit", "400", "--shard-size", "4", *FEW],
        "when a shard is kept",
        GO_ON,
    ),
    "reproduce": (["reproduce", "vig2019", "--out", "out", "--limit", "200"], "when a shard is kept", STAGE + GO_ON),
}
# Each command in a child of one process: it is enough to import torch once.
SCRIPT = """
import gc, json, os, signal, sys, threading, time
from pathlib import Path

from attnscope import capture, cli, demo, evaluation, lab, reproduce, surveying

# a shell starts background jobs with SIGINT ignored, and so may whatever runs the tests
signal.signal(signal.SIGINT, signal.default_int_handler)


def stop(*arguments, **options):
    os.kill(os.getpid(), signal.SIGINT)


def stop_when_a_shard_is_kept():
    while not any(Path().rglob("pass-*.safetensors")):
        time.sleep(0.005)
    stop()


gc.freeze()  # no child looks for garbage among what was imported, and so none copies it
codes = {}
for name, (command, moment, _) in json.loads(sys.argv[1]).items():
    Path(name).mkdir()
    child = os.fork()
    if child == 0:
        for number, printed in ((1, "printed"), (2, "said")):
            os.dup2(os.open(f"{name}.{printed}", os.O_CREAT | os.O_WRONLY), number)
        os.chdir(name)
        if moment == "at once":
            lab.TASKS["demo"] = evaluation.trust = stop
        else:
            threading.Thread(target=stop_when_a_shard_is_kept, daemon=True).start()
        sys.argv[1:] = command
        cli.main()
        sys.exit("It was not stopped.")
    codes[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(codes))
"""


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Where each command was run, its exit code, and what it printed."""
    folder = tmp_path_factory.mktemp("stopped")
    asked = [sys.executable, "-c", SCRIPT, json.dumps(STOPPED)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return {
        name: SimpleNamespace(
            folder=folder / name,
            code=code,
            printed=(folder / f"{name}.printed").read_text(encoding="utf-8"),
            said=(folder / f"{name}.said").read_text(encoding="utf-8"),
        )
        for name, code in json.loads(done.stdout).items()
    }


@pytest.mark.parametrize("name", STOPPED)
def test_stopping_it_leaves_a_short_line(stopped, name):
    assert stopped[name].code == 128 + signal.SIGINT
    assert stopped[name].said == STOPPED[name][-1]
    assert stopped[name].printed == ""


@pytest.mark.parametrize(("name", "done"), [("survey", "survey.json"), ("reproduce", "claims.json")])
def test_what_was_stopped_is_begun_and_not_done(stopped, name, done):
    assert any(stopped[name].folder.rglob("pass-*.safetensors"))
    assert not (stopped[name].folder / "out" / done).exists()
