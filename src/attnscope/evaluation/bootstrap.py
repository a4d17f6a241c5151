"""Bootstrap: how far a mean over texts would move if other texts of the kind had been drawn (Efron 1979)."""

import numpy as np
from jaxtyping import Float64

RESAMPLES = 1000
LEVEL = 0.95
AT_ONCE = 64
"""Resamples drawn together: enough to be fast, few enough that memory does not grow with their number."""


def means(values: Float64[np.ndarray, "text figure"]) -> Float64[np.ndarray, " figure"]:
    """The mean of each figure over the texts that have it; NaN where none has."""
    mean: Float64[np.ndarray, " figure"] = _weighted(np.ones((1, len(values))), values)[0]
    return mean


def resampled_means(
    values: Float64[np.ndarray, "text figure"], seed: int, resamples: int = RESAMPLES
) -> Float64[np.ndarray, "resample figure"]:
    """The means over texts drawn with replacement, as many as there are; all figures see the same draw.

    So the difference of two figures in one row is a paired difference.
    """
    texts = len(values)
    dice = np.random.default_rng(seed)
    drawn = []
    for start in range(0, resamples, AT_ONCE):
        picks = dice.integers(texts, size=(min(AT_ONCE, resamples - start), texts))
        weights = np.stack([np.bincount(pick, minlength=texts) for pick in picks]).astype(np.float64)
        drawn.append(_weighted(weights, values))
    return np.concatenate(drawn)


def interval(
    samples: Float64[np.ndarray, "resample figure"], level: float = LEVEL
) -> tuple[Float64[np.ndarray, " figure"], Float64[np.ndarray, " figure"]]:
    """The percentile interval of each figure: the middle `level` of its resampled means."""
    tail = 100 * (1 - level) / 2
    missing = np.isnan(samples)
    bounds = np.full((2, samples.shape[1]), np.nan)
    # numpy takes columns with gaps one by one, which is slow: only those that have some
    for columns, percentile in (
        (~missing.any(0), np.percentile),
        (missing.any(0) & ~missing.all(0), np.nanpercentile),
    ):
        if columns.any():
            bounds[:, columns] = percentile(samples[:, columns], [tail, 100 - tail], axis=0)
    return bounds[0], bounds[1]


def _weighted(
    weights: Float64[np.ndarray, "draw text"], values: Float64[np.ndarray, "text figure"]
) -> Float64[np.ndarray, "draw figure"]:
    """The weighted mean of each figure over the texts that have it."""
    there = ~np.isnan(values)
    sums, totals = weights @ np.where(there, values, 0.0), weights @ there.astype(np.float64)
    weighted: Float64[np.ndarray, "draw figure"] = np.full_like(sums, np.nan)
    np.divide(sums, totals, out=weighted, where=totals > 0)
    return weighted
