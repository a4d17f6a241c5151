"""Integrated gradients: the gradient averaged on the way from a blank text to the real one, times that way."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast, get_args

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
from ..record.target import Quantity, Target
from .rerunning import blank_embeddings, key_embeddings, key_ids, rerunnable

INCOMPLETE = 0.05
"""The share of the target's change that the attributions may miss before the scores say so."""

STEEP = 1e6
"""How many times the gradient at the text the one at a baseline may be long: norms of a model jump where it is longer.

Seen are at most 1e3 where a baseline is sound, and at least 1e10 at embeddings of zero in models with RMSNorm: each
layer multiplies the gradient by one over the root of its epsilon, until even float32 overflows (SmolLM2).
"""
FLAT = 1e-3
"""A gradient at the text that is shorter says nothing of what is steep: the probability may be all but one."""

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


def integrate(
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
    baseline: str | None = None,
    target: int | str | None = None,
    signed: bool = False,
    batch_size: int = 16,
    quantity: str | None = None,
) -> TokenScores:
    """What each key token adds to the target on the straight way from a blank text to this one.

    Sundararajan, Taly & Yan 2017, Eq. 1: |Σ_d (x_d - x'_d) ∫₀¹ ∂F(x' + α(x - x'))/∂x_d dα| with x the token's
    embedding, x' the `baseline`'s at every position, special tokens too, and F the target: the one captured in the
    record, or else the logit of the predicted or given outcome; `quantity` follows its logit, its probability or its
    difference to the next best instead. `signed=True` keeps the sign; then the scores sum to F(x) - F(x'), and where
    they miss it they carry a warning.

    The baseline is zero, the embedding of the unk, mask or pad token, or the mean embedding of the text. Unless one is
    named it is zero; where the model jumps there, as all with RMSNorm do (Llama, Qwen, Gemma, T5: zero has no
    direction), it is the first of the others where it does not, and the scores say so.
    """
    runner = rerunnable(record, model, "integrated_gradients")
    for name, number in (("steps", steps), ("batch_size", batch_size)):
        if number < 1:
            raise BadInput(f"{name} must be at least 1, not {number}.")
    goal = _goal(record, runner, target, quantity)
    name = EMBEDDINGS[key_ids(record)]

    def slope(
        points: Float[Tensor, "step key width"],
    ) -> tuple[Float[Tensor, " step"], Float[Tensor, "step key width"]]:
        return runner.target_gradients([{**record.inputs, name: point} for point in points], goal)

    end = key_embeddings(record, runner)
    baseline, start, said = _start(record, runner, baseline, end, slope)
    attributions, change = integrate(slope, start, end, steps, batch_size)
    scores = torch.nn.functional.pad(attributions.sum(-1), (record.added_tokens, 0))  # a learned sink is no input
    missed = abs(scores.sum().item() - change)
    sentence = (
        f"With {steps} steps from {baseline} these attributions miss the change of {goal}, {change:.3g}, by"
        f" {missed:.3g}: take more steps, or another baseline."
    )
    return scores_of(
        record,
        "integrated_gradients",
        scores if signed else scores.abs(),
        warnings=(*said, sentence) if missed > INCOMPLETE * abs(change) else said,
    )


def _goal(record: AttentionRecord, model: Model, target: int | str | None, quantity: str | None) -> Target:
    """What is followed on the way."""
    if quantity not in (None, *get_args(Quantity)):
        raise BadInput(f"quantity is {', '.join(get_args(Quantity))}, not {quantity!r}.")
    if target is None and record.target is not None:
        return replace(record.target, quantity=cast(Quantity, quantity or record.target.quantity))
    return model.target(record.inputs, target, quantity or "logit")


def _start(
    record: AttentionRecord, model: Model, baseline: str | None, end: Float[Tensor, "key width"], slope: Slope
) -> tuple[str, Float[Tensor, "key width"], tuple[str, ...]]:
    """The baseline by name, its embeddings and what must be said of it; refused before anything long is computed."""

    def length(point: Float[Tensor, "key width"]) -> float:
        return float(torch.linalg.vector_norm(slope(point.unsqueeze(0))[1]))

    choices = ["zero", *model.blank_ids, "mean"]
    if baseline is not None:
        start = blank_embeddings(record, model, baseline)
        if not np.isfinite(length(start)):
            others = ", ".join(name for name in choices if name != baseline)
            raise BadInput(
                f"The gradient at {baseline} embeddings is not finite, as in models with RMSNorm: give another baseline"
                f" of {others}."
            )
        return baseline, start, ()
    most = STEEP * max(length(end), FLAT)
    for name in choices:
        start = blank_embeddings(record, model, name)
        if length(start) <= most:  # which no NaN is
            said = f"the way begins at {name} embeddings, because this model jumps at {choices[0]}"
            return name, start, () if name == choices[0] else (said,)
    raise BadInput("Integrated gradients has no baseline here: the gradient of this model is not finite at any.")
