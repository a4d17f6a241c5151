"""What passes along each edge of the attention graph from chosen sources, for the printed flow view."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

Edges = Float[np.ndarray, "layer query key"]
GRAIN = 2**30
"""Capacities of a drawn flow are multiples of 1 / GRAIN: finer than any line, and small enough for scipy."""


def passing_mass(maps: Edges, sources: Sequence[int]) -> Edges:
    """The share of the sources' mass along each edge by rollout: every layer sums to one."""
    mass = np.zeros(maps.shape[1])
    mass[list(sources)] = 1 / len(sources)
    edges = np.zeros_like(maps)
    for layer in reversed(range(len(maps))):
        edges[layer] = mass[:, None] * maps[layer]
        mass = edges[layer].sum(0)
    return edges


def flow_along(maps: Edges, source: int, target: int) -> Edges:
    """A maximum flow along each edge from a source above the top layer to an input token, one choice of many."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    layers, tokens, _ = maps.shape
    layer, query, key = np.nonzero(np.rint(maps * GRAIN) > 0)
    capacity = np.rint(maps * GRAIN).astype(np.int32)[layer, query, key]
    above, below = (layer + 1) * tokens + query, layer * tokens + key
    nodes = (layers + 1) * tokens
    graph = csr_array((capacity, (above, below)), shape=(nodes, nodes))
    found = maximum_flow(graph, layers * tokens + source, target).flow.tocoo()
    forward = found.data > 0
    edges = np.zeros_like(maps)
    starts, ends = found.row[forward], found.col[forward]
    edges[ends // tokens, starts % tokens, ends % tokens] = found.data[forward] / GRAIN
    return edges


def passing_between(edges: Edges, units: Sequence[Sequence[int]]) -> Float[np.ndarray, "layer unit unit"]:
    """What passes between units of several tokens: the sum over their edges."""
    members = _members(units, edges.shape[1])
    return np.asarray(members @ edges @ members.T)


def attention_between(
    edges: Edges, units: Sequence[Sequence[int]], sources: Sequence[int]
) -> Float[np.ndarray, "layer unit unit"]:
    """Attention between units: the mean over the tokens that ask, the sum over those asked; on top only sources ask."""
    members = _members(units, edges.shape[1])
    asking = np.repeat(members[None], len(edges), axis=0)
    asking[-1] *= np.isin(np.arange(edges.shape[1]), list(sources))
    asking /= np.maximum(asking.sum(-1, keepdims=True), 1.0)
    return np.asarray(asking @ edges @ members.T)


def _members(units: Sequence[Sequence[int]], tokens: int) -> Float[np.ndarray, "unit token"]:
    members = np.zeros((len(units), tokens))
    for unit, places in enumerate(units):
        members[unit, list(places)] = 1.0
    return members


def reached(edges: Edges, sources: Sequence[int], threshold: float) -> Edges:
    """The edges that can be reached from the sources over edges that are not below the threshold; others are zero."""
    kept = np.where((edges >= threshold) & (edges > 0), edges, 0.0)
    here = np.isin(np.arange(edges.shape[1]), list(sources))
    for layer in reversed(range(len(edges))):
        kept[layer][~here] = 0.0
        here = (kept[layer] > 0).any(0)
    return kept
