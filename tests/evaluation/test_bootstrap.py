"""Bootstrap intervals: they cover, they are paired, and gaps are left out."""

import numpy as np
import pytest

from attnscope.evaluation.tables import interval, means, resampled_means


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    dice = np.random.default_rng(0)
    # each column is a data set of its own
    values = dice.exponential(size=(60, 1000))
    low, high = interval(resampled_means(values, seed=1))
    covered = ((low <= 1.0) & (high >= 1.0)).mean()
    assert 0.91 <= covered <= 0.96


def test_it_is_the_naive_bootstrap_with_the_same_draws():
    values = np.random.default_rng(0).normal(size=(7, 2))
    dice = np.random.default_rng(5)
    picks = dice.integers(7, size=(10, 7))
    expected = np.stack([values[pick].mean(0) for pick in picks])
    np.testing.assert_allclose(resampled_means(values, seed=5, resamples=10), expected)


def test_the_same_seed_gives_the_same_interval():
    values = np.random.default_rng(0).normal(size=(20, 3))
    assert np.array_equal(resampled_means(values, seed=3), resampled_means(values, seed=3))
    assert not np.array_equal(resampled_means(values, seed=3), resampled_means(values, seed=4))


def test_figures_are_paired():
    first = np.random.default_rng(0).normal(size=30)
    samples = resampled_means(np.stack([first, first + 1], axis=1), seed=0)
    low, high = interval(samples[:, 1:] - samples[:, :1])
    assert (low, high) == (pytest.approx(1.0), pytest.approx(1.0))


def test_texts_without_a_figure_do_not_count():
    values = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan], [5.0, 7.0, np.nan]])
    np.testing.assert_allclose(means(values), [3.0, 6.0, np.nan])
    low, high = interval(resampled_means(values, seed=0))
    assert 5.0 <= low[1] <= high[1] <= 7.0
    assert np.isnan([low[2], high[2]]).all()
