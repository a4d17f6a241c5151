"""What the flow view shows: the attention graph and its scores, computed once for the page and the printed figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, UInt8
from torch import Tensor

from ..attribution import flow as attention_flow
from ..attribution import rollout as attention_rollout
from ..attribution.flow import SATURATED
from ..attribution.flow_graph import FlowGraph
from ..attribution.flow_kernels import SCALE
from ..attribution.heads import Heads
from ..record import AttentionRecord
from .sides import token_texts
from .tables import tidy_table, token_column

Edges = Float[np.ndarray, "layer query key"]
"""What passes along each edge, or the weights of a graph."""

# What rollout and flow say of every token, from the sources and layers they were computed for.


@dataclass(frozen=True)
class FlowScores:
    """Scores by layer, source and token; layers by their places."""

    layers: tuple[int, ...]
    sources: tuple[int, ...]
    rollout: Float[np.ndarray, "layer source token"]
    flow: Float[np.ndarray, "layer source token"]
    ends: UInt8[np.ndarray, "layer source token"]
    """Where a flow is just a trivial cut: 1 for what the source can give, 2 for what the token can take, 3 for both."""
    saturation: tuple[tuple[int, float, float, float], ...]
    """For each layer the shares of flows at either trivial cut, at the source's, and at the token's."""

    def to_frame(self, record: AttentionRecord, maps: Float[np.ndarray, "layer token token"]) -> pd.DataFrame:
        """A row for each method, layer, query and key; raw attention is the row of the pooled map."""
        tokens = token_column(token_texts(record.tokens))
        raw = maps[list(self.layers)][:, list(self.sources)]
        return tidy_table(
            {
                "method": (0, ["raw", "rollout", "flow"]),
                "layer": (1, [record.layers[place] for place in self.layers]),
                "query": (2, self.sources),
                "key": (3, range(len(record.tokens))),
                "query_token": (2, tokens[list(self.sources)]),
                "key_token": (3, tokens),
            },
            value=np.stack([raw, self.rollout, self.flow]),
        )


SHORT = 48
"""Tokens up to which flow is computed from every source at every layer: about a second for twelve layers."""
LONG = 160
"""Tokens beyond which flow is computed only for sources that are named: one may take half a minute at 512."""
FEW = 4
"""Sources of a text that is not short from which flow is computed unless they are named as queries."""


@dataclass(frozen=True)
class FlowScene:
    """What the page and the printed figure both draw: the graph, its tokens, and the scores of both methods."""

    record: AttentionRecord
    side: Mapping[str, Any]
    maps: Float[Tensor, "layer token token"]
    """The pooled heads W of each layer, without the residual connection."""
    graph: FlowGraph
    options: Mapping[str, Any]
    """How the maps were made: heads and residual."""
    scores: FlowScores

    def scores_from(self, sources: Sequence[int], place: int) -> FlowScores:
        """The scores from these sources at one layer: those of the page, or for a long text computed now."""
        found = self.scores
        if place not in found.layers or not set(sources) <= set(found.sources):
            found = flow_scores(self.record, self.graph, list(sources), list(sources), place, **self.options)
        layer, rows = found.layers.index(place), [found.sources.index(source) for source in sources]
        rollout, flow, ends = (table[[layer]][:, rows] for table in (found.rollout, found.flow, found.ends))
        return FlowScores((place,), tuple(sources), rollout, flow, ends, ())


def flow_scores(
    record: AttentionRecord,
    graph: FlowGraph,
    asked: list[int] | None,
    sources: list[int],
    place: int,
    heads: Heads,
    residual: int | float,
) -> FlowScores:
    """Rollout and flow where they are computed: everywhere in a short text, else from some sources at one layer."""
    tokens = len(record.query_tokens)
    every = tokens <= SHORT
    layers = list(range(len(record.layers))) if every else [place]
    unasked = sources if tokens <= LONG and len(sources) <= FEW else []
    chosen = list(range(tokens)) if every else unasked if asked is None else asked
    if not chosen:
        nothing = np.zeros((0, 0, tokens))
        return FlowScores((), (), nothing, nothing, nothing.astype(np.uint8), ())
    some: dict[str, Any] = {} if every else {"layers": layers, "queries": chosen}
    flows = attention_flow(record, heads=heads, residual=float(residual), **some)
    rolled = attention_rollout(record, heads=heads, residual=float(residual), queries=None if every else chosen)
    found = flows.map[layers][:, chosen].numpy()
    ends = np.zeros(found.shape, np.uint8)
    possible = np.tri(tokens, dtype=bool)[chosen] if record.causal else np.ones((len(chosen), tokens), bool)
    for index, layer in enumerate(layers):
        for bit, cut in enumerate(graph.cuts(layer), start=1):
            met = np.abs(found[index] - cut[chosen] / SCALE) <= SATURATED
            ends[index] |= (bit * (met & possible)).astype(np.uint8)
    shares = flows.saturation
    saturation = tuple(
        (layer, float(shares.total[layer]), float(shares.source[layer]), float(shares.token[layer])) for layer in layers
    )
    return FlowScores(
        tuple(layers), tuple(chosen), rolled.map[layers][:, chosen].double().numpy(), found, ends, saturation
    )


def most_reached(
    scores: FlowScores, side: Mapping[str, Any], sources: Sequence[int], place: int, graph: Edges
) -> list[int]:
    """The token with letters that most flows to from these sources; special tokens, sinks and sources are set aside.

    Where flow was not computed, because the text is long, the one that rollout brings most to; none for many sources.
    """
    if place in scores.layers and set(sources) <= set(scores.sources):
        rows = [scores.sources.index(source) for source in sources]
        flows = scores.flow[scores.layers.index(place), rows].mean(0)
    elif len(sources) <= FEW:
        flows = passing_mass(graph, sources)[0].sum(0)
    else:
        return []
    quiet = {*side["special"], *side["sinks"]}
    texts = side["texts"]
    content = [token for token in range(len(flows)) if token not in quiet and any(map(str.isalnum, texts[token]))]
    others = [token for token in content if token not in sources] or content or list(range(len(flows)))
    return [max(others, key=lambda token: float(flows[token]))]


# What passes along each edge of the attention graph from chosen sources, for the printed flow view.


def passing_mass(maps: Edges, sources: Sequence[int]) -> Edges:
    """The share of the sources' mass along each edge by rollout: every layer sums to one."""
    mass = np.zeros(maps.shape[1])
    mass[list(sources)] = 1 / len(sources)
    edges = np.zeros_like(maps)
    for layer in reversed(range(len(maps))):
        edges[layer] = mass[:, None] * maps[layer]
        mass = edges[layer].sum(0)
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


def reachable_edges(edges: Edges, sources: Sequence[int], threshold: float) -> Edges:
    """The edges that can be reached from the sources over edges that are not below the threshold; others are zero."""
    kept = np.where((edges >= threshold) & (edges > 0), edges, 0.0)
    here = np.isin(np.arange(edges.shape[1]), list(sources))
    for layer in reversed(range(len(edges))):
        kept[layer][~here] = 0.0
        here = (kept[layer] > 0).any(0)
    return kept
