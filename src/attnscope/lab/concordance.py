"""Concordance: whether two series agree in value, and not only in shape (Lin 1989)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import BadInput


def concordance(predicted: Sequence[int | float], rated: Sequence[int | float]) -> float:
    """The concordance correlation coefficient of two series, from -1 to 1.

    Wu, Nguyen & Ong 2020, Eq. 15: 2 Corr(X, Y) σ_X σ_Y / (σ_X² + σ_Y² + (μ_X - μ_Y)²), with the variance of a
    population. Two series that never change and are the same have none: the value is then not a number.

    >>> round(concordance([1, 2, 3], [2, 3, 4]), 3)
    0.571
    """
    x, y = np.asarray(predicted, dtype=float), np.asarray(rated, dtype=float)
    if x.shape != y.shape or x.ndim != 1 or len(x) == 0:
        raise BadInput(f"Two series of the same length have a concordance, not {x.shape} and {y.shape} values.")
    together = float(((x - x.mean()) * (y - y.mean())).mean())
    apart = float(x.var() + y.var() + (x.mean() - y.mean()) ** 2)
    return 2 * together / apart if apart > 0 else float("nan")


@dataclass(frozen=True)
class Concordance:
    """The concordance of each story, their mean and spread, and that of all windows of all stories as one series."""

    each: tuple[float, ...]
    mean: float
    deviation: float
    overall: float


def concordance_of_stories(
    predicted: Sequence[Sequence[int | float]], rated: Sequence[Sequence[int | float]]
) -> Concordance:
    """How well predicted series agree with rated ones, story by story; the paper's figure is the mean over stories."""
    if len(predicted) != len(rated) or not predicted:
        raise BadInput(
            f"{len(predicted)} predicted and {len(rated)} rated stories: give as many of both, at least one."
        )
    each = tuple(concordance(said, meant) for said, meant in zip(predicted, rated, strict=True))
    known = np.array([value for value in each if not np.isnan(value)])
    mean, deviation = (float(known.mean()), float(known.std())) if len(known) else (float("nan"), float("nan"))
    overall = concordance(
        [value for said in predicted for value in said], [value for meant in rated for value in meant]
    )
    return Concordance(each, mean, deviation, overall)
