"""Attention flow: how much could reach a query from each token if attention weights were the widths of pipes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..errors import BadInput
from ..numerals import in_words
from ..progress import tell
from ..record import AttentionRecord, TokenScores, VectorRecord
from ..record.schema import checked
from ..record.scores import Saturation, scores_of
from . import flow_kernels as kernels
from .effective import chosen_attention
from .heads import Heads, checked_positions, normalize_scores, pooled_maps, with_residual

PART_WORK = 2**26
"""Pairs x arcs that are solved between two words on how far it is: about a second."""
SATURATED = 1e-9
"""A flow this close to its trivial cut is just that cut."""


@dataclass(frozen=True)
class FlowGraph:
    """The layered graph: integer capacities, and whether queries see only what stands before them."""

    capacity: Int[np.ndarray, "layer token token"]
    causal: bool

    @classmethod
    def of(cls, maps: Float[Tensor, "layer token token"], causal: bool) -> "FlowGraph":
        """The graph of maps; what is negative (effective attention) is clipped, and its row renormalised."""
        positive = maps.double().clamp_min(0)
        positive = positive / positive.sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
        exact = torch.where((maps < 0).any(-1, keepdim=True), positive, maps.double())
        return cls(np.rint(exact.numpy() * kernels.SCALE).astype(np.int64), causal)

    def cuts(self, layer: int) -> tuple[Int[np.ndarray, "query token"], Int[np.ndarray, "query token"]]:
        """The trivial cuts: what each query of a layer can give, and what each token can take in the first layer."""
        return kernels.trivial_cuts(self.capacity, layer, self.causal)  # type: ignore[no-any-return]

    def rows(self, layer: int, queries: Sequence[int]) -> Int[np.ndarray, "query token"]:
        """The maximum flow from these queries at a layer to every token, each pair solved by itself."""
        if layer == 0:
            first: Int[np.ndarray, "query token"] = self.capacity[0][list(queries)]
            return first
        return self.pairs(layer, queries, range(self.capacity.shape[1]))

    def pairs(self, layer: int, queries: Sequence[int], tokens: Sequence[int]) -> Int[np.ndarray, "query token"]:
        """The maximum flow from each of these queries at a layer above the first to each of these tokens."""
        bounds = np.minimum(*self.cuts(layer))
        chosen = np.zeros_like(bounds, dtype=bool)
        places = np.ix_(list(queries), list(tokens))
        chosen[places] = True
        flows: Int[np.ndarray, "query token"] = self._solve(
            layer, chosen & (bounds > 0), np.zeros_like(bounds), bounds
        )[places]
        return flows

    def table(self) -> Int[np.ndarray, "layer query token"]:
        """The maximum flow of every pair at every layer; where bounds from the layer below meet, nothing is solved."""
        layers = [self.capacity[0]]
        for layer in range(1, len(self.capacity)):
            upper, lower = kernels.bounds_from_below(self.capacity, layer, layers[-1], self.causal)
            upper = np.minimum(upper, np.minimum(*self.cuts(layer)))
            # two layers make the upper bound exact: every path has one arc of each, and shares only those
            unsolved = lower < upper - kernels.SLACK if layer > 1 else np.zeros_like(upper, dtype=bool)
            layers.append(self._solve(layer, unsolved, upper, upper))
        return np.stack(layers)

    def _solve(
        self,
        layer: int,
        pairs: np.ndarray,
        otherwise: Int[np.ndarray, "query token"],
        bounds: Int[np.ndarray, "query token"],
    ) -> Int[np.ndarray, "query token"]:
        """The flows of the chosen pairs; `otherwise` holds those of the others."""
        sources, sinks = np.nonzero(pairs)
        flows = otherwise.copy()
        last = np.full_like(sinks, self.capacity.shape[1] - 1)
        lows, highs = (sinks, sources) if self.causal else (np.zeros_like(sinks), last)
        limits = bounds[pairs]
        size = max(PART_WORK // self.capacity[: layer + 1].size, 1)
        solved = []
        for start in range(0, len(sources), size):
            tell(start, len(sources))
            part = slice(start, start + size)
            given = (sources[part], sinks[part], lows[part], highs[part], limits[part])
            solved.append(kernels.solve_pairs(self.capacity, layer + 1, *given))
        flows[pairs] = np.concatenate(solved) if solved else 0
        return flows

    def from_readout(self, readout: Float[Tensor, " token"]) -> Int[np.ndarray, " token"]:
        """The flow to every token from a source above the top, with an arc as wide as the read-out to each query."""
        tokens = self.capacity.shape[1]
        above = np.zeros((1, tokens, tokens), np.int64)
        # the last token stands for the source: it lies among those that any path may visit
        above[0, -1] = np.rint(readout.double().numpy() * kernels.SCALE)
        graph = np.concatenate([self.capacity, above])
        sinks = np.arange(tokens)
        lows = sinks if self.causal else np.zeros_like(sinks)
        last = np.full_like(sinks, tokens - 1)
        bounds = np.minimum(graph[0].sum(0), graph[-1, -1].sum())
        return kernels.solve_pairs(graph, len(graph), last, sinks, lows, last, bounds)  # type: ignore[no-any-return]


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


def _refuse_vectors(record: AttentionRecord) -> None:
    if isinstance(record, VectorRecord):
        raise BadInput(
            f"Attention flow joins whole maps, and this record does without them ({in_words(record.weight_bytes)}): use"
            " rollout, which is exact here, or flow of record.full() where that fits."
        )


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
    with the token.
    """
    if readout not in ("sources", "layer"):
        raise BadInput(f'readout is "sources" or "layer", not {readout!r}.')
    _refuse_vectors(record)
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
