"""Exact flow against ortools, igraph and networkx, every sampled pair equal to 1e-9."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..attribution.flow_graph import FlowGraph
from ..attribution.flow_kernels import SCALE
from ..attribution.heads import with_residual
from ..capture import load
from ..errors import BadInput
from .figure import Figure, faster

EXACT = 1e-9
PAIRS = {"ortools": 12, "igraph": 12, "networkx": 2}
"""How many pairs each peer solves: its time for all is told from their median, building the graph not counted."""
OWN_ROUNDS = 4
"""How often ours runs between the pairs of a peer."""
TEXT = (
    "The museum opened in 1903 and holds a collection of maps, letters and instruments that sailors of the town "
    "brought home over two centuries. Visitors begin on the ground floor, where a model of the old harbour shows "
    "how the ships were built, and then climb to the gallery under the roof. From its windows one sees the river, "
    "the two bridges and the lighthouse, which was moved stone by stone when the channel was dredged. A small "
    "library is open on weekdays."
)


def random_graph(layers: int, tokens: int, causal: bool, temperature: float = 4.0, heads: int = 12) -> FlowGraph:
    """Random attention of several heads, averaged, with the residual, as in a model."""
    dice = torch.Generator().manual_seed(layers * tokens)
    scores = temperature * torch.randn(layers, heads, tokens, tokens, generator=dice, dtype=torch.float64)
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -torch.inf)
    return _graph(scores.softmax(-1), causal)


def _graph(weights: Float[Tensor, "layer head token token"], causal: bool) -> FlowGraph:
    return FlowGraph.of(with_residual(weights.double().mean(1), 0.5), causal)


def real_graph(name: str, tokens: int) -> FlowGraph | None:
    """Attention of a real model on a real paragraph, or None where the model is not laid out."""
    home = Path(os.environ.get("ATTNSCOPE_REAL_MODELS", Path.home() / ".cache" / "attnscope-real"))
    if not (home / name / "model.safetensors").is_file():
        return None
    record = load(home / name).record(TEXT * 2, truncate=True)
    weights = record.weights[..., :tokens, :tokens]
    return _graph(weights / weights.sum(-1, keepdim=True), record.causal)


def measure_flow() -> Iterator[Figure]:
    """One source, full tables, real attention, and how the cost grows."""
    dense = random_graph(12, 128, causal=False)
    yield from _one_source("one source, all tokens, 12 x 128 dense, one thread", dense, 40, 80)
    yield from _full_table("full table, 12 x 64 dense", random_graph(12, 64, causal=False), 60, 10_000)
    yield from _full_table("full table, 12 x 64 causal", random_graph(12, 64, causal=True), 20, None)
    for name in ("minilm", "smollm2"):
        graph = real_graph(name, 64)
        if graph is not None:
            yield from _one_source(
                f"one source, all tokens, real {name}, {len(graph.capacity)} x 64, one thread", graph
            )
            yield from _full_table(f"full table, real {name}, {len(graph.capacity)} x 64", graph, None, None)
    for layers, tokens in ((12, 16), (12, 32), (12, 128), (6, 64), (24, 64)):
        yield from _full_table(
            f"growth: {layers} x {tokens} dense", random_graph(layers, tokens, causal=False), None, None
        )


def _one_source(case: str, graph: FlowGraph, ortools: int | None = None, igraph: int | None = None) -> Iterator[Figure]:
    """The flows of one source, the last token if causal, to every token of the top layer, in one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        top, tokens = len(graph.capacity) - 1, graph.capacity.shape[1]
        source = tokens - 1 if graph.causal else 0
        flows = graph.rows(top, [source])[0]
        for peer, goal in (("ortools", ortools), ("igraph", igraph)):
            pairs = [(top, source, key) for key in range(0, tokens, max(tokens // PAIRS[peer], 1))]
            expected = {pair: flows[pair[2]] for pair in pairs}
            ours, theirs = _by_turns(graph, peer, expected, lambda: graph.rows(top, [source]))
            yield faster(case, peer, ours, theirs * tokens, goal)
    finally:
        torch.set_num_threads(threads)


def _full_table(case: str, graph: FlowGraph, ortools: int | None, networkx: int | None) -> Iterator[Figure]:
    """Every layer, source and token; a peer's time for all is told from pairs of the layers that need a solver."""
    layers, tokens, _ = graph.capacity.shape
    table = graph.table()
    dice = np.random.default_rng(0)
    count = (layers - 2) * (tokens * (tokens + 1) // 2 if graph.causal else tokens**2)
    for peer in ("ortools", "igraph", "networkx") if networkx is not None else ("ortools",):
        pairs = []
        for _ in range(PAIRS[peer]):
            query, key = (int(token) for token in dice.integers(0, tokens, 2))
            if graph.causal:
                query, key = max(query, key), min(query, key)
            pairs.append((int(dice.integers(2, layers)), query, key))
        ours, theirs = _by_turns(graph, peer, {pair: table[pair] for pair in pairs}, graph.table)
        goal = {"ortools": ortools, "networkx": networkx}.get(peer)
        yield faster(case, peer, ours, theirs * count, goal, f"{count} pairs in layers 2 and up")


def _by_turns(
    graph: FlowGraph, peer: str, expected: dict[tuple[int, int, int], np.int64], ours: Callable[[], object]
) -> tuple[float, float]:
    """The median seconds of ours and of the peer on one pair, taking turns; every pair must be equal."""
    own_seconds, seconds = [], []
    prepared = {layer: solvers(graph.capacity[: layer + 1])[peer] for layer in {layer for layer, _, _ in expected}}
    ours()
    for number, ((layer, query, key), value) in enumerate(expected.items()):
        if number % max(len(expected) // OWN_ROUNDS, 1) == 0:
            start = time.perf_counter()
            ours()
            own_seconds.append(time.perf_counter() - start)
        solve, source, sink = prepared[layer](query, key)
        start = time.perf_counter()
        flow = solve(source, sink)
        seconds.append(time.perf_counter() - start)
        difference = abs(flow - float(value)) / SCALE
        if difference > EXACT:
            raise RuntimeError(f"{peer} and attnscope differ by {difference:.1e} on layer {layer}, {query} to {key}.")
    return median(own_seconds), median(seconds)


# The peers' own solvers on one pair of the layered graph: ortools, igraph, networkx.


Solver = Callable[[int, int], float]
"""The flow from a source to a sink, in the units of the capacities; the graph is built beforehand."""


def _arcs(capacity: Int[np.ndarray, "layer token token"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tokens = capacity.shape[1]
    level, query, key = np.nonzero(capacity)
    return (level + 1) * tokens + query, level * tokens + key, capacity[level, query, key]


def solvers(capacity: Int[np.ndarray, "layer token token"]) -> dict[str, Callable[[int, int], tuple[Solver, int, int]]]:
    """For each peer, what prepares one pair (query, key): a solver and its nodes, so that only solving is timed."""
    try:
        import igraph
        import networkx as nx
        from networkx.algorithms.flow import preflow_push
        from ortools.graph.python import max_flow
    except ImportError as error:
        raise BadInput(
            f"Benchmarks need the peers, and {error.name} is missing: pip install 'attnscope[bench]'."
        ) from None
    layers, tokens, _ = capacity.shape
    starts, ends, widths = _arcs(capacity)
    drawn = igraph.Graph(n=(layers + 1) * tokens, edges=np.stack([starts, ends], 1), directed=True)
    wide = widths.astype(float).tolist()

    def by_ortools(query: int, key: int) -> tuple[Solver, int, int]:
        graph = max_flow.SimpleMaxFlow()
        graph.add_arcs_with_capacity(starts.astype(np.int32), ends.astype(np.int32), widths)

        def solve(source: int, sink: int) -> float:
            graph.solve(source, sink)
            return float(graph.optimal_flow())

        return solve, layers * tokens + query, key

    def by_igraph(query: int, key: int) -> tuple[Solver, int, int]:
        return lambda source, sink: float(drawn.maxflow_value(source, sink, wide)), layers * tokens + query, key

    def by_networkx(query: int, key: int) -> tuple[Solver, int, int]:
        graph = nx.DiGraph()
        graph.add_weighted_edges_from(
            zip(starts.tolist(), ends.tolist(), widths.tolist(), strict=True), weight="capacity"
        )
        return (
            lambda source, sink: float(nx.maximum_flow_value(graph, source, sink, flow_func=preflow_push)),
            layers * tokens + query,
            key,
        )

    return {"ortools": by_ortools, "igraph": by_igraph, "networkx": by_networkx}
