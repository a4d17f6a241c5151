"""The penalty on V·W that keeps the attention scores of two classes together: c |V·W|, or c (V·W)²."""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import BadInput

SLOPES: Mapping[str, Callable[[Tensor], Tensor]] = {"absolute": torch.sign, "square": lambda product: 2 * product}
VALUES: Mapping[str, Callable[[Tensor], Tensor]] = {"absolute": torch.abs, "square": torch.square}


def penalty_slope(product: Float[Tensor, "*logit"], strength: int | float, kind: str) -> Float[Tensor, "*logit"]:
    """How fast the penalty grows with V·W: c sign(V·W), or 2 c V·W for the square.

    >>> penalty_slope(torch.tensor(-3.0), 0.5, "square").item()
    -3.0
    """
    return strength * SLOPES[_checked(kind)](product)


def penalty_value(product: Float[Tensor, "*logit"], strength: int | float, kind: str) -> Float[Tensor, ""]:
    """The penalty itself, added up over the logits where there are several."""
    return strength * VALUES[_checked(kind)](product).sum()


def _checked(kind: str) -> str:
    if kind not in SLOPES:
        raise BadInput(f"A penalty on V·W is {' or '.join(SLOPES)}, not {kind!r}.")
    return kind
