"""Bounds of flows, from the arcs beside source and token and from the flows of the layer below, compiled."""

from typing import no_type_check

import numpy as np

from .compiling import compiled

SLACK = 2**12
"""How far apart bounds may be and still count as met: 4e-12, the rounding of the sums that make them."""


@compiled()
@no_type_check
def trivial_cuts(capacity, level, causal):
    """What each query of a level can give and each token can take in layer 1, over the tokens that paths may visit."""
    n = capacity.shape[1]
    source_side = np.zeros((n, n), np.int64)
    token_side = np.zeros((n, n), np.int64)
    if causal:
        for i in range(n):
            for j in range(i, -1, -1):
                source_side[i, j] = capacity[level, i, j] + (source_side[i, j + 1] if j < i else 0)
                # row by row: what a token can take from queries up to i is what it could up to i - 1, and more
                token_side[i, j] = capacity[0, i, j] + (token_side[i - 1, j] if j < i else 0)
    else:
        gives, takes = capacity[level].sum(1), capacity[0].sum(0)
        for i in range(n):
            for j in range(n):
                source_side[i, j], token_side[i, j] = gives[i], takes[j]
    return source_side, token_side


@compiled()
@no_type_check
def bounds_from_below(capacity, level, below, causal):
    """Bounds of the flows of one level from the flows `below[v, j]` of the level under it.

    Upper: no more passes than each arc and what its end can send on. Lower: the flows of the nodes below, scaled by
    shares that add up to one, fit into the graph together, so shares are given to the largest first, as far as the arcs
    carry.
    """
    n = capacity.shape[1]
    row = capacity[level]
    upper = np.zeros((n, n), np.int64)
    lower = np.zeros((n, n), np.int64)
    for j in range(n):
        order = np.argsort(-below[:, j])
        for i in range(n):
            low, high = (j, i) if causal else (0, n - 1)
            through = 0
            for v in range(low, high + 1):
                through += min(row[i, v], below[v, j])
            upper[i, j] = through
            share, together = 1.0, 0.0
            for c in range(n):
                v = order[c]
                if below[v, j] == 0 or share <= 0.0:
                    break
                taken = min(share, row[i, v] / below[v, j])
                together += taken * below[v, j]
                share -= taken
            lower[i, j] = np.int64(together)
    return upper, lower
