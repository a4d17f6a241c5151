"""How evenly something is spread: its entropy as a share of the largest there could be."""

import numpy as np
from jaxtyping import Float64


def evenness(shares: Float64[np.ndarray, "*rows token"]) -> Float64[np.ndarray, "*rows"]:
    """-Σ p log p / log n of each row of shares: 1 where all n tokens have the same, 0 where one has all.

    >>> evenness(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    even: Float64[np.ndarray, "*rows"] = np.abs((shares * logs).sum(-1)) / np.log(shares.shape[-1])
    return even
