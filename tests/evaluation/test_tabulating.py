"""The table: means, intervals, buckets of length and baselines, from made-up figures."""

import numpy as np
import pytest
import torch

from attnscope.evaluation.per_text import Figure, rank_figures
from attnscope.evaluation.tables import tabulate


def figure(method, measure="spearman", against="blank_out", layer=None):
    return Figure(method, layer, against, measure, "without")


def row(table, method, bucket="all", measure="spearman"):
    chosen = table[(table["method"] == method) & (table["bucket"] == bucket) & (table["measure"] == measure)]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_means_intervals_and_buckets():
    values = np.array([[0.2], [0.4], [0.9]])
    table = tabulate([figure("mine")], values, np.array([5, 8, 30]), seed=0)
    assert row(table, "mine")["value"] == pytest.approx(0.5)
    assert row(table, "mine")["low"] <= 0.5 <= row(table, "mine")["high"]
    assert row(table, "mine", "1-8")["value"] == pytest.approx(0.3)
    assert row(table, "mine", "1-8")["texts"] == 2
    assert list(table["bucket"].unique()) == ["all", "1-8", "17-32"]
    assert np.isnan(row(table, "mine", "17-32")["low"]), "one text has no interval"


def test_a_figure_stands_beside_its_best_baseline():
    figures = [figure("mine"), figure("random"), figure("position"), figure("random", against="gradient")]
    values = np.array([[0.5, 0.1, 0.3, 0.9], [0.7, 0.1, 0.5, 0.9]])
    found = row(tabulate(figures, values, np.array([5, 5]), seed=0), "mine")
    assert found["baseline"] == "position"
    assert [found["above"], found["above_low"], found["above_high"]] == pytest.approx([0.2] * 3), "paired, text by text"


def test_a_baseline_has_no_baseline():
    table = tabulate([figure("random"), figure("position")], np.array([[0.1, 0.3]] * 2), np.array([5, 5]), seed=0)
    assert (table["baseline"] == "").all()
    assert table["above"].isna().all()


def test_for_sufficiency_lower_is_better():
    figures = [figure(method, "sufficiency", "erasure") for method in ("mine", "random", "position")]
    table = tabulate(figures, np.array([[0.1, 0.4, 0.3]] * 2), np.array([5, 5]), seed=0)
    found = row(table, "mine", measure="sufficiency")
    assert found["baseline"] == "position"
    assert found["above"] == pytest.approx(0.2)


def test_what_is_not_defined_does_not_count():
    figures = [figure("mine"), figure("random"), figure("position")]
    values = np.array([[0.2, 0.1, np.nan], [np.nan, 0.1, np.nan], [0.4, 0.1, np.nan]])
    found = row(tabulate(figures, values, np.array([5, 5, 5]), seed=0), "mine")
    assert (found["texts"], found["baseline"]) == (2, "random")
    assert found["value"] == pytest.approx(0.3)


@pytest.mark.parametrize("tokens", [8, 25])
def test_one_extreme_item_that_both_share_lifts_the_figure(tokens):
    """abnar2020 ranks [CLS] too: alone it makes unrelated scores agree by .12 (25 tokens) to .33 (8 tokens)."""
    dice = torch.Generator().manual_seed(0)
    positions = {"with": list(range(tokens)), "without": list(range(1, tokens))}
    found = {"with": [], "without": []}
    for _ in range(1000):
        mine, reference = torch.rand(2, tokens, generator=dice)
        mine[0] = reference[0] = 9.0
        for key, value in rank_figures({("mine", None): mine}, {"blank_out": reference}, positions, top=3).items():
            if key.measure == "spearman":
                found[key.special].append(value)
    assert np.mean(found["with"]) == pytest.approx({8: 0.33, 25: 0.12}[tokens], abs=0.03)
    assert np.mean(found["without"]) == pytest.approx(0.0, abs=0.03)
