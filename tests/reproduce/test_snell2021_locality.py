"""Locality: the sequences with a keyword, the four log-odds against a plain reading, and the stage at its smallest."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnscope.lab.models import RecurrentClassifier
from attnscope.reproduce.snell2021.classification import (
    SPECIAL,
    KeywordLogits,
    KeywordTask,
    do_locality_run,
    run_locality,
)
from attnscope.reproduce.snell2021.paper import SCALES
from attnscope.reproduce.snell2021.training import LOOKED_AT

SMOKE = SCALES["smoke"].locality
LOG_ODDS = ("keyword", "after", "mean", "last")


def test_only_positive_sequences_hold_the_keyword_and_once():
    task = KeywordTask()
    ids, classes, places = task.batch(401, seed=2, step=3)
    keyword = task.vocabulary.encode(["1"])[0]
    assert ids.shape == (401, 40)
    assert torch.equal((ids == keyword).sum(1), classes)
    assert int(classes.sum()) == 201
    positive = classes == 1
    assert (ids[positive].gather(1, places[positive, None]) == keyword).all()
    others = np.bincount(ids[ids != keyword].numpy())[len(SPECIAL) + 1 :]
    assert len(others) == 39
    assert others.min() > 0.75 * others.mean()
    assert torch.equal(ids, task.batch(401, seed=2, step=3)[0])
    assert not torch.equal(ids, task.batch(401, seed=2, step=4)[0])


def test_the_four_log_odds_are_read_where_they_should():
    scale = SMOKE
    task = KeywordTask(scale.length, scale.words)
    torch.manual_seed(0)
    model = RecurrentClassifier(task.vocabulary, width=8, hidden=8, bidirectional=False, attention="uniform").eval()
    with torch.no_grad():
        seen = KeywordLogits(model, scale, 1, range(3))(2)
        ids, classes, places = task.batch(scale.sequences, 1, LOOKED_AT + 2)
        rows = {name: [] for name in LOG_ODDS}
        for text, label, place in zip(ids, classes, places, strict=True):
            if label and place < scale.length - 2:
                odds = []
                for at in range(scale.length):
                    alone = torch.zeros(1, scale.length)
                    alone[0, at] = 1
                    odds.append(float(model(text[None], attention=alone)))
                rows["keyword"].append(odds[place])
                rows["after"].append(odds[place + 1])
                rows["mean"].append(float(model(text[None])))
                rows["last"].append(odds[-1])
        for name, values in rows.items():
            assert seen[name] == pytest.approx(np.mean(values), abs=1e-6)
        assert seen["loss"] == pytest.approx(float(model.loss(model(ids), classes)), abs=1e-6)


def test_one_row_for_each_seed_and_step(tmp_path):
    table = run_locality(tmp_path, SMOKE)["locality"]
    assert table.groupby("seed").step.apply(list).tolist() == [[0, 1, 10, 20]] * 2
    assert set(LOG_ODDS) < set(table.columns)
    again = run_locality(tmp_path, SMOKE)["locality"]
    assert again.equals(table)


def test_a_run_that_was_killed_ends_the_same(tmp_path, monkeypatch):
    scale, whole = replace(SMOKE, steps=110), KeywordLogits.__call__

    def killed_late(self, step):
        if step == 110:
            raise KeyboardInterrupt
        return whole(self, step)

    monkeypatch.setattr("attnscope.reproduce.snell2021.training.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr(KeywordLogits, "__call__", killed_late)
    with pytest.raises(KeyboardInterrupt):
        do_locality_run(tmp_path / "killed", scale, 0)
    monkeypatch.setattr(KeywordLogits, "__call__", whole)
    assert (tmp_path / "killed" / "0.growing" / "checkpoint.safetensors").exists()
    rows = do_locality_run(tmp_path / "killed", scale, 0)
    assert rows == do_locality_run(tmp_path / "whole", scale, 0)
