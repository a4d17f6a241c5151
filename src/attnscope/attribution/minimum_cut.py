"""The edges that hold a flow back."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from ..errors import BadInput
from ..record import AttentionRecord
from ..record.schema import checked
from . import flow_kernels as kernels
from .effective import chosen_attention
from .flow_graph import FlowGraph
from .heads import Heads, checked_layer, pooled_maps, with_residual


@dataclass(frozen=True)
class CutEdge:
    """An edge of the cut: from a query at a layer to a key in the layer below (layer 0 attends to the input)."""

    layer: int
    query: int
    key: int
    capacity: float


@dataclass(frozen=True)
class MinimumCut:
    """The minimum cut nearest the source: its edges' capacities add up to the flow."""

    flow: float
    edges: tuple[CutEdge, ...]
    along: Float[np.ndarray, "layer query key"] = field(compare=False, repr=False)
    """A maximum flow along each edge, up to the query's layer; it may take other ways as well."""


@checked
def minimum_cut(
    record: AttentionRecord,
    query: int,
    key: int,
    layer: int = -1,
    heads: Heads = "mean",
    residual: float = 0.5,
    attention: str = "weights",
) -> MinimumCut:
    """Which edges hold back the flow from a query to an input token: the minimum cut nearest the query."""
    layer, tokens = checked_layer(record, layer), len(record.query_tokens)
    for name, position in (("query", query), ("key", key)):
        if not -tokens <= position < tokens:
            raise BadInput(f"There is no {name} {position}: this record has {tokens}, counted from 0.")
    query, key = query % tokens, key % tokens
    maps = with_residual(pooled_maps(chosen_attention(record, attention).double(), heads), residual)
    graph = FlowGraph.of(maps, record.causal)
    if graph.causal and key > query:
        return MinimumCut(0.0, (), np.zeros((layer + 1, tokens, tokens)))
    low, high = (key, query) if graph.causal else (0, tokens - 1)
    bound = min(int(cut[query, key]) for cut in graph.cuts(layer))
    found, along, distance = kernels.reachable(graph.capacity, layer + 1, query, key, low, high, bound)
    edges = []
    for level in range(layer + 1):
        within = [token for token in range(low, high + 1) if distance[level + 1, token] >= 0]
        beyond = [key] if level == 0 else [token for token in range(low, high + 1) if distance[level, token] < 0]
        edges += [
            CutEdge(level, i, j, float(graph.capacity[level, i, j]) / kernels.SCALE)
            for i in within
            for j in beyond
            if graph.capacity[level, i, j] > 0
        ]
    return MinimumCut(float(np.float64(found) / kernels.SCALE), tuple(edges), along / kernels.SCALE)
