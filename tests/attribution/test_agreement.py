"""Agreement of ranks: against scipy, by hand, and where the formula without ties goes wrong."""

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from attnscope.attribution.comparing import kendall, ranks, spearman, top_overlap
from attnscope.errors import BadInput

# few different values, so that ties are common
scores = st.integers(2, 30).flatmap(
    lambda size: st.tuples(*[st.lists(st.integers(-3, 3), min_size=size, max_size=size)] * 2)
)


def both(pair):
    first, second = (np.array(values) / 7 for values in pair)
    assume(len(set(first)) > 1 and len(set(second)) > 1)
    return first, second


@given(scores)
def test_spearman_is_scipys(pair):
    first, second = both(pair)
    assert spearman(first, second) == pytest.approx(scipy.stats.spearmanr(first, second).statistic, abs=1e-12)


@given(scores)
def test_kendall_is_scipys_tau_b(pair):
    first, second = both(pair)
    assert kendall(first, second) == pytest.approx(scipy.stats.kendalltau(first, second).statistic, abs=1e-12)


@given(scores)
def test_ranks_are_scipys_average_ranks(pair):
    first, _ = (np.array(values) / 7 for values in pair)
    np.testing.assert_allclose(ranks(first), scipy.stats.rankdata(first))


def test_ties_that_arithmetic_has_broken_are_ties():
    broken = torch.tensor([1.0, 1.0 + 1e-11, 1.0 - 1e-11, 0.0], dtype=torch.float64)
    assert ranks(broken).tolist() == [3.0, 3.0, 3.0, 1.0]
    noise = np.array([3.0, 1.0, 2.0, 4.0])
    exact = scipy.stats.spearmanr(np.round(broken.numpy(), 9), noise).statistic
    assert spearman(broken, torch.from_numpy(noise)) == pytest.approx(exact, abs=1e-12)


def test_minus_zero_ties_with_zero():
    assert ranks(np.array([-0.0, 0.0, -1e-12])).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("measure", [spearman, kendall])
def test_by_hand(measure):
    up, down = np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])
    assert measure(up, up) == pytest.approx(1.0)
    assert measure(up, down) == pytest.approx(-1.0)
    assert np.isnan(measure(up, np.ones(3)))
    assert np.isnan(measure(np.ones(1), np.ones(1)))


def test_tau_b_by_hand():
    # pairs: (0,1) tied in the first, (0,2) and (1,2) alike: 2 of sqrt(2 * 3)
    assert kendall(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(2 / 6**0.5)


def test_dense_ranks_invent_agreement_and_average_ranks_do_not():
    """abnar2020: half of the flows are 1, and the formula for untied scores, on dense ranks, makes that agreement."""
    dice = np.random.default_rng(0)

    def as_the_authors(first, second):
        one, other = (scipy.stats.rankdata(values, method="dense") for values in (first, second))
        size = len(first)
        return 1 - 6 * ((one - other) ** 2).sum() / (size * (size**2 - 1))

    theirs, ours = [], []
    for _ in range(3000):
        half_tied, untied = dice.random(20), dice.random(20)
        half_tied[:10] = 1.0
        theirs.append(as_the_authors(half_tied, untied))
        ours.append(spearman(half_tied, untied))
    assert np.mean(theirs) == pytest.approx(0.22, abs=0.05)
    assert np.mean(ours) == pytest.approx(0.0, abs=0.02)


def test_top_overlap_by_hand():
    first, second = np.array([4.0, 3.0, 2.0, 1.0]), np.array([4.0, 1.0, 3.0, 2.0])
    assert top_overlap(first, second, 1) == 1.0
    assert top_overlap(first, second, 2) == 0.5
    assert top_overlap(first, second, 3) == pytest.approx(2 / 3)
    assert np.isnan(top_overlap(first, second, 4))


def test_top_overlap_of_ties_is_what_to_expect_of_breaking_them_at_random():
    first, second = np.array([2.0, 1.0, 1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 2.0, 1.0])
    dice = np.random.default_rng(0)
    overlaps = []
    for _ in range(20_000):
        tops = [set(np.lexsort((dice.random(5), -values))[:2]) for values in (first, second)]
        overlaps.append(len(tops[0] & tops[1]) / 2)
    assert top_overlap(first, second, 2) == pytest.approx(np.mean(overlaps), abs=0.01)
    assert top_overlap(np.ones(5), second, 2) == pytest.approx(2 / 5)


def test_bad_input():
    with pytest.raises(BadInput, match="one has 2 scores and the other 3"):
        spearman(np.ones(2), np.ones(3))
    with pytest.raises(BadInput, match="not finite"):
        kendall(np.array([1.0, np.nan]), np.ones(2))
    with pytest.raises(BadInput, match="at least one token"):
        top_overlap(np.ones(2), np.ones(2), 0)
