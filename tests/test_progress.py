"""Progress in a log: a line now and then, and none on a terminal."""

import sys

import pytest

from attnscope import progress


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, 10.0, 61.0, 61.0, 100.0, 130.0, 130.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    tell_log = progress.lines_in_log()
    for line in ("at 10", "at 61", "at 100", "at 130"):
        tell_log(line)
    assert capsys.readouterr().err == "at 61\nat 130\n"


def test_a_terminal_gets_none(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress.lines_in_log()("a line")
    assert capsys.readouterr().err == ""


def test_items_are_told_in_a_log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with progress.items_done("Models") as watch:
        watch(2, 5)
    assert capsys.readouterr().err == "Models: 2 of 5\n"


def test_each_method_has_lines_in_a_log_once_it_takes_its_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {0.0: ("flow", 0), 1.0: ("flow", 5), 1.5: ("blank_out", 0), 4.0: ("blank_out", 3), 9.0: ("blank_out", 5)}
    clock: list[float] = []
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[-1])
    with progress.methods_done() as watch:
        for now, (name, done) in {**told, 15.0: ("blank_out", 8)}.items():
            clock.append(now)
            watch(name, done, 9)
    assert capsys.readouterr().err == "blank_out: 3 of 9\nblank_out: 8 of 9\n"
