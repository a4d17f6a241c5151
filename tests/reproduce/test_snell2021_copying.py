"""Copying: the stage at its smallest, what it keeps, and that an interrupted run ends as an uninterrupted one."""

from dataclasses import replace

import pandas as pd
import pytest

from attnscope.engine import Store
from attnscope.errors import BadInput
from attnscope.lab import train
from attnscope.reproduce.snell2021.copying import PROBED, CopyingRun, do_copying_run, run_copying
from attnscope.reproduce.snell2021.paper import SCALES, TASKS

SMOKE = SCALES["smoke"].copying


def test_one_row_for_each_run_and_step(tmp_path):
    table = run_copying(tmp_path, SMOKE)["copying"]
    runs = table.groupby(["task", "attention", "seed"])["step"].apply(list)
    assert len(runs) == 2 * len(TASKS) + len(PROBED)
    for (task, attention, _), steps in runs.items():
        longer = (task, attention) == ("reordered", "learned")
        assert steps == ([0, 10, 20, 30] if longer else [0, 10, 20])
    assert table.accuracy.between(0, 1).all()
    assert (table.loss > 0).all()
    probed = table.attention == "uniform"
    columns = ["lexical_right", "lexical_other", "lexical_top"]
    assert table.loc[probed, columns].notna().all(axis=None)
    assert table.loc[~probed, columns].isna().all(axis=None)
    assert (
        table.groupby(["task", "attention", "seed"]).loss.last()
        < table.groupby(["task", "attention", "seed"]).loss.first()
    ).all()
    again = run_copying(tmp_path, SMOKE)["copying"]
    pd.testing.assert_frame_equal(again, table)
    assert not list(tmp_path.glob("*.growing"))
    with pytest.raises(BadInput, match="batch"):
        run_copying(tmp_path, replace(SMOKE, batch=9))


def test_both_tasks_of_the_probe_begin_alike(tmp_path):
    first, second = (do_copying_run(tmp_path, SMOKE, CopyingRun(task, "uniform", 3))[0] for task in PROBED)
    # before any step the model and the sources are the same; only the order of the right words is another
    assert first["lexical_right"] == pytest.approx(second["lexical_right"], abs=0.2)


def test_an_interrupted_run_ends_as_if_nothing_had_been(tmp_path, monkeypatch):
    scale = replace(SMOKE, steps=12, every=4)
    run = CopyingRun("same", "learned", 1)
    whole = do_copying_run(tmp_path / "whole", scale, run)
    monkeypatch.setattr(train, "STEPS_PER_ROW", 3)  # a checkpoint may be written where a row ends
    monkeypatch.setattr(train.time, "monotonic", iter(range(0, 100_000, 60)).__next__)
    kept = train._save

    def save_and_die(store, model, rule, state):
        kept(store, model, rule, state)
        if state.step == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(train, "_save", save_and_die)
    with pytest.raises(KeyboardInterrupt):
        do_copying_run(tmp_path / "broken", scale, run)
    assert (tmp_path / "broken" / "same-learned-1.growing" / "checkpoint.safetensors").exists()
    monkeypatch.setattr(train, "_save", kept)
    assert do_copying_run(tmp_path / "broken", scale, run) == whole
    assert Store(tmp_path / "broken", "stage", {}).find("same-learned-1") == whole
