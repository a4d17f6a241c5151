"""What can be proven of the flows of a text whose maps are too large: below which they cannot lie, and above which.

Above. All that flows passes out of the query, into the token, and between any two layers, so no more flows than the
arcs there carry together (cuts). In a causal text a path from query i to token j visits only tokens from j to i, which
makes cuts of near tokens narrow. The sums are those of columns: what a row of ones becomes in a layer. Nor does an arc
carry more than its query was brought, which is summed from layer to layer.

Below. Rollout is a flow: it gives away what a node has by the weights of its arcs, so no arc carries more than its
capacity, and what it brings to a token a maximum flow brings too. And the maximum flow along some arcs alone is a flow:
those between the tokens through which most of the rollout passes, the token itself and its neighbours are kept.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ..errors import BadInput
from ..numerals import counted, in_words
from ..record import TokenScores, VectorRecord
from ..record.scores import scores_of
from ..record.vectors import BLOCK, blocks, rows
from . import flow_kernels as kernels
from .flow_graph import FlowGraph
from .heads import Heads, pooled_heads, refuse_cross
from .without_matrix import one_hot, raw_row

MOST_EDGES = 2**24
"""Up to so many arcs, layers x tokens x tokens, flow on a record of vectors is computed exactly."""
KEPT = 96
"""Tokens whose arcs with each other are kept for the lower bound."""
NEIGHBOURS = 32
"""Neighbours in the text whose arcs are kept for the lower bounds of each other."""
MOST_SOURCES = 8
"""Each position of the read-out is bounded by itself."""
ROUNDING = 1e-5
"""Weights of float32 vectors are right to about this share of their size, and so are flows: bounds are wider by it."""
SETTLED = 5e-5
"""Bounds as near as this are one number, but for that."""


def is_small(record: VectorRecord) -> bool:
    """Whether the flows of this record are computed exactly."""
    return edge_count(record) <= MOST_EDGES


def edge_count(record: VectorRecord) -> int:
    """How many arcs the graph has."""
    layers, _, queries, keys = record.shape
    return layers * queries * keys


def refuse_more(record: VectorRecord, **options: object) -> None:
    """Refuse what flow on a record of vectors cannot be asked."""
    asked = [f"{name}=" for name, option in options.items() if option not in (None, "sources", "weights")]
    if asked:
        size = f"{edge_count(record):,} edges, {in_words(record.weight_bytes)} of weights"
        raise BadInput(
            f"Flow on a record of vectors ({size}) takes no {' and no '.join(asked)} here: leave it out, use rollout,"
            " or take the flow of record.full() where that fits."
        )


def bounded_flow(record: VectorRecord, heads: Heads, residual: float) -> TokenScores:
    """The flow from the read-out, bounded: `scores` are below it, `upper` above, both proven."""
    refuse_cross(record)
    sources = record.readout.nonzero().flatten().tolist()
    if heads == "max" or len(sources) > MOST_SOURCES:
        why = 'heads="max"' if heads == "max" else f"a read-out of {len(sources)} positions"
        raise BadInput(
            f"Flow through {edge_count(record):,} edges ({in_words(record.weight_bytes)} of weights) is bounded, not"
            f" computed, and there are no bounds for {why}: use rollout, which is exact here, or flow of record.full()"
            " where that fits."
        )
    shares = record.readout[sources].double()
    bounds = [bounds_from(record, source, heads, residual, KEPT) for source in sources]
    lower, upper = (sum(share * bound[side] for share, bound in zip(shares, bounds, strict=True)) for side in (0, 1))
    assert isinstance(lower, Tensor)  # noqa: S101 -- there is a source
    assert isinstance(upper, Tensor)  # noqa: S101
    apart = upper - lower
    warning = (
        f"these are bounds, not flows: the graph has {edge_count(record):,} edges, more than {MOST_EDGES:,}, so scores"
        f" are what surely flows and scores.upper is what at most can ({(apart <= SETTLED).double().mean():.0%} of"
        f" {counted(len(apart), 'token')} are settled, the others lie up to {float(apart.max()):.2g} apart); rollout is"
        " exact here"
    )
    return scores_of(record, "flow", lower, upper=upper, warnings=(warning,))


def bounds_from(
    record: VectorRecord, source: int, heads: Heads, residual: float, kept: int
) -> tuple[Float64[Tensor, " token"], Float64[Tensor, " token"]]:
    """Bounds of the flow from a query of the last layer to every token, from below and from above."""
    given, passing = _rollout(record, source, heads, residual)
    if record.shape[0] == 1:
        return passing * (1 - ROUNDING), passing * (1 + ROUNDING)
    upper = torch.minimum(_narrowest_cut(record, source, heads, residual), _brought(record, source, heads, residual))
    tokens = given.topk(min(kept, len(given))).indices.tolist()
    along = _flow_between(record, source, sorted({source, *tokens}), heads, residual)
    # where bounds meet, rounding may leave them the wrong way round
    lower = torch.maximum(passing, along)
    return lower * (1 - ROUNDING), torch.maximum(upper, lower) * (1 + ROUNDING)


def _rollout(
    record: VectorRecord, source: int, heads: Heads, residual: float
) -> tuple[Float64[Tensor, " token"], Float64[Tensor, " token"]]:
    """The most that any layer of the rollout of a query has at each token, and what it brings to each in the end."""
    row = one_hot(record, source)
    most = row.double()
    for layer in reversed(range(record.shape[0])):
        row = (1 - residual) * raw_row(record, heads, layer, row) + residual * row
        most = torch.maximum(most, row.double())
    return most, row.double()


def _ones(record: VectorRecord, source: int) -> Float[Tensor, " token"]:
    """One at every token that a path from this query may visit, as far as order tells."""
    seen = torch.ones(record.shape[2])
    if record.causal:
        seen[source + 1 :] = 0
    return seen


def _narrowest_cut(record: VectorRecord, source: int, heads: Heads, residual: float) -> Float64[Tensor, " token"]:
    """The least that the query gives, that the token takes, or that the arcs of any layer between carry together."""
    seen = _ones(record, source)
    found = _up_to(record, (1 - residual) * raw_row(record, heads, -1, one_hot(record, source)).double())
    found = found + residual * (one_hot(record, source).double().flip(0).cumsum(0).flip(0) if record.causal else 1.0)
    for layer in range(record.shape[0]):
        taken = (1 - residual) * raw_row(record, heads, layer, seen).double() + residual * seen
        if layer == 0:
            found = torch.minimum(found, taken)
        found = torch.minimum(found, _up_to(record, taken))
    return found


def _up_to(record: VectorRecord, amounts: Float64[Tensor, " token"]) -> Float64[Tensor, " token"]:
    """What the tokens have together that a path to each token may visit: from it on in a causal text, else all."""
    return amounts.flip(0).cumsum(0).flip(0) if record.causal else amounts.sum().expand(len(amounts))


def _brought(record: VectorRecord, source: int, heads: Heads, residual: float) -> Float64[Tensor, " token"]:
    """What can be brought to each token: by each arc no more than it carries, nor than what its query was brought."""
    brought = one_hot(record, source).double()
    for layer in reversed(range(record.shape[0])):
        found = torch.zeros_like(brought)
        for queries, keys, weights in blocks(record.layer(layer)):
            given = brought[queries]
            if not bool(given.any()):
                continue
            arcs = (1 - residual) * pooled_heads(weights.unsqueeze(0), heads)[0].double()
            own = torch.arange(queries.start, queries.stop) - keys.start  # whatever a query sees, it stands among it
            arcs[torch.arange(len(arcs)), own] += residual
            found[keys] += torch.minimum(arcs, given.unsqueeze(-1)).sum(0)
        brought = found.clamp_max(1.0)  # which is all that the source has
    return brought


def _flow_between(
    record: VectorRecord, source: int, chosen: Sequence[int], heads: Heads, residual: float
) -> Float64[Tensor, " token"]:
    """The maximum flow from the source to every token by the arcs between these tokens, it, and its neighbours."""
    layers, _, tokens, _ = record.shape
    kept = torch.stack([_maps_of(record, layer, chosen, heads, residual) for layer in range(layers)])
    found = np.zeros(tokens)
    for start in range(0, source + 1 if record.causal else tokens, NEIGHBOURS):
        ends = range(start, min(start + NEIGHBOURS, tokens))
        added = [token for token in ends if token not in chosen]
        order = np.argsort([*chosen, *added])  # as in the text, for what a causal path may visit
        places = np.array([*chosen, *added])[order]
        parts = [kept[:, :, places]]
        if added:
            maps = [_maps_of(record, layer, added, heads, residual)[:, places] for layer in range(layers)]
            parts.append(torch.stack(maps))
        graph = FlowGraph.of(torch.cat(parts, 1)[:, order].double(), record.causal)
        where = np.searchsorted(places, [source, *ends]).tolist()
        if layers > 1:
            found[list(ends)] = graph.pairs(layers - 1, where[:1], where[1:])[0] / kernels.SCALE
    return torch.from_numpy(found)


def _maps_of(
    record: VectorRecord, layer: int, chosen: Sequence[int], heads: Heads, residual: float
) -> Float[Tensor, "some_query token"]:
    """The rows of some tokens in the map of a layer, with the residual."""
    _, count, _, keys = record.shape
    together = max(1, BLOCK // (count * keys))
    parts = [
        pooled_heads(rows(record.layer(layer), chosen[first : first + together]).unsqueeze(0), heads)[0]
        for first in range(0, len(chosen), together)
    ]
    maps = (1 - residual) * torch.cat(parts)
    maps[torch.arange(len(chosen)), torch.tensor(chosen)] += residual
    return maps
