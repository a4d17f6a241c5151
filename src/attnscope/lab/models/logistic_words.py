"""Logistic regression on the words of a text: the twin of the proxy (Snell et al. 2021, A.10), by scikit-learn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from jaxtyping import Float64

from ...errors import BadInput
from ..data.packed import PackedTexts

STRENGTHS = tuple(10.0**power for power in range(-5, 5))
"""C, the inverse of the L2 penalty: ten orders of magnitude."""


@dataclass(frozen=True, eq=False)
class LogisticWords:
    """The coefficient β^log of every word for the second class, and how they were found."""

    weights: Float64[np.ndarray, " word"]
    bias: float
    strength: float
    accuracy: float
    """On the texts it was chosen by."""


def word_shares(texts: PackedTexts, words: int) -> scipy.sparse.csr_matrix:
    """The x of Eq. 55: how often each word is in each text, divided by the text's length.

    >>> word_shares(PackedTexts.of([[1, 2, 1, 0]], [1]), 3).toarray().tolist()
    [[0.25, 0.5, 0.25]]
    """
    values = np.repeat(1 / texts.lengths, texts.lengths)
    # a copy, because adding up duplicates would sort the words of the texts themselves
    table = scipy.sparse.csr_matrix((values, texts.tokens, texts.starts), shape=(len(texts), words), copy=True)
    table.sum_duplicates()
    return table


def logistic_words(
    train: PackedTexts, dev: PackedTexts, words: int, strengths: Sequence[float] = STRENGTHS
) -> LogisticWords:
    """The regression with the first C that is best on `dev` by accuracy."""
    shares, held_out = word_shares(train, words), word_shares(dev, words)
    found = [_fitted(shares, train.labels, strength) for strength in strengths]
    right = [float(((held_out @ weights + bias > 0) == dev.labels).mean()) for weights, bias in found]
    best = int(np.argmax(right))
    return LogisticWords(*found[best], strengths[best], right[best])


def _fitted(
    shares: scipy.sparse.csr_matrix, labels: np.ndarray, strength: float
) -> tuple[Float64[np.ndarray, " word"], float]:
    try:
        from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    except ImportError:
        raise BadInput("Logistic regression needs scikit-learn: pip install 'attnscope[lab]'.") from None
    fitted = LogisticRegression(C=strength, max_iter=2_000).fit(shares, labels)
    return fitted.coef_[0], float(fitted.intercept_[0])
