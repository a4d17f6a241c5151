"""Killed at any moment and resumed, a survey gives the identical tables."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attnscope import Survey, survey

# Surveys in children of one process, each killed at another moment: it is enough to import torch once.
SCRIPT = """
import json, os, signal, sys
from pathlib import Path

import attnscope

folder, names, limit, shard_size, moments = json.loads(sys.argv[1])
model = attnscope.load("demo")
attnscope.survey(model, "demo", names, limit=1, threads=1)  # what is made ready by the first is ready in every child


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def counted(number, call, late):
    calls = 0

    def wrapper(*arguments):
        nonlocal calls
        calls += 1
        if calls == number and not late:
            die()
        result = call(*arguments)
        if calls == number:
            die()
        return result

    return wrapper


def begin(name, kind, number):
    watch = None
    if kind == "shard":
        watch = counted(number, lambda progress: None, False)
    elif kind == "half a file":  # written beside its place, but not renamed
        Path.replace = counted(number, Path.replace, False)
    elif kind == "file":
        Path.replace = counted(number, Path.replace, True)
    attnscope.survey(
        model, "demo", names, out=Path(folder) / name, limit=limit, shard_size=shard_size, threads=1, watch=watch
    )


for name, kind, number in moments:
    child = os.fork()
    if child == 0:
        begin(name, kind, number)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    print(name, os.WTERMSIG(status) if os.WIFSIGNALED(status) else "finished", flush=True)
"""
NAMES = ["part_of_speech", "variability", "exemplars"]  # labels, a second pass, texts
LIMIT, SHARD_SIZE, SHARDS = 12, 4, 3
WRITTEN_WHILE_RUNNING = 1 + 2 * SHARDS


@pytest.fixture(scope="module")
def uninterrupted(demo, tmp_path_factory: pytest.TempPathFactory) -> tuple[Survey, int]:
    """The survey without a kill, and how many files are written for it in all."""
    written = []
    rename = Path.replace
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", lambda path, target: (written.append(target), rename(path, target))[1])
        found = run(demo, tmp_path_factory.mktemp("survey") / "out")
    return found, len(written)


def run(model, out: Path | None, **options) -> Survey:
    return survey(model, "demo", NAMES, out=out, limit=LIMIT, shard_size=SHARD_SIZE, threads=1, **options)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def killed_surveys(folder: Path, moments: list[tuple[str, str, int]]) -> None:
    arguments = json.dumps([str(folder), NAMES, LIMIT, SHARD_SIZE, moments])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [word for name, *_ in moments for word in (name, str(int(signal.SIGKILL)))]


def test_killed_at_any_moment(uninterrupted, demo, lab, tmp_path: Path) -> None:
    expected, written = uninterrupted
    assert written > WRITTEN_WHILE_RUNNING
    dice = random.Random()  # other moments every time; the message names them
    moments = [
        ("first-pass", "shard", dice.randint(1, SHARDS)),
        ("second-pass", "shard", dice.randint(SHARDS + 1, 2 * SHARDS)),
        ("half-a-shard", "half a file", dice.randint(1, WRITTEN_WHILE_RUNNING)),
        ("half-a-table", "half a file", dice.randint(WRITTEN_WHILE_RUNNING + 1, written - 2)),
        ("before-the-card", "half a file", written),
        ("behind-the-card", "file", written),
    ]
    killed_surveys(tmp_path, moments)
    for name, kind, number in moments:
        where = f"killed at {kind} {number}"
        if name == "behind-the-card":
            assert (tmp_path / name / "survey.json").exists(), where
        else:
            assert not (tmp_path / name / "survey.json").exists(), where
        told = []
        found = run(demo, tmp_path / name, resume=True, watch=told.append)
        assert not told or told[-1].number == told[-1].passes == 2, where
        lab.assert_identical(found, expected)
        lab.assert_identical(Survey.load(tmp_path / name), expected)
        assert not (tmp_path / name / "unfinished").exists(), where
        # what was half written at the time of the kill may lie about, hidden, and hurts nobody
        seen = {path for path in files(tmp_path / name) if not Path(path).name.startswith(".")}
        assert seen == files(tmp_path / "first-pass"), where


def test_what_was_done_is_not_done_again(demo, lab, uninterrupted, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop_at(number: int):
        def watch(progress) -> None:
            told.append(progress)
            if len(told) == number:
                raise Stop

        return watch

    told = []
    with pytest.raises(Stop):
        run(demo, tmp_path / "out", watch=stop_at(2))
    assert [progress.texts for progress in told] == [4, 8]
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "unfinished").iterdir()}
    assert len(kept) == 1 + 2
    told = []
    with pytest.raises(Stop):
        run(demo, tmp_path / "out", resume=True, watch=stop_at(SHARDS + 1))
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    told = []
    found = run(demo, tmp_path / "out", resume=True, watch=stop_at(100))
    assert len(told) == 2 * SHARDS
    assert [(progress.number, progress.texts) for progress in told[-2:]] == [(2, 8), (2, 12)]
    assert told[-1].size == told[-1].sentences == LIMIT
    assert told[SHARDS - 1].tokens == found.card["tokens"]
    lab.assert_identical(found, uninterrupted[0])


def test_a_finished_survey_is_given_again_without_running(demo, lab, tmp_path: Path) -> None:
    first = run(demo, tmp_path / "out")
    before = {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in files(tmp_path / "out")}
    again = run(demo, tmp_path / "out", resume=True, watch=lambda _: pytest.fail("It ran again."))
    lab.assert_identical(first, again)
    assert first.card == again.card
    assert {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in files(tmp_path / "out")} == before


def test_resume_without_anything_there_begins(demo, lab, uninterrupted, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        lab.assert_identical(run(demo, tmp_path / name, resume=True), uninterrupted[0])


def test_a_damaged_shard_is_named(demo, tmp_path: Path) -> None:
    def stop(progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(demo, tmp_path / "out", watch=stop)
    (shard,) = (tmp_path / "out" / "unfinished").glob("pass-1-*")
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"pass-1-000000\.safetensors is not a checkpoint, or is damaged"):
        run(demo, tmp_path / "out", resume=True)
