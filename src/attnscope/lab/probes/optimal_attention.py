"""The attention that would have been best: the α that makes the right word likeliest, found by convex optimisation.

In the variant softmax(W(c_t + d_t)) of Snell et al. 2021, Eq. 31-36, the logits are linear in α, so the loss

    f(α) = log Σ_o exp(α · γ_o + γ_s,o) - (α · γ_y + γ_s,y)        over the simplex of α

is convex. Symbols: γ_l = W h_l is `by_source`, γ_s = W d_t is `by_state`, y is `right`. Each step makes a quadratic
model of f, minimises it on the simplex by accelerated projected gradients, and searches along the line to that point.
The gap

    max_l' g · (α - e_l') = g · α - min_l g_l ≥ f(α) - f(α_opt)    with g = ∇f(α)

bounds how much is left to win, and tells when to stop.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...errors import BadInput

TOLERANCE = 1e-6
"""The gap, in nats, at which a row is done."""
MOST_STEPS = 60
INNER_STEPS = 120
RIDGE = 1e-6
"""Keeps the quadratic model strictly convex."""
HALVINGS = 20
SUFFICIENT = 1e-4
"""A step must win at least this share of what the slope promises."""


@dataclass(frozen=True, eq=False)
class OptimalAttention:
    """The best attention of every output word, its loss, and the bound on how much better any other could be."""

    weights: Float[Tensor, "batch step source"]
    loss: Float[Tensor, "batch step"]
    gap: Float[Tensor, "batch step"]


def optimal_attention(
    by_source: Float[Tensor, "batch source vocabulary"],
    by_state: Float[Tensor, "batch step vocabulary"],
    right: Int[Tensor, "batch step"],
    real: Bool[Tensor, "batch source"] | None = None,
    tolerance: int | float = TOLERANCE,
    most_steps: int = MOST_STEPS,
) -> OptimalAttention:
    """α_opt of every output word of a batch of sentences, begun from uniform attention; padding gets none.

    Give logits in double precision for gaps below about 1e-5.
    """
    if tolerance <= 0 or most_steps < 1:
        raise BadInput(f"The tolerance must be above 0 and the steps at least 1, not {tolerance} and {most_steps}.")
    mask = (torch.ones_like(by_source[..., 0]).bool() if real is None else real).unsqueeze(1)
    even = mask / mask.sum(-1, keepdim=True).to(by_source)
    weights = even.expand(-1, right.shape[1], -1).clone()
    problem = (by_source, by_state, right)
    for _ in range(most_steps):
        slope, curvature, loss = _local(problem, weights)
        gap = _gap(slope, weights, mask)
        if bool((gap <= tolerance).all()):
            break
        aim = _minimise(slope, curvature, weights, mask)
        weights = _move(problem, weights, aim, slope, loss)
    slope, _, loss = _local(problem, weights)
    return OptimalAttention(weights, loss, _gap(slope, weights, mask))


Problem = tuple[Tensor, Tensor, Tensor]
"""`by_source`, `by_state` and `right`."""


def _losses(problem: Problem, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The loss f of each word, and the probabilities of all words."""
    by_source, by_state, right = problem
    logits = weights @ by_source + by_state
    total = logits.logsumexp(-1, keepdim=True)
    loss = total.squeeze(-1) - logits.gather(-1, right.unsqueeze(-1)).squeeze(-1)
    return loss, (logits - total).exp()


def _local(problem: Problem, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The slope and the curvature of f, and f itself."""
    by_source, _, right = problem
    loss, chances = _losses(problem, weights)
    expected = chances @ by_source.transpose(1, 2)
    picked = by_source.gather(2, right.unsqueeze(1).expand(-1, by_source.shape[1], -1)).transpose(1, 2)
    # word by word, because every word weighs the vocabulary in its own way
    second = torch.stack(
        [(by_source * chances[:, step, None]) @ by_source.transpose(1, 2) for step in range(right.shape[1])], 1
    )
    curvature = second - expected.unsqueeze(-1) * expected.unsqueeze(-2)
    return expected - picked, curvature, loss


def _gap(slope: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
    lowest = slope.masked_fill(~mask, torch.inf).min(-1).values
    return (slope * weights).sum(-1) - lowest


def _minimise(slope: Tensor, curvature: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
    """Where the quadratic model is lowest on the simplex, by accelerated projected gradients that restart."""
    steepest = curvature.abs().sum(-1).amax(-1, keepdim=True) + RIDGE
    here, ahead, pace = weights, weights, torch.ones_like(slope[..., :1])
    for _ in range(INNER_STEPS):
        change = ahead - weights
        model_slope = slope + (curvature @ change.unsqueeze(-1)).squeeze(-1) + RIDGE * change
        there = projected(ahead - model_slope / steepest, mask)
        backwards = ((ahead - there) * (there - here)).sum(-1, keepdim=True) > 0
        following = torch.where(backwards, 1.0, (1 + (1 + 4 * pace * pace).sqrt()) / 2)
        ahead = there + torch.where(backwards, 0.0, (pace - 1) / following) * (there - here)
        here, pace = there, following
    return here


def projected(points: Float[Tensor, "*batch position"], mask: Bool[Tensor, "*#batch position"]) -> Tensor:
    """The nearest points of the simplex; what the mask leaves out is zero.

    >>> projected(torch.tensor([[0.9, 0.5, 7.0]]), torch.tensor([[True, True, False]]))
    tensor([[0.7000, 0.3000, 0.0000]])
    """
    ordered = points.masked_fill(~mask, -torch.inf).sort(-1, descending=True).values
    counts = torch.arange(1, points.shape[-1] + 1, device=points.device)
    excess = (ordered.masked_fill(ordered.isinf(), 0.0).cumsum(-1) - 1) / counts
    kept = ((ordered > excess) & ordered.isfinite()).sum(-1, keepdim=True)
    return (points - excess.gather(-1, kept - 1)).clamp(min=0.0).masked_fill(~mask, 0.0)


def _move(problem: Problem, weights: Tensor, aim: Tensor, slope: Tensor, loss: Tensor) -> Tensor:
    """As far towards the aim as the loss falls enough, halving the way; a row that finds no better point stays."""
    way = aim - weights
    promised = (slope * way).sum(-1)
    size = torch.ones_like(loss)
    moving = promised < 0
    for _ in range(HALVINGS):
        tried, _ = _losses(problem, weights + size.unsqueeze(-1) * way)
        enough = tried <= loss + SUFFICIENT * size * promised
        if bool((enough | ~moving).all()):
            break
        size = torch.where(enough, size, size / 2)
    return torch.where((enough & moving).unsqueeze(-1), weights + size.unsqueeze(-1) * way, weights)
