"""Several heads: what makes a head good or bad, how heads are combined, and the stage at its smallest."""

from dataclasses import replace

import pandas as pd
import pytest
import torch

from attnscope.reproduce.snell2021 import copying
from attnscope.reproduce.snell2021.copying import HeadsRun, _members, kind_of, model_of_heads, run_heads
from attnscope.reproduce.snell2021.paper import SCALES

SMOKE = SCALES["smoke"].heads


def test_models_share_all_weights_but_their_heads():
    one, other, both = (model_of_heads(SMOKE, numbers).state_dict() for numbers in ((3,), (4,), (3, 4)))
    for name, part in one.items():
        if name.startswith("attention.heads.0."):
            second = name.replace("heads.0.", "heads.1.")
            assert torch.equal(both[name], part)
            assert torch.equal(both[second], other[name])
            assert not torch.equal(part, other[name])
        else:
            assert torch.equal(both[name], part)
            assert torch.equal(other[name], part)


def test_several_heads_learn_longer_than_one():
    scale = replace(SMOKE, steps=7, combined_steps=11)
    assert [HeadsRun(heads, 0).steps(scale) for heads in ((3,), (3, 4))] == [7, 11]
    assert len({HeadsRun((3, 4), 0, contexts).name for contexts in ("mean", "sum")}) == 2
    mean, total = (model_of_heads(SMOKE, (3, 4), contexts).attention.share for contexts in ("mean", "sum"))
    assert (mean, total) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("curves", "kind"),
    [
        ([[0.1, 0.96, 0.2]], "good"),
        ([[0.1, 0.96], [0.1, 0.95]], "neither"),  # not above on the second
        ([[0.1, 0.59], [0.9, 0.1]], "bad"),
        ([[0.1, 0.6]], "neither"),
    ],
)
def test_a_head_is_what_all_its_trials_say(curves, kind):
    assert kind_of(curves) == kind


def test_combinations_are_of_their_kind():
    scale = replace(SMOKE, together=4, pool=6)
    bad, good = [10, 11, 12, 13, 14], [20, 21]
    for number in range(20):
        found = _members(scale, bad, good, number)
        assert set(found["bad"]) <= set(bad)
        assert len(set(found["good"]) & set(bad)) == 3
        assert len(set(found["good"]) & set(good)) == 1
        assert set(found["random"]) <= set(range(6))
        assert all(len(set(members)) == 4 for members in found.values())
        assert all(list(members) == sorted(members) for members in found.values())
        assert _members(scale, bad[:4], good, number)["random"] == found["random"]
    assert set(_members(scale, bad[:3], good, 0)) == {"good", "random"}
    assert set(_members(scale, bad, [], 0)) == {"bad", "random"}


def test_the_stage_tries_heads_and_combines_them(tmp_path, monkeypatch):
    monkeypatch.setattr(copying, "BAD", 0.99)  # so few steps make no good head, but some that count as bad
    together, tried = run_heads(tmp_path, SMOKE).values()
    assert tried["head"].nunique() == SMOKE.tried
    assert set(tried["found"]) <= {"good", "bad", "neither"}
    for _, rows in tried.groupby("head"):
        curves = [part.accuracy.tolist() for _, part in rows.groupby("data_seed")]
        assert kind_of(curves) == rows["found"].iloc[0]
    assert {"bad", "random"} <= set(together["kind"])
    assert set(together["contexts"]) == {"mean", "sum"}
    assert together.groupby(["contexts", "kind", "combination"]).size().eq(3).all()
    # what is summed is eight times what is averaged, so that it learns otherwise
    ways = [rows["loss"].tolist() for _, rows in together.groupby("contexts")]
    assert ways[0] != ways[1]
    files = len(list(tmp_path.iterdir()))
    pd.testing.assert_frame_equal(run_heads(tmp_path, SMOKE)["heads"], together)
    assert len(list(tmp_path.iterdir())) == files
