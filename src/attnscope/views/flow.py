"""The flow view: the attention graph through all layers from a chosen token, by raw attention, rollout and flow."""

from collections.abc import Sequence

import numpy as np

from ..attribution.flow_graph import FlowGraph
from ..attribution.heads import Heads, pooled_maps, square_weights, with_residual
from ..errors import BadInput
from ..record import AttentionRecord, VectorRecord
from ..record.schema import checked
from .choices import pick_one, position
from .flow_figure import flow_figure
from .flow_scene import FlowScene, flow_scores, most_reached
from .record_view import with_few_weights
from .sides import readout_places, sides_of, title_of
from .view import View
from .weights import deflate

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
      that layer times A, on a scale for each layer; a token's score is what arrives at it.
    - flow: an edge is as opaque as what a maximum flow from source to target sends along it, A being the capacities;
      orange are the edges of the minimum cut nearest the source, whose capacities add up to the flow. The flow's value
      and that cut are the only ones; the ways it takes are one choice of many. A token's score is the maximum flow
      from the source to it, each token by itself.

    Several sources are averaged and several targets summed, as the methods do for words.

    Args:
        record: What to show; self-attention, because layers of cross-attention cannot be joined.
        query: The source by its position, or several; by default the read-out itself: one token, or all where it is
            their mean.
        key: The target of the flow, or several; by default the token with letters that gets most, special tokens,
            sinks and the source set aside. `[]` is none.
        layer: The layer whose output the source is, by its number or from the end; the last by default.
        queries: The sources to compute flow from, for a text of more than 48 tokens; from shorter ones all are.
        heads: How heads become one map: "mean", "max", one head, or the mean over some.
        residual: The share r of the residual connection.
    """
    record = with_few_weights(record)
    if isinstance(record, VectorRecord):
        raise BadInput(
            f"The flow view draws all weights of a text, and {len(record.key_tokens):,} tokens are too many for it:"
            " views.scores(attnscope.rollout(record), record=record) shows how much of each token gets through."
        )
    weights = square_weights(record).double()
    if record.pooled and heads not in ("mean", 0):
        raise BadInput("This record holds only the mean over heads: leave heads at 'mean', or take it with all heads.")
    maps = pooled_maps(weights, heads)
    number = record.layers[-1] if layer is None else pick_one(layer, record.layers, "layer")
    sources = _positions(record, readout_places(record) if query is None else query, "query")
    if not sources:
        raise BadInput("The flow view needs a source: give query= a position.")
    asked = None if queries is None else _positions(record, queries, "query")
    graph = FlowGraph.of(with_residual(maps, float(residual)), record.causal)
    place = record.layers.index(number)
    scores = flow_scores(record, graph, asked, sources, place, heads, residual)
    short = maps.numel() * 8 <= EXACT_BYTES
    sides = sides_of(record)
    ways = with_residual(maps[: place + 1], float(residual)).numpy()
    target = most_reached(scores, sides["keys"], sources, place, ways) if key is None else key
    targets = _positions(record, target, "key")
    payload = {
        **sides,
        "layers": list(record.layers),
        "residual": float(residual),
        "readout": [round(share, 6) for share in record.readout.tolist()],
        "heads": _pooling_in_words(heads, record),
        "code": "float64" if short else "float32",
        "computed": {"layers": list(scores.layers), "sources": list(scores.sources)},
        "saturation": [
            {"layer": record.layers[place], "total": total, "source": source, "token": token}
            for place, total, source, token in scores.saturation
        ],
    }
    blobs = {
        "maps": deflate(maps.numpy() if short else maps.float().numpy()),
        "rollout": deflate(scores.rollout.astype(np.float32)),
        "flow": deflate(scores.flow.astype(np.float32)),
        "ends": deflate(scores.ends),
    }
    state = {
        "layer": number,
        "queries": sources,
        "keys": targets,
        "words": False,
        "special": True,
        "threshold": 0.0,
        "root": False,
        "folded": True,
    }
    options = {"heads": heads, "residual": float(residual)}
    scene = FlowScene(record, sides["keys"], maps, graph, options, scores)

    return View(
        "flow",
        payload,
        state,
        blobs,
        table=lambda: scores.to_frame(record, maps.numpy()),
        draw=lambda selected, width: flow_figure(scene, selected, width),
        choices={
            "layer": record.layers,
            "queries": range(len(record.query_tokens)),
            "keys": range(len(record.key_tokens)),
        },
        title=title_of("flow", sides["keys"], record),
    )


def _positions(record: AttentionRecord, positions: int | Sequence[int], what: str) -> list[int]:
    """Positions counted from zero, each once."""
    some = positions if isinstance(positions, Sequence) and not isinstance(positions, str) else [positions]
    return sorted({position(number, len(record.query_tokens), what) for number in some})


def _pooling_in_words(heads: Heads, record: AttentionRecord) -> str:
    """How heads were pooled, in words."""
    if heads == "mean" or record.pooled:
        return "the mean over heads"
    if heads == "max":
        return "the largest over heads"
    return f"head {heads}" if isinstance(heads, int) else f"the mean over heads {', '.join(map(str, heads))}"
