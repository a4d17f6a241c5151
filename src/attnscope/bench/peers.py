"""The peers' own solvers on one pair of the layered graph: ortools, igraph, networkx."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Int

from ..errors import BadInput

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
