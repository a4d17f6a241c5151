"""What a gradient was taken of: fixed at capture, stored with the record, so that methods stay pure."""

from dataclasses import dataclass
from typing import Literal

Quantity = Literal["logit", "probability", "difference"]
SUM = "sum"
"""The outcome that stands for all outcomes added up."""


@dataclass(frozen=True)
class Target:
    """One number the model computes, whose gradient was captured.

    `outcome` is a label or token, or `"sum"` for all outcomes together (wu2020); `index` is its place in the output,
    None for the sum. `quantity` is its logit, its probability, or the `difference` between its probability and that of
    the most likely other outcome (abnar2020: p0 - p1). With `against`, another outcome at `against_index`, it is how
    much the quantity of this outcome is above that of the other: "why this and not that?".
    """

    outcome: str
    index: int | None
    quantity: Quantity
    against: str | None = None
    against_index: int | None = None

    def __str__(self) -> str:
        if self.index is None:
            return f"the sum of every {self.quantity}"
        less = "" if self.against is None else f" less that of {self.against!r}"
        return f"the {self.quantity} of {self.outcome!r}{less}"
