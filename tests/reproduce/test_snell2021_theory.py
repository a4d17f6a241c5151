"""The theory of Snell et al. (2021), by numbers."""

import numpy as np
import pytest
import torch

from attnscope.lab.models.word_translation import WordTranslation
from attnscope.reproduce.snell2021.theory import check_theory, initial_change, predicted_change, proxy_loss


@pytest.fixture(scope="module")
def tables():
    return check_theory(widths=(64, 1_024, 16_384), seeds=2)


def test_logits_move_by_cooccurrence_and_probabilities_by_a_share_of_it(tables) -> None:
    """Eq. 53 holds; Eq. 15 lacks 1/|O|."""
    means = tables["initial_gradient"].groupby("width").mean()
    assert means["logits_error"].is_monotonic_decreasing
    assert means["corrected_error"].is_monotonic_decreasing
    last = means.iloc[-1]
    assert last["logits_error"] < 0.03
    assert last["corrected_error"] < 0.03
    assert last["logits_slope"] == pytest.approx(1, abs=0.01)
    assert last["probabilities_slope"] == pytest.approx(last["one_over_outputs"], rel=0.02)
    # what is printed stays wrong however wide
    assert last["printed_error"] == pytest.approx(1 - last["one_over_outputs"], abs=0.01)


def test_the_derivative_is_that_of_a_small_step() -> None:
    draw = torch.Generator().manual_seed(0)
    sources, targets = [[0, 1], [2, 1, 1]], [[0], [1, 2]]
    weights = [torch.randn(3, 5, dtype=torch.float64, generator=draw, requires_grad=True) for _ in range(2)]
    proxy_loss(*weights, sources, targets).backward()
    small = 1e-6
    moved = [weight.detach() - small * weight.grad for weight in weights]
    before, after = (embeddings @ output.T for embeddings, output in ([w.detach() for w in weights], moved))
    logits, chances = initial_change(*[weight.detach() for weight in weights], sources, targets)
    torch.testing.assert_close(logits, (after - before) / small, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(chances, (after.softmax(1) - before.softmax(1)) / small, atol=1e-4, rtol=1e-4)


def test_permutations_predict_no_change() -> None:
    counts = WordTranslation.learned([[0, 1, 2], [2, 0, 1]], [[0, 1, 2], [2, 0, 1]]).counts.toarray()
    np.testing.assert_allclose(predicted_change(torch.from_numpy(counts)), 0, atol=1e-12)


def test_the_best_attention_leaves_the_largest_beta_out(tables) -> None:
    table = tables["counterexample"]
    assert table["lexical"].idxmax() == 0
    assert table["attention"].round(6).tolist() == [0, 0.5, 0.5]
    assert table["lexical"].round(4).tolist() == [0.3333, 0.0067, 0.0067]


def test_the_proxy_is_a_logistic_regression(tables) -> None:
    table = tables["logistic"]
    assert table["difference"].abs().max() < 1e-5
    # it has learned something: a class is not told by its share alone
    assert table["logistic"].std() > 0.02


def test_the_proxy_is_blind_to_permutations(tables) -> None:
    table = tables["permutations"].set_index("task")
    assert (table["order_effect"] < 1e-5).all()
    assert (table.loc["same", "informative"] < 1e-9).all()
    assert (table.loc["choice", "informative"] > 0.3).all()
    assert (table.loc["choice", "right"] == 1).all()
    assert (table.loc["same", "right"] < 0.6).all()
