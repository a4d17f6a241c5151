"""What an agreement is worth: the contextualised agreement ξ of Snell et al. 2021, Eq. 11.

A second training of the same model is compared with the finished first one at every checkpoint τ: A(α, α̂(τ)) and its
performance p̂(τ). ξ is the performance at the first checkpoint whose attention agrees *more* than the two quantities
asked about:

    ξ(u, v) = p̂( inf{τ : A(α, α̂(τ)) > A(u, v)} )
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...errors import BadInput


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
