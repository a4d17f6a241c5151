"""Progress in a log: a line now and then, and none on a terminal."""

import logging
import sys
import threading
from types import SimpleNamespace

import pytest
import transformers

from attnscope import progress


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, 10.0, 61.0, 61.0, 100.0, 130.0, 130.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    log = progress.Log()
    for line in ("at 10", "at 61", "at 100", "at 130"):
        log.tell(line)
    assert capsys.readouterr().err == "at 61\nat 130\n"


def test_a_terminal_gets_none(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress.tell_log("a line")
    assert capsys.readouterr().err == ""


def test_items_are_told_in_a_log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with progress.items_done("Models") as watch:
        watch(2, 5)
    assert capsys.readouterr().err == "Models: 2 of 5\n"


def test_work_that_tells_nothing_is_told_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.001)
    lines: list[str] = []
    monkeypatch.setattr(progress, "tell_log", lambda line: (lines.append(line), told.set()))
    with progress.waiting("Reporting on [/] 1 text"):
        assert told.wait(60)
        progress.tell(3, 7)
        told.clear()
        assert told.wait(60)
    assert "Reporting on [/] 1 text … 0 min, at 3 of 7" in lines


@pytest.mark.parametrize("size", [None, 9])
def test_texts_are_told_in_a_log(
    size: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with progress.tokens_done() as watch:
        watch(progress.CorpusProgress(1, 2, 4, size, 4, 50))
    with progress.texts_done() as watch:
        watch(3, SimpleNamespace(texts=5))
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"Texts: 4 of {size or 'an unknown number'}, pass 1 of 2, 50 tokens, ")
    assert second == "Texts: 3 of 5"


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


def test_the_libraries_chatter_is_as_before_when_the_work_is_done() -> None:
    chatter, hub = transformers.logging, logging.getLogger("huggingface_hub")
    before = (chatter.get_verbosity(), chatter.is_progress_bar_enabled(), hub.level)
    chatter.set_verbosity_info()
    chatter.enable_progress_bar()
    hub.setLevel(logging.INFO)
    try:
        with pytest.raises(ValueError, match="in the midst"), progress.working("Loading"):
            assert (chatter.get_verbosity(), chatter.is_progress_bar_enabled()) == (logging.ERROR, False)
            assert hub.level == logging.ERROR
            raise ValueError("in the midst")
        assert (chatter.get_verbosity(), chatter.is_progress_bar_enabled()) == (logging.INFO, True)
        assert hub.level == logging.INFO
    finally:
        chatter.set_verbosity(before[0])
        if not before[1]:
            chatter.disable_progress_bar()
        hub.setLevel(before[2])
