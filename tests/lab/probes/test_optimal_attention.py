import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from attnscope.errors import BadInput
from attnscope.lab.probes.optimal_attention import optimal_attention, projected


def loss_of(weights: np.ndarray, by_source: np.ndarray, by_state: np.ndarray, right: int) -> float:
    logits = weights @ by_source + by_state
    return float(np.logaddexp.reduce(logits) - logits[right])


def by_scipy(by_source: np.ndarray, by_state: np.ndarray, right: int) -> float:
    """The lowest loss that SLSQP finds."""
    positions = len(by_source)
    found = minimize(
        loss_of,
        np.full(positions, 1 / positions),
        (by_source, by_state, right),
        method="SLSQP",
        bounds=[(0, 1)] * positions,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return float(found.fun)


def test_the_counterexample_of_the_appendix() -> None:
    """A.1: the position of the largest β gets nothing, the two others a half each."""
    by_source = torch.tensor([[[0.0, 0, 0], [0, -10, 5], [0, 5, -10]]], dtype=torch.float64)
    found = optimal_attention(by_source, torch.zeros(1, 1, 3, dtype=torch.float64), torch.tensor([[0]]))
    torch.testing.assert_close(found.weights[0, 0], torch.tensor([0, 0.5, 0.5], dtype=torch.float64), atol=1e-6, rtol=0)
    lexical = by_source[0].log_softmax(-1)[:, 0]
    assert lexical.argmax() == 0
    assert found.gap.item() <= 1e-6


@pytest.mark.parametrize("spread", [0.3, 3.0, 12.0])
def test_it_is_as_low_as_scipy_finds(spread: float) -> None:
    draw = np.random.default_rng(int(spread * 10))
    by_source = spread * draw.normal(size=(2, 6, 9))
    by_state = draw.normal(size=(2, 4, 9))
    right = draw.integers(0, 9, (2, 4))
    found = optimal_attention(*map(torch.from_numpy, (by_source, by_state, right)), tolerance=1e-8)
    weights = found.weights.numpy()
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1)
    assert found.gap.max() <= 1e-8
    for sentence in range(2):
        for step in range(4):
            case = (by_source[sentence], by_state[sentence, step], right[sentence, step])
            assert found.loss[sentence, step].item() == pytest.approx(loss_of(weights[sentence, step], *case), abs=1e-9)
            assert found.loss[sentence, step].item() <= by_scipy(*case) + 1e-7


def test_padding_gets_nothing_and_changes_nothing() -> None:
    draw = torch.Generator().manual_seed(0)
    by_source = 3 * torch.randn(1, 5, 7, dtype=torch.float64, generator=draw)
    by_state = torch.randn(1, 3, 7, dtype=torch.float64, generator=draw)
    right = torch.tensor([[0, 3, 6]])
    real = torch.tensor([[True, True, True, False, False]])
    padded = optimal_attention(by_source, by_state, right, real)
    alone = optimal_attention(by_source[:, :3], by_state, right)
    assert (padded.weights[..., 3:] == 0).all()
    torch.testing.assert_close(padded.loss, alone.loss, atol=1e-6, rtol=0)


def test_the_projection_is_the_nearest_point_of_the_simplex() -> None:
    draw = np.random.default_rng(4)
    points = draw.normal(size=(20, 5))
    found = projected(torch.from_numpy(points), torch.ones(20, 5, dtype=torch.bool)).numpy()
    np.testing.assert_allclose(found.sum(1), 1)
    assert (found >= 0).all()
    # nearest: what is left over points away from every corner
    left = points - found
    assert ((left[:, None] * (np.eye(5)[None] - found[:, None])).sum(-1) <= 1e-12).all()


def test_bad_input_is_told() -> None:
    with pytest.raises(BadInput, match="tolerance"):
        optimal_attention(torch.zeros(1, 2, 3), torch.zeros(1, 1, 3), torch.tensor([[0]]), tolerance=0)
