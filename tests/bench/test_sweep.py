"""The benchmark of the sweep compares the same thing; times are not tested."""

import pytest

from attnscope.bench import sweep
from attnscope.bench.sweep import largest_difference, made_texts


def test_figures_of_a_small_sweep(monkeypatch):
    monkeypatch.setattr(sweep, "WIDTH", 8)
    monkeypatch.setattr(sweep, "SCALINGS", (1, 10))
    figures = list(sweep._speed(made_texts(110, 50), "additive", 100))
    assert [figure.other for figure in figures] == ["one by one, sparse", "one by one, dense"]
    assert [figure.goal for figure in figures] == [">= 2x", ""]
    assert all(figure.ours > 0 and figure.ratio == pytest.approx(figure.others / figure.ours) for figure in figures)


def test_the_difference_is_that_of_the_weights(monkeypatch):
    data = made_texts(110, 50)
    assert largest_difference(data, "dot", 0.5, [10], 8) < 1e-9
    train = sweep.OneByOne.train
    monkeypatch.setattr(sweep.OneByOne, "train", lambda self, steps, our_masks: train(self, steps, our_masks=False))
    assert largest_difference(data, "dot", 0.5, [10], 8) > 1e-3, "with other masks the weights must differ"
