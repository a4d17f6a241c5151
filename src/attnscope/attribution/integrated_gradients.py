"""Integrated gradients: the gradient averaged on the way from a blank text to the real one, times that way."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..progress import tell
from ..record import AttentionRecord, Model, TokenScores
from ..record.model import EMBEDDINGS
from ..record.schema import checked
from ..record.scores import scores_of
from .rerunning import blank_embeddings, key_embeddings, key_ids, rerunnable

INCOMPLETE = 0.05
"""The share of the target's change that the attributions may miss before the scores say so."""

Slope = Callable[[Float[Tensor, "step key width"]], tuple[Float[Tensor, " step"], Float[Tensor, "step key width"]]]
"""The values of a function of the embeddings at some points, and its gradients there."""


def path_points(steps: int) -> tuple[Float[Tensor, " step"], Float[Tensor, " step"]]:
    """Where on the way from 0 to 1 the gradient is taken, and what each place weighs: Gauss-Legendre quadrature.

    For a smooth function it comes as near with 50 steps as the paper's Riemann sum with thousands. The two ends come
    along at no weight, for the function's values there.
    """
    places, weights = np.polynomial.legendre.leggauss(steps)
    fractions = torch.tensor([0.0, *(places + 1) / 2, 1.0], dtype=torch.float32)
    return fractions, torch.tensor([0.0, *weights / 2, 0.0], dtype=torch.float32)


def integrated(
    slope: Slope, start: Float[Tensor, "key width"], end: Float[Tensor, "key width"], steps: int, batch_size: int
) -> tuple[Float[Tensor, "key width"], float]:
    """The attribution of every dimension, and by how much the function grows from start to end."""
    fractions, shares = path_points(steps)
    mean_gradient = torch.zeros_like(end)
    values: list[float] = []
    for some, their_shares in zip(fractions.split(batch_size), shares.split(batch_size), strict=True):
        tell(len(values), len(fractions))
        found, gradients = slope(start + some[:, None, None] * (end - start))
        mean_gradient += torch.einsum("s,skw->kw", their_shares, gradients)
        values += found.tolist()
    return (end - start) * mean_gradient, values[-1] - values[0]


@checked
def integrated_gradients(
    record: AttentionRecord,
    model: Model | None = None,
    steps: int = 50,
    baseline: str = "zero",
    target: int | str | None = None,
    signed: bool = False,
    batch_size: int = 16,
) -> TokenScores:
    """What each key token adds to the target on the straight way from a blank text to this one.

    Sundararajan, Taly & Yan 2017, Eq. 1: |Σ_d (x_d - x'_d) ∫₀¹ ∂F(x' + α(x - x'))/∂x_d dα| with x the token's
    embedding, x' the `baseline`'s (zero, or the embedding of the pad, mask or unk token) at every position, special
    tokens too, and F the target: the one captured in the record, or else the logit of the predicted or given outcome.
    `signed=True` keeps the sign; then the scores sum to F(x) - F(x'), and where they miss it they carry a warning. A
    model with RMSNorm (Llama, T5) jumps at embeddings of zero, which have no direction: there take another baseline.
    """
    runner = rerunnable(record, model, "integrated_gradients")
    for name, number in (("steps", steps), ("batch_size", batch_size)):
        if number < 1:
            raise BadInput(f"{name} must be at least 1, not {number}.")
    goal = record.target if target is None and record.target is not None else runner.target(record.inputs, target)
    start, end = blank_embeddings(record, runner, baseline), key_embeddings(record, runner)
    name = EMBEDDINGS[key_ids(record)]

    def slope(
        points: Float[Tensor, "step key width"],
    ) -> tuple[Float[Tensor, " step"], Float[Tensor, "step key width"]]:
        return runner.target_gradients([{**record.inputs, name: point} for point in points], goal)

    attributions, change = integrated(slope, start, end, steps, batch_size)
    scores = torch.nn.functional.pad(attributions.sum(-1), (record.added_tokens, 0))  # a learned sink is no input
    if not bool(scores.isfinite().all()):
        raise BadInput(
            f"The gradient on the way from {baseline} embeddings is not finite (models with RMSNorm have none at zero):"
            f" give another baseline= of {', '.join([*runner.blank_ids, 'zero'])}."
        )
    missed = abs(scores.sum().item() - change)
    sentence = (
        f"With {steps} steps from {baseline} these attributions miss the target's change of {change:.3g} by"
        f" {missed:.3g}: take more steps, or another baseline."
    )
    return scores_of(
        record,
        "integrated_gradients",
        scores if signed else scores.abs(),
        warnings=(sentence,) if missed > INCOMPLETE * abs(change) else (),
    )
