"""How scores and references agree on the order of a sentence's tokens: by average ranks, and as the authors ranked.

The authors' code puts dense ranks (ties share a rank, and the next rank follows at once) into the formula for scores
without ties. Scores that are often tied then seem to agree: with half the tokens tied, independent ones get about +.22.
"""

import numpy as np
from jaxtyping import Float, Float64, Int64

from ...attribution.agreement import ranks, rounded

RANKS = ("authors", "average")
"""The authors' formula on dense ranks, and Spearman's correlation proper: Pearson's of average ranks."""


def dense_ranks(scores: Float[np.ndarray, " token"]) -> Int64[np.ndarray, " token"]:
    """Ranks from 1 for the smallest without gaps: ties share one, and the next score has the next.

    >>> dense_ranks(np.array([0.2, 0.7, 0.2, 0.9]))
    array([1, 2, 1, 3])
    """
    places: Int64[np.ndarray, " token"] = np.unique(rounded(scores), return_inverse=True)[1] + 1
    return places


def by_authors(
    scores: Float[np.ndarray, "row token"], references: Float[np.ndarray, "reference token"]
) -> Float64[np.ndarray, "reference row"]:
    """1 - 6 Σ d² / (n (n² - 1)) with d the difference of dense ranks, as the authors' code has it; NaN below two."""
    count = scores.shape[1]
    if count < 2:
        return np.full((len(references), len(scores)), np.nan)
    of_scores, of_references = (np.array([dense_ranks(row) for row in table]) for table in (scores, references))
    apart = of_references[:, None, :] - of_scores[None, :, :]
    found: Float64[np.ndarray, "reference row"] = 1 - 6 * (apart**2).sum(-1) / (count * (count**2 - 1))
    return found


def by_average_ranks(
    scores: Float[np.ndarray, "row token"], references: Float[np.ndarray, "reference token"]
) -> Float64[np.ndarray, "reference row"]:
    """Spearman's correlation of each row with each reference; NaN where one of them is all ties."""
    of_scores, of_references = (np.array([ranks(row) for row in table]) for table in (scores, references))
    of_scores, of_references = (table - table.mean(1, keepdims=True) for table in (of_scores, of_references))
    together = of_references @ of_scores.T
    spread = np.sqrt(np.outer((of_references**2).sum(1), (of_scores**2).sum(1)))
    found: Float64[np.ndarray, "reference row"] = np.full_like(together, np.nan)
    np.divide(together, spread, out=found, where=spread > 0)
    return found


def correlations(
    scores: Float[np.ndarray, "row token"], references: Float[np.ndarray, "reference token"]
) -> Float64[np.ndarray, "ranks reference row"]:
    """Every row with every reference, in both ways of RANKS."""
    return np.stack([by_authors(scores, references), by_average_ranks(scores, references)])
