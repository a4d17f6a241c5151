"""Attention flow: how much could reach a query from each token if attention weights were the widths of pipes."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, TokenScores, VectorRecord
from ..record.schema import checked
from ..record.scores import Saturation, scores_of
from . import flow_kernels as kernels
from .effective import chosen_attention
from .flow_bounds import bounded_flow, is_small, refuse_more
from .flow_graph import FlowGraph
from .heads import Heads, checked_positions, normalize_scores, pooled_maps, with_residual

SATURATED = 1e-9
"""A flow this close to its trivial cut is just that cut."""


def saturation(graph: FlowGraph, flows: Float[Tensor, "layer query token"]) -> Saturation:
    """The share of computed pairs (not NaN, and not ahead of a causal query) that are just a trivial cut, by layer."""
    shares = []
    possible = (
        torch.ones(flows.shape[1:], dtype=torch.bool).tril() if graph.causal else torch.ones(flows.shape[1:]).bool()
    )
    for layer, found in enumerate(flows):
        source, token = (torch.from_numpy(cut / kernels.SCALE) for cut in graph.cuts(layer))
        counted = possible & found.isfinite()
        at_source, at_token = (found - source).abs() <= SATURATED, (found - token).abs() <= SATURATED
        shares.append([(side & counted).sum() / counted.sum() for side in (at_source | at_token, at_source, at_token)])
    total, source_share, token_share = torch.tensor(shares, dtype=torch.float64).T
    return Saturation(total, source_share, token_share)


@checked
def flow(
    record: AttentionRecord,
    heads: Heads = "mean",
    residual: float = 0.5,
    layers: Sequence[int] | None = None,
    queries: Sequence[int] | None = None,
    readout: str = "sources",
    normalize: str | None = None,
    attention: str = "weights",
) -> TokenScores:
    """The exact maximum flow from the read-out to each token, attention weights (with the residual) as capacities.

    Abnar & Zuidema 2020, section 3 and appendix A.1: `map[l, i, j]` is the flow from token i at layer l to input token
    j. `layers` and `queries` compute only those (the others are NaN). Where the read-out is spread, scores average the
    flows of its single sources; `readout="layer"` makes it one more layer of the graph instead. `saturated[l]` is the
    share of pairs whose flow is just the trivial cut: where it is high, flow no longer says what the query has to do
    with the token. A record of vectors is small enough for that up to 16.8 million edges (layers x tokens x tokens);
    above, `scores` and `scores.upper` are bounds, and say so.
    """
    _check_readout(readout)
    if isinstance(record, VectorRecord):
        options = {"layers": layers, "queries": queries, "readout": readout, "normalize": normalize}
        return _of_vectors(record, heads, residual, options, attention)
    some = layers is not None or queries is not None
    wanted_layers, wanted_queries = (
        checked_positions(record, layers, "layer"),
        checked_positions(record, queries, "query"),
    )
    sources = torch.where(record.readout > 0)[0].tolist()
    top = len(record.layers) - 1

    def of(weights: Float[Tensor, "layer head token token"]) -> TokenScores:
        pooled = with_residual(pooled_maps(weights.double(), heads), residual)
        graph = FlowGraph.of(pooled, record.causal)

        def rows(graph: FlowGraph, layer: int, queries: Sequence[int]) -> Float[Tensor, "query token"]:
            return torch.from_numpy(graph.rows(layer, queries) / kernels.SCALE)

        def read(graph: FlowGraph, layer: int) -> Float[Tensor, " token"]:
            return record.readout[sources].double() @ rows(graph, layer, sources)

        def every_flow() -> Float[Tensor, "layer token token"]:
            return torch.from_numpy(graph.table() / kernels.SCALE)

        def wanted_flows() -> Float[Tensor, "layer token token"]:
            flows = torch.full_like(pooled, torch.nan)
            for layer in wanted_layers:
                flows[layer, wanted_queries] = rows(graph, layer, wanted_queries)
            return flows

        def per_head() -> Float[Tensor, "layer head token"]:
            own = with_residual(weights.double(), residual)
            graphs = [
                [FlowGraph.of(torch.cat([pooled[:layer], head[None]]), record.causal) for head in own[layer]]
                for layer in range(top + 1)
            ]
            return torch.stack(
                [torch.stack([read(graph, layer) for graph in of_layer]) for layer, of_layer in enumerate(graphs)]
            )

        if readout == "layer":
            scores = torch.from_numpy(graph.from_readout(record.readout) / kernels.SCALE)
            warnings: tuple[str, ...] = ()
        else:
            found = torch.full_like(pooled, torch.nan)[top:]
            found[0, sources] = rows(graph, top, sources)
            scores = record.readout[sources].double() @ found[0, sources]
            warnings = _warnings(graph, top, found[0])
        return scores_of(
            record,
            "flow",
            scores,
            compute_map=wanted_flows if some else every_flow,
            compute_row=lambda layer, query: rows(graph, layer, [query])[0],
            compute_saturation=lambda flows: saturation(graph, flows),
            compute_per_head=per_head,
            warnings=warnings,
        )

    return normalize_scores(of(chosen_attention(record, attention)), record, normalize, of)


def _check_readout(readout: str) -> None:
    if readout not in ("sources", "layer"):
        raise BadInput(f'readout is "sources" or "layer", not {readout!r}.')


def _of_vectors(
    record: VectorRecord, heads: Heads, residual: float, options: dict[str, Any], attention: str
) -> TokenScores:
    """The same on a record of vectors: of its weights where they are few, else bounds."""
    with_residual(torch.zeros(1, 1), residual)  # refuse a share that is none before anything is computed
    refuse_more(record, attention=attention)
    if is_small(record):
        return flow(record.full(), heads, residual, **options)
    refuse_more(record, **options)
    return bounded_flow(record, heads, residual)


def _warnings(graph: FlowGraph, layer: int, flows: Float[Tensor, "query token"]) -> tuple[str, ...]:
    """What must be said of flows that are mostly trivial cuts."""
    whole = torch.full((layer + 1, *flows.shape), torch.nan, dtype=torch.float64)
    whole[layer] = flows
    share = float(saturation(graph, whole).total[layer])
    if share <= 0.5 or layer == 0:
        return ()
    count = int(flows.isfinite().all(-1).sum())
    whence = "the read-out" if count == 1 else f"the {count} tokens that the read-out averages"
    limit = (
        "only as large as one of their two ends allows (all that the source gives away, or all that the token takes in)"
    )
    return (f"{share:.0%} of the flows from {whence} are {limit}: these tell nothing of the way between",)
