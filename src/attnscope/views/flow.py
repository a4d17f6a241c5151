"""The flow view: the attention graph through all layers from a chosen token, by raw attention, rollout and flow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, UInt8

from ..attribution import flow as attention_flow
from ..attribution import rollout as attention_rollout
from ..attribution.flow import SATURATED, FlowGraph
from ..attribution.flow_kernels import SCALE
from ..attribution.heads import Heads, pooled_maps, square_weights, with_residual
from ..errors import BadInput
from ..record import AttentionRecord
from ..record.schema import checked
from .choices import known, position
from .flow_figure import flow_figure
from .sides import shown, sides_of, title_of
from .tables import token_column
from .view import View
from .weights import deflated

if TYPE_CHECKING:
    import pandas as pd


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

    def to_frame(self, record: AttentionRecord, maps: Float[np.ndarray, "layer token token"]) -> "pd.DataFrame":
        """A row for each method, layer, query and key; raw attention is the row of the pooled map."""
        import pandas as pd

        rows = maps[list(self.layers)][:, list(self.sources)]
        tables = {"raw": rows, "rollout": self.rollout, "flow": self.flow}
        layer, source, key = np.indices(rows.shape).reshape(3, -1)
        tokens = shown(record.tokens)
        query = np.array(self.sources, dtype=int)[source]
        columns = {
            "layer": np.array(record.layers)[np.array(self.layers, dtype=int)[layer]],
            "query": query,
            "key": key,
            "query_token": token_column(tokens, query),
            "key_token": token_column(tokens, key),
        }
        return pd.concat(
            [pd.DataFrame({"method": name, **columns, "value": table.reshape(-1)}) for name, table in tables.items()],
            ignore_index=True,
        )


SHORT = 48
"""Tokens up to which flow is computed from every source at every layer: about a second for twelve layers."""
LONG = 160
"""Tokens beyond which flow is computed only for sources that are named: one may take half a minute at 512."""
EXACT_BYTES = 4_000_000
"""Up to here maps travel as 64-bit floats, and the browser's flow is Python's to the last digit; beyond as 32-bit."""


@checked
def flow(
    record: AttentionRecord,
    query: int | Sequence[int] | None = None,
    key: int | Sequence[int] | None = None,
    layer: int | None = None,
    *,
    queries: Sequence[int] | None = None,
    heads: Heads = "mean",
    residual: int | float = 0.5,
) -> View:
    """How attention leads from a token at one layer down to the input: three panels with the same layout.

    Abnar & Zuidema 2020, Fig. 1. The graph has the pooled heads of each layer as its edges, A = (1 - r) W + r I:

    - raw: an edge is as opaque as A, for all that is reached from the source; a token's score is the row of W.
    - rollout: an edge is as opaque as the share of the source's mass that passes along it, the rollout's row down to
      that layer times A, so that every layer sums to one; a token's score is what arrives at it.
    - flow: an edge is as opaque as what a maximum flow from source to target sends along it, A being the capacities;
      bold are the edges of the minimum cut nearest the source, whose capacities add up to the flow. The flow's value
      and that cut are the only ones; the ways it takes are one choice of many. A token's score is the maximum flow
      from the source to it, each token by itself.

    Several sources are averaged and several targets summed, as the methods do for words.

    Args:
        record: What to show; self-attention, because layers of cross-attention cannot be joined.
        query: The source by its position, or several; by default the read-out itself where it is one token or the
            mean of a short text, else where it is strongest.
        key: The target of the flow, or several; none by default.
        layer: The layer whose output the source is, by its number or from the end; the last by default.
        queries: The sources to compute flow from, for a text of more than 48 tokens; from shorter ones all are.
        heads: How heads become one map: "mean", "max", one head, or the mean over some.
        residual: The share r of the residual connection.
    """
    weights = square_weights(record).double()
    if record.pooled and heads not in ("mean", 0):
        raise BadInput("This record holds only the mean over heads: leave heads at 'mean', or take it with all heads.")
    maps = pooled_maps(weights, heads)
    number = record.layers[-1] if layer is None else known(layer, record.layers, "layer")
    sources = _positions(record, _read(record) if query is None else query, "query")
    targets = _positions(record, [] if key is None else key, "key")
    if not sources:
        raise BadInput("The flow view needs a source: give query= a position.")
    asked = None if queries is None else _positions(record, queries, "query")
    graph = FlowGraph.of(with_residual(maps, float(residual)), record.causal)
    scores = _scores(record, graph, asked, sources, record.layers.index(number), heads, residual)
    short = maps.numel() * 8 <= EXACT_BYTES
    sides = sides_of(record)
    payload = {
        **sides,
        "layers": list(record.layers),
        "residual": float(residual),
        "readout": [round(share, 6) for share in record.readout.tolist()],
        "heads": _said(heads, record),
        "code": "float64" if short else "float32",
        "computed": {"layers": list(scores.layers), "sources": list(scores.sources)},
        "saturation": [
            {"layer": record.layers[place], "total": total, "source": source, "token": token}
            for place, total, source, token in scores.saturation
        ],
    }
    blobs = {
        "maps": deflated(maps.numpy() if short else maps.float().numpy()),
        "rollout": deflated(scores.rollout.astype(np.float32)),
        "flow": deflated(scores.flow.astype(np.float32)),
        "ends": deflated(scores.ends),
    }
    state = {
        "layer": number,
        "queries": sources,
        "keys": targets,
        "words": False,
        "special": True,
        "threshold": 0.0,
        "root": False,
    }

    options = {"heads": heads, "residual": float(residual)}

    def table() -> "pd.DataFrame":
        return scores.to_frame(record, maps.numpy())

    return View(
        "flow",
        payload,
        state,
        blobs,
        table=table,
        draw=lambda selected, width: flow_figure(record, sides["keys"], maps, options, selected, width),
        choices={
            "layer": record.layers,
            "queries": range(len(record.query_tokens)),
            "keys": range(len(record.key_tokens)),
        },
        title=title_of("flow", sides["keys"], record),
    )


def _read(record: AttentionRecord) -> list[int]:
    """Where the answer is read: the strongest positions, all of them for a mean; of a long text the first of those."""
    strongest = torch.isclose(record.readout, record.readout.max()).nonzero().flatten().tolist()
    return strongest if len(record.query_tokens) <= SHORT else strongest[:1]


def _positions(record: AttentionRecord, positions: int | Sequence[int], what: str) -> list[int]:
    """Positions counted from zero, each once."""
    some = positions if isinstance(positions, Sequence) and not isinstance(positions, str) else [positions]
    return sorted({position(number, len(record.query_tokens), what) for number in some})


def _scores(
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
    chosen = list(range(tokens)) if every else (sources if tokens <= LONG else []) if asked is None else asked
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


def _said(heads: Heads, record: AttentionRecord) -> str:
    """How heads were pooled, in words."""
    if heads == "mean" or record.pooled:
        return "the mean over heads"
    if heads == "max":
        return "the largest over heads"
    return f"head {heads}" if isinstance(heads, int) else f"the mean over heads {', '.join(map(str, heads))}"
