"""How far two scores agree on the order of the tokens: ranks, Spearman, Kendall, and the overlap of the top.

Scores are rounded to 1e-9 first, so that what is equal in exact arithmetic stays a tie, and ties share the mean of
their ranks. Dense ranks in the formula for scores without ties, as the code of Abnar & Zuidema (2020) has them, give
independent scores that are half tied a correlation of about +.22.
"""

import math

import numpy as np
from jaxtyping import Float64, Num
from torch import Tensor

from ..errors import BadInput

DECIMALS = 9
"""Scores that differ by less than about 1e-9 are ties."""

Scores = Num[Tensor, " _"] | Num[np.ndarray, " _"]
"""One number for each token."""


def ranks(scores: Scores) -> Float64[np.ndarray, " token"]:
    """The rank of each score, 1 for the smallest; ties get the mean of the ranks they take together.

    >>> ranks(np.array([0.2, 0.7, 0.2]))
    array([1.5, 3. , 1.5])
    """
    _, place, count = np.unique(rounded(scores), return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    shared: Float64[np.ndarray, " distinct"] = last - (count - 1) / 2
    return shared[place]


def spearman(first: Scores, second: Scores) -> float:
    """Spearman's rank correlation: Pearson's correlation of the average ranks (Spearman 1904), from -1 to 1.

    NaN where either ranks nothing, that is where all its scores are equal, and below two tokens.
    """
    _check_lengths(first, second)
    if len(first) < 2:
        return math.nan
    one, other = (place - place.mean() for place in (ranks(first), ranks(second)))
    spread = math.sqrt((one @ one) * (other @ other))
    return float(one @ other) / spread if spread else math.nan


def rank_agreement(first: Scores, second: Scores) -> float:
    """Spearman's rank correlation; where only one of the two has signs, that of the sizes, as the other knows none.

    >>> rank_agreement(np.array([-0.9, 0.1, 0.5]), np.array([3.0, 1.0, 2.0]))
    1.0
    """
    if bool((first < 0).any()) != bool((second < 0).any()):
        return spearman(first * first, second * second)
    return spearman(first, second)


def kendall(first: Scores, second: Scores) -> float:
    """Kendall's tau-b: pairs in like order minus pairs in unlike order, corrected for ties (Kendall 1945).

    NaN where either ranks nothing, that is where all its scores are equal, and below two tokens.
    """
    _check_lengths(first, second)
    one, other = (np.sign(np.subtract.outer(values, values)) for values in (rounded(first), rounded(second)))
    untied = math.sqrt(np.abs(one).sum() * np.abs(other).sum())
    return float((one * other).sum()) / untied if untied else math.nan


def top_overlap(first: Scores, second: Scores, k: int) -> float:
    """The share of the k highest tokens of one that are among the k highest of the other.

    Where a tie crosses the border, each of the tied tokens is in the top with the same probability, and the result is
    the overlap to be expected: scores that are all equal get what chance gives, k / tokens. NaN where there are no more
    than k tokens, since all of them are then at the top.

    >>> top_overlap(np.array([3.0, 2.0, 1.0, 0.0]), np.array([3.0, 0.0, 1.0, 2.0]), k=2)
    0.5
    """
    _check_lengths(first, second)
    if k < 1:
        raise BadInput(f"The top holds at least one token, not {k}.")
    if len(first) <= k:
        return math.nan
    return float(_share_in_top(rounded(first), k) @ _share_in_top(rounded(second), k)) / k


def rounded(scores: Scores) -> Float64[np.ndarray, " token"]:
    """The scores in float64, rounded to 1e-9: what counts as equal for every figure of this file."""
    values = scores.detach().cpu().numpy() if isinstance(scores, Tensor) else scores
    if not np.isfinite(values).all():
        raise BadInput("These scores cannot be ranked: some of them are not finite numbers.")
    # minus zero is zero
    return np.round(values.astype(np.float64), DECIMALS) + 0.0


def _share_in_top(values: Float64[np.ndarray, " token"], k: int) -> Float64[np.ndarray, " token"]:
    """How likely each token is among the k highest when ties are broken at random."""
    border = np.partition(values, -k)[-k]
    above, tied = values > border, values == border
    shares: Float64[np.ndarray, " token"] = above + tied * ((k - above.sum()) / tied.sum())
    return shares


def _check_lengths(first: Scores, second: Scores) -> None:
    if len(first) != len(second):
        raise BadInput(
            f"Agreement is over the same tokens, but one has {len(first)} scores and the other {len(second)}."
        )
