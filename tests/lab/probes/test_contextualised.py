import math

import pytest

from attnscope.errors import BadInput
from attnscope.lab.probes.saliency import contextualised

CURVE = [
    (0, 0.07, 0.01),
    (50, 0.20, 0.15),
    (100, 0.20, 0.22),
    (500, 0.45, 0.43),
    (1000, 0.40, 0.52),
    (1500, 0.61, 0.60),
]


@pytest.mark.parametrize(
    ("agreement", "step", "performance", "star"),
    [
        (0.0, 0, 0.01, ""),
        (0.07, 50, 0.15, ""),  # equal is not above
        (0.19, 50, 0.15, ""),
        (0.20, 500, 0.43, ""),  # equal twice
        (0.42, 500, 0.43, ""),  # the first that is above, though the curve falls below again
        (0.45, 1500, 0.60, ""),
        (0.61, 1500, 0.60, "*"),  # never above: the last one, with a star
        (0.90, 1500, 0.60, "*"),
    ],
)
def test_the_first_checkpoint_strictly_above(agreement: float, step: int, performance: float, star: str) -> None:
    found = contextualised(agreement, CURVE)
    assert (found.step, found.performance, found.reached) == (step, performance, not star)
    assert str(found) == f"{performance:.4f}{star}"


def test_bad_curves_are_told() -> None:
    with pytest.raises(BadInput, match="at least one"):
        contextualised(0.1, [])
    with pytest.raises(BadInput, match="order"):
        contextualised(0.1, [(10, 0.1, 0.1), (10, 0.2, 0.2)])
    with pytest.raises(BadInput, match="not a number"):
        contextualised(math.nan, CURVE)
