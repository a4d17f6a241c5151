"""Saliency: how much the input word at each position helps a classifier with the right class (Snell et al. 2021, 5.1).

Δ_l = -∂loss/∂s_l, where s_l = 1 multiplies the vector of the word at position l, and the loss is that of its text
alone. It is signed: positive helps. (The authors' released code has it with the other sign; their published figures
have this one.)
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ...errors import BadInput
from ..models.recurrent_classifier import Reading, RecurrentClassifier

Ids = Int[Tensor, "text token"]
Real = Bool[Tensor, "text token"]
Labels = Int[Tensor, " text"]


def saliency(model: RecurrentClassifier, ids: Ids, real: Real, labels: Labels) -> Float[Tensor, "text token"]:
    """Δ of every position, zero at padding."""
    return read_with_saliency(model, ids, real, labels)[1]


def read_with_saliency(
    model: RecurrentClassifier, ids: Ids, real: Real, labels: Labels
) -> tuple[Reading, Float[Tensor, "text token"]]:
    """What the model makes of the texts, and Δ: both from one pass."""
    with torch.enable_grad(), weights_held_fixed(model):
        vectors = model.embeddings(ids).detach().requires_grad_()
        reading = model.read(vectors, real)
        # a sum and not a mean, so that each text has its own derivative whatever the batch
        loss = F.binary_cross_entropy_with_logits(reading.logits.squeeze(-1), labels.to(vectors), reduction="sum")
        (slope,) = torch.autograd.grad(loss, vectors)
    found = -(slope * vectors).sum(-1).masked_fill(~real, 0.0).detach()
    return Reading(*(tensor.detach() for tensor in reading)), found


@contextmanager
def weights_held_fixed(model: nn.Module) -> Iterator[None]:
    """Within this the weights want no derivatives, which are half of the work."""
    wanting = [weights for weights in model.parameters() if weights.requires_grad]
    for weights in wanting:
        weights.requires_grad_(False)
    try:
        yield
    finally:
        for weights in wanting:
            weights.requires_grad_(True)


# What an agreement is worth: the contextualised agreement ξ of Snell et al. 2021, Eq. 11.
# A second training of the same model is compared with the finished first one at every checkpoint τ: A(α, α̂(τ)) and
# its performance p̂(τ). ξ is the performance at the first checkpoint whose attention agrees *more* than the two
# quantities in question:
# ξ(u, v) = p̂( inf{τ : A(α, α̂(τ)) > A(u, v)} )


@dataclass(frozen=True)
class Contextualised:
    """ξ: a performance, the step at which it was seen, and whether the curve ever rose above the agreement."""

    performance: float
    step: int
    reached: bool
    """If not, step and performance are those of the last checkpoint, and the paper prints a star."""

    def __str__(self) -> str:
        return f"{self.performance:.4f}{'' if self.reached else '*'}"


def contextualised(agreement: int | float, curve: Sequence[tuple[int, int | float, int | float]]) -> Contextualised:
    """ξ of an agreement, from a curve of (step, mean agreement of α with α̂, performance) in the order of steps.

    >>> curve = [(0, 0.05, 0.50), (10, 0.30, 0.70), (50, 0.60, 0.90)]
    >>> print(contextualised(0.30, curve), contextualised(0.95, curve))
    0.9000 0.9000*
    """
    if not curve:
        raise BadInput("A contextualised agreement needs a curve of at least one checkpoint.")
    if math.isnan(agreement):
        raise BadInput("An agreement that is not a number has no place on the curve.")
    if any(later <= earlier for (earlier, *_), (later, *_) in pairwise(curve)):
        raise BadInput("The checkpoints of the curve must be in the order of their steps, each once.")
    for step, reached, performance in curve:
        if reached > agreement:
            return Contextualised(float(performance), step, reached=True)
    step, _, performance = curve[-1]
    return Contextualised(float(performance), step, reached=False)
