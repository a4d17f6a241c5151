"""Two groups of words compared: how often one of the first stands above one of the second, and by how much chance."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Compared:
    """The share of pairs in which the first is above (ties count half), and p of the rank-sum test that it is not."""

    above: float
    p: float

    def __str__(self) -> str:
        return f"{self.above:.2f} (p {self.p:.2g})"


def compared(first: np.ndarray, second: np.ndarray) -> Compared:
    """By the rank-sum test of Mann and Whitney, one-sided: whether the first group stands above the second.

    >>> compared(np.array([3.0, 4.0]), np.array([1.0, 2.0])).above
    1.0
    """
    from scipy.stats import mannwhitneyu

    found = mannwhitneyu(first, second, alternative="greater")
    return Compared(float(found.statistic) / (len(first) * len(second)), float(found.pvalue))
