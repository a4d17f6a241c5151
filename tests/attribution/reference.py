"""Slow, obvious versions of every attribution method, written from the equations and from nothing else.

The toolkit is tested against this file, so it shares no code with it: numpy in float64, Python loops, and the maximum
flows of other libraries. Everything is a pure function of arrays.

The papers:

- abnar2020: Abnar & Zuidema 2020, Quantifying Attention Flow in Transformers (rollout, flow).
- wu2020: Wu, Nguyen & Ong 2020, Structured Self-Attention Weights Encode Semantics (layer-wise attention tracing).
- brunner2020: Brunner et al. 2020, On Identifiability in Transformers (effective attention).
- kobayashi2020: Kobayashi et al. 2020, Attention is Not Only a Weight (norms of the transformed values).
- chefer2021: Chefer, Gur & Wolf 2021, Generic Attention-model Explainability (attention times its gradient).
- deyoung2020: DeYoung et al. 2020, ERASER (comprehensiveness, sufficiency).

The names of the shapes: `weights` is [layer, head, query, key]; `maps` is [layer, query, key], the heads pooled and the
residual mixed in; `readout` is [token], how much the answer reads each position of the last layer. Arguments called
`layer` count from zero and may be negative. Nodes of a flow graph are (level, position): level 0 is the input tokens,
level l + 1 is what layer l puts out.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

Heads = str | int | Sequence[int]
Node = tuple[int, int]
Edge = tuple[Node, Node]
Capacities = dict[Edge, float]


def _array(values) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


# ---- pooling heads, mixing in the residual


def rows_to_one(matrix) -> np.ndarray:
    """Divide each row (last axis) by its sum; a row that sums to zero stays zero."""
    matrix = _array(matrix)
    result = np.zeros_like(matrix)
    for index in np.ndindex(matrix.shape[:-1]):
        total = matrix[index].sum()
        if total != 0:
            result[index] = matrix[index] / total
    return result


def pooled(weights, heads: Heads = "mean", renormalize: bool = True) -> np.ndarray:
    """One matrix per layer: [layer, query, key].

    - "mean": the mean over all heads (abnar2020, section 3: "we average the attention at each layer over all heads").
    - "max": the largest weight over the heads. Its rows sum to more than one, so with `renormalize` each row is then
      divided by its sum. Neither the paper nor the issue says so: it is our choice.
    - a number: that head alone. A list: the mean over those heads, a repeated head counting twice.
    """
    weights = _array(weights)
    layers, head_count, queries, keys = weights.shape
    largest = isinstance(heads, str) and heads == "max"
    if isinstance(heads, (int, np.integer)):
        chosen = [int(heads)]
    elif isinstance(heads, str):
        chosen = list(range(head_count))
    else:
        chosen = [int(head) for head in heads]
    result = np.zeros((layers, queries, keys))
    for layer in range(layers):
        for query in range(queries):
            for key in range(keys):
                values = [float(weights[layer, head, query, key]) for head in chosen]
                result[layer, query, key] = max(values) if largest else sum(values) / len(values)
    return rows_to_one(result) if largest and renormalize else result


def raw_scores(weights, readout, heads: Heads = "mean", layer: int = -1, renormalize: bool = False) -> np.ndarray:
    """The read-out times the pooled attention of one layer, without residual: [token].

    abnar2020, section 2 ("raw attention"): there the read-out is one at the CLS token. With `heads="max"` the maxima
    are taken as they are unless `renormalize`.
    """
    attention = pooled(weights, heads, renormalize)[layer]
    readout = _array(readout)
    scores = np.zeros(attention.shape[1])
    for query in range(attention.shape[0]):
        for key in range(attention.shape[1]):
            scores[key] += readout[query] * attention[query, key]
    return scores


def mixed(weights, residual: float = 0.5, heads: Heads = "mean") -> np.ndarray:
    """A = (1 - r) W + r I in every layer, [layer, query, key].

    abnar2020, section 3: A = 0.5 W_att + 0.5 I. The heads are pooled first; for `heads="max"` each row of W is divided
    by its sum before mixing (see `pooled`), so that rows of A sum to one. A zero row of W gives a row of A that sums to
    r: there is no further renormalisation.
    """
    attention = pooled(weights, heads)
    result = np.zeros_like(attention)
    for layer, query, key in np.ndindex(attention.shape):
        identity = 1.0 if query == key else 0.0
        result[layer, query, key] = (1 - residual) * attention[layer, query, key] + residual * identity
    return result


# ---- rollout


def roll(maps, start_layer: int = 0) -> np.ndarray:
    """R_start = A_start, R_l = A_l R_{l-1}: abnar2020, Eq. 1, of any stack of matrices: [layer, query, key].

    Layers below `start_layer` are left out: their R is the identity.
    """
    maps = _array(maps)
    result = np.zeros_like(maps)
    below = np.eye(maps.shape[-1])
    for layer in range(len(maps)):
        if layer >= start_layer:
            below = maps[layer] @ below
        result[layer] = below
    return result


def rollout_maps(weights, residual: float = 0.5, start_layer: int = 0, heads: Heads = "mean") -> np.ndarray:
    """Rollout of every layer, [layer, query, key]: abnar2020, Eq. 1.

    `start_layer` is the j of Eq. 1. The paper's "to compute input attention we set j = 0" counts the input as layer 0,
    whose A would be the identity; here the first attention layer is number 0 and the result is the same.
    """
    return roll(mixed(weights, residual, heads), start_layer)


def rollout_scores(
    weights, readout, residual: float = 0.5, start_layer: int = 0, layer: int = -1, heads: Heads = "mean"
) -> np.ndarray:
    """The read-out times the rollout of one layer: [token]. For CLS as the read-out it is abnar2020's CLS row."""
    return _array(readout) @ rollout_maps(weights, residual, start_layer, heads)[layer]


class ThroughStacks(NamedTuple):
    """What a position of the decoder has of the source, and of what the decoder had read."""

    source: np.ndarray
    """[layer, query, key]."""
    prefix: np.ndarray
    """[layer, query, query]."""


def mixed_state(attention, attended, own, residual: float) -> np.ndarray:
    """A state behind one attention: r of itself, and 1 - r of what it attends to, [position, input token]."""
    result = np.zeros_like(own)
    for position in range(own.shape[0]):
        for token in range(own.shape[1]):
            gathered = 0.0
            for other in range(attended.shape[0]):
                gathered += attention[position, other] * attended[other, token]
            result[position, token] = residual * own[position, token] + (1 - residual) * gathered
    return result


def rollout_through_stacks(encoder, decoder, cross, residual: float = 0.5, heads: Heads = "mean") -> ThroughStacks:
    """Rollout through an encoder-decoder, token by token.

    The rule of abnar2020 (a state is r of itself and 1 - r of what it attends to) for each attention in the order in
    which the network has them (Vaswani et al. 2017, figure 1): the encoder's layers; then in each layer of the decoder
    attention to its own tokens, and attention to what the encoder put out. A state is a mix of input tokens: of so much
    of each token of the source, and of so much of each token of the decoder.
    """
    encoder, decoder, cross = (pooled(weights, heads) for weights in (encoder, decoder, cross))
    layers, queries, keys = cross.shape
    put_out = np.eye(keys)
    for attention in encoder:
        put_out = mixed_state(attention, put_out, put_out, residual)
    source, prefix = np.zeros((queries, keys)), np.eye(queries)
    found = ThroughStacks(np.zeros((layers, queries, keys)), np.zeros((layers, queries, queries)))
    for layer in range(layers):
        source = mixed_state(decoder[layer], source, source, residual)
        prefix = mixed_state(decoder[layer], prefix, prefix, residual)
        source = mixed_state(cross[layer], put_out, source, residual)
        prefix = mixed_state(cross[layer], np.zeros((keys, queries)), prefix, residual)  # the encoder has none of it
        found.source[layer], found.prefix[layer] = source, prefix
    return found


def per_head_rollout(weights, residual: float = 0.5) -> np.ndarray:
    """Rollout of each head, with the layers below pooled: [layer, head, query, key].

    abnar2020, appendix A.1: Ã(i, k) = A(i, k) Ā(i). Taken as the issue reads it: A(i, k) = (1 - r) W_{i,k} + r I, and Ā
    is the rollout of the layer *below*, i - 1, with heads averaged, not summed. So the mean over heads is the rollout.
    """
    weights = _array(weights)
    layers, heads, queries, _ = weights.shape
    below = rollout_maps(weights, residual)
    identity = np.eye(queries)
    result = np.zeros_like(weights)
    for layer in range(layers):
        for head in range(heads):
            own = (1 - residual) * weights[layer, head] + residual * identity
            result[layer, head] = own @ (below[layer - 1] if layer > 0 else identity)
    return result


# ---- flow: the graph


def layered_graph(maps, layer: int = -1) -> Capacities:
    """The capacity of every edge of the attention graph up to one layer: {((level, i), (level - 1, j)): A[i, j]}.

    abnar2020, section 3 (attention flow): an edge leads from a position to each position it attends to, one level down,
    and its capacity is the weight. Entries that are zero (or negative) are no edges.
    """
    maps = _array(maps)
    top = range(len(maps))[layer]
    graph: Capacities = {}
    for level in range(1, top + 2):
        for i, j in np.ndindex(maps[level - 1].shape):
            if maps[level - 1][i, j] > 0:
                graph[(level, i), (level - 1, j)] = float(maps[level - 1][i, j])
    return graph


def _numbered(graph: Capacities, source: Node, sink: Node) -> dict[Node, int]:
    nodes = {source, sink}
    for start, end in graph:
        nodes |= {start, end}
    return {node: number for number, node in enumerate(sorted(nodes))}


def maximum_flow_networkx(graph: Capacities, source: Node, sink: Node) -> float:
    """The maximum flow in floats, by networkx's preflow push."""
    import networkx as nx
    from networkx.algorithms.flow import preflow_push

    network = nx.DiGraph()
    network.add_nodes_from([source, sink])
    for (start, end), capacity in graph.items():
        network.add_edge(start, end, capacity=capacity)
    return float(nx.maximum_flow_value(network, source, sink, flow_func=preflow_push))


def maximum_flow_ortools(graph: Capacities, source: Node, sink: Node, scale: int = 2**50) -> float:
    """The maximum flow in whole numbers, by ortools: capacities times `scale`, rounded.

    The only error is that of rounding: at most half of 1 / scale for each edge of the cut.
    """
    from ortools.graph.python import max_flow

    number = _numbered(graph, source, sink)
    solver = max_flow.SimpleMaxFlow()
    for (start, end), capacity in graph.items():
        solver.add_arc_with_capacity(number[start], number[end], round(capacity * scale))
    if solver.num_nodes() <= max(number[source], number[sink]):
        return 0.0  # ortools knows only nodes that have an edge, and refuses to solve for others
    status = solver.solve(number[source], number[sink])
    assert status == solver.OPTIMAL, status
    return solver.optimal_flow() / scale


def maximum_flow_igraph(graph: Capacities, source: Node, sink: Node, scale: int = 2**40) -> float:
    """The maximum flow by igraph, with whole numbers held in doubles.

    igraph computes in doubles; whole numbers below 2**53 are exact there, so up to 2**13 tokens no sum is rounded.
    """
    import igraph

    number = _numbered(graph, source, sink)
    network = igraph.Graph(n=len(number), edges=[(number[start], number[end]) for start, end in graph], directed=True)
    capacities = [float(round(capacity * scale)) for capacity in graph.values()]
    return network.maxflow_value(number[source], number[sink], capacity=capacities) / scale


SOLVERS: dict[str, Callable[[Capacities, Node, Node], float]] = {
    "networkx": maximum_flow_networkx,
    "ortools": maximum_flow_ortools,
    "igraph": maximum_flow_igraph,
}


# ---- flow: its values


def _ends(maps, layer: int, query: int, key: int) -> tuple[Node, Node]:
    return (range(len(maps))[layer] + 1, query), (0, key)


def flow_value(maps, layer: int, query: int, key: int) -> float:
    """Maximum flow from a query at a layer to one input token as the only sink, by networkx in floats.

    abnar2020, section 3 (attention flow). `maps` are mixed with the residual (`mixed`).
    """
    return maximum_flow_networkx(layered_graph(maps, layer), *_ends(maps, layer, query, key))


def flow_value_exact(maps, layer: int, query: int, key: int) -> float:
    """The same as `flow_value`, in whole numbers (capacities times 2**50) by ortools."""
    return maximum_flow_ortools(layered_graph(maps, layer), *_ends(maps, layer, query, key))


def flow_value_igraph(maps, layer: int, query: int, key: int) -> float:
    """The same as `flow_value`, by igraph (capacities times 2**40)."""
    return maximum_flow_igraph(layered_graph(maps, layer), *_ends(maps, layer, query, key))


def flow_maps(maps, solver: str = "ortools") -> np.ndarray:
    """Flow from every query at every layer to every token, [layer, query, key]; for few tokens only.

    Flows are as they come, not divided by their sum. In the first layer the only path is one edge: flow = A_1.
    """
    maps = _array(maps)
    result = np.zeros_like(maps)
    for layer in range(len(maps)):
        graph = layered_graph(maps, layer)
        for query, key in np.ndindex(maps[layer].shape):
            result[layer, query, key] = SOLVERS[solver](graph, *_ends(maps, layer, query, key))
    return result


def flow_scores(maps, readout, layer: int = -1, normalize: bool = False, solver: str = "ortools") -> np.ndarray:
    """The single-source flows of one layer, averaged with the read-out as weights: [token].

    With `normalize` the result is divided by its sum. It is the average of the flows that is divided, not each flow.
    """
    scores = np.zeros(len(_array(readout)))
    graph = layered_graph(maps, layer)
    for query, share in enumerate(_array(readout)):
        if share != 0:
            for key in range(len(scores)):
                scores[key] += share * SOLVERS[solver](graph, *_ends(maps, layer, query, key))
    return rows_to_one(scores) if normalize else scores


def per_head_flow(weights, residual: float = 0.5, solver: str = "ortools") -> np.ndarray:
    """Flow with one head in the top layer and the layers below pooled: [layer, head, query, key].

    abnar2020, appendix A.1, read as in `per_head_rollout`. Unlike rollout, the mean over heads is not the flow but at
    most the flow, because a maximum flow is concave in its capacities.
    """
    weights = _array(weights)
    below = mixed(weights, residual)
    result = np.zeros_like(weights)
    for layer, head in np.ndindex(weights.shape[:2]):
        own = (1 - residual) * weights[layer, head] + residual * np.eye(weights.shape[2])
        maps = np.concatenate([below[:layer], own[None]])
        graph = layered_graph(maps, layer)
        for query, key in np.ndindex(own.shape):
            result[layer, head, query, key] = SOLVERS[solver](graph, *_ends(maps, layer, query, key))
    return result


def flow_with_readout_layer(maps, readout, key: int, solver: str = "ortools") -> float:
    """Maximum flow to a token when the read-out is one more layer of the graph.

    One source above the last layer, with an edge of capacity readout[i] to each position i. The issue's
    `readout="layer"`; the paper has only single positions as sources.
    """
    graph = layered_graph(maps)
    top = len(maps)
    source = (top + 1, 0)
    for position, share in enumerate(_array(readout)):
        if share > 0:
            graph[source, (top, position)] = float(share)
    return SOLVERS[solver](graph, source, (0, key))


# ---- flow: its cuts


class TrivialCut(NamedTuple):
    """The two cuts that need no algorithm: the flow is at most the smaller one."""

    source_side: float
    token_side: float


def trivial_cut(maps, layer: int, query: int, key: int, causal: bool) -> TrivialCut:
    """What can leave the source, and what can enter the token in the first layer.

    The issue's `saturated`, literally, in every layer: source side is the sum of A_layer[query, j], token side the sum
    of A_1[i, key]. When causal, only positions key..query can lie on a path (a path never moves up in position), so
    both sums run over those alone. In the first layer source side and token side are still these sums although the only
    path is the one edge: there a flow of A_1[query, key] is saturated only if it equals one of the sums.
    """
    maps = _array(maps)
    positions = range(key, query + 1) if causal else range(maps.shape[-1])
    source_side = sum(float(maps[layer][query, position]) for position in positions)
    token_side = sum(float(maps[0][position, key]) for position in positions)
    return TrivialCut(source_side, token_side)


def minimum_cut_nearest_source(
    maps, layer: int, query: int, key: int, scale: int = 2**50, tolerance: float = 1e-12
) -> list[Edge]:
    """The edges of the minimum cut nearest the source, sorted.

    Max-flow min-cut theorem (Cormen et al., which abnar2020 cites): after a maximum flow, the positions still reachable
    from the source through edges with room left (and backwards through edges that carry flow) are the source side of
    the minimum cut nearest the source, whichever maximum flow was found. Computed in whole numbers (capacities times
    `scale`); room of at most `tolerance` counts as none, so that cuts that are equal but for rounding count as equal.
    An edge is ((level, i), (level - 1, j)), with capacity maps[level - 1][i, j].
    """
    import networkx as nx
    from networkx.algorithms.flow import preflow_push

    source, sink = _ends(maps, layer, query, key)
    graph = layered_graph(maps, layer)
    network = nx.DiGraph()
    network.add_nodes_from([source, sink])
    for (start, end), capacity in graph.items():
        network.add_edge(start, end, capacity=round(capacity * scale))
    _, flow = nx.maximum_flow(network, source, sink, flow_func=preflow_push)

    least = tolerance * scale
    reached = {source}
    waiting = [source]
    while waiting:
        node = waiting.pop()
        onward = [end for end in network.successors(node) if network[node][end]["capacity"] - flow[node][end] > least]
        backward = [start for start in network.predecessors(node) if flow[start][node] > least]
        for other in onward + backward:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    assert sink not in reached
    return sorted((start, end) for start, end in graph if start in reached and end not in reached)


# ---- layer-wise attention tracing


class Tracing(NamedTuple):
    """What layer-wise attention tracing finds."""

    per_head: np.ndarray  # [layer, head, token]
    scores: np.ndarray  # [token]


def layerwise_tracing(weights, readout) -> Tracing:
    """Trace the read-out down to the tokens, each head by itself: wu2020, Eq. 8, 10, 11.

    - Eq. 8, with A^c = 1: A^{L+1}_h(i) = readout(i), for every head.
    - Eq. 10: A^l_h(i) = sum over j of alpha_h(i -> j) A^{l+1}_h(j), where alpha_h(i -> j) is the (j, i) element of the
      matrix, that is weights[query j, key i]: a row vector times the matrix, with the same head in all layers.
    - Eq. 11: the score of token i is the sum over heads of A^1_h(i).

    `per_head[l]` is what is left after passing layers L-1 .. l, so `per_head[0]` is A^1, on the input tokens, and
    the read-out itself (A^{L+1}) is not in it. Where rows sum to one no mass is lost, which is checked: every head sums
    to the sum of the read-out in every layer, and the scores to that times the number of heads.
    """
    weights, readout = _array(weights), _array(readout)
    layers, heads, queries, keys = weights.shape
    per_head = np.zeros((layers, heads, keys))
    for head in range(heads):
        attention = readout.copy()
        for layer in reversed(range(layers)):
            below = np.zeros(keys)
            for key in range(keys):
                for query in range(queries):
                    below[key] += weights[layer, head, query, key] * attention[query]
            attention = below
            per_head[layer, head] = attention
    if np.allclose(weights.sum(-1), 1, rtol=0, atol=1e-12):
        assert np.allclose(per_head.sum(-1), readout.sum(), rtol=0, atol=1e-10)
    scores = np.zeros(keys)
    for head in range(heads):
        scores += per_head[0, head]
    return Tracing(per_head, scores)


def softmax_over_tokens(scores) -> np.ndarray:
    """The softmax of the scores over the tokens: wu2020, section 6.1 (real tokens only, without padding)."""
    scores = _array(scores)
    highest = scores.max()
    powers = [math.exp(score - highest) for score in scores]
    return np.array([power / sum(powers) for power in powers])


# ---- other weights: effective, by value, by gradient


def left_null_space(matrix, tolerance: float | None = None) -> np.ndarray:
    """An orthonormal basis, in columns, of all x with x @ matrix = 0.

    By the singular value decomposition: singular values of at most `tolerance` times the largest count as zero. Unless
    given, the tolerance is the larger side of the matrix times the machine epsilon of the matrix's own type: values
    captured in float32 have a rank only up to the noise of float32.
    """
    matrix = np.asarray(matrix)
    if tolerance is None:
        kind = matrix.dtype if np.issubdtype(matrix.dtype, np.floating) else np.float64
        tolerance = max(matrix.shape) * float(np.finfo(kind).eps)
    left, singular, _ = np.linalg.svd(_array(matrix), full_matrices=True)
    rank = int((singular > tolerance * singular.max()).sum())
    return left[:, rank:]


def effective_weights(weights, values, visible=None, tolerance: float | None = None) -> np.ndarray:
    """Each row of each head, projected off the left null space of [V W_O, 1]: [layer, head, query, key].

    brunner2020 (effective attention), with the column of ones of the issue, so that rows keep their sum.
    What is taken away changes neither the head's output (row @ V W_O) nor the sum of the row; what is left may be
    negative. `values` [layer, head, key, width] are the values after W_O.

    `visible` [query, key] (or [layer, query, key]) are the keys a query may attend to. If given, each row is projected
    within its visible keys only (the null space is that of their rows of [V W_O, 1]) and stays zero elsewhere;
    otherwise a causal row would put weight on later tokens. Without it every key is visible: the dense case.
    """
    weights, values = _array(weights), np.asarray(values)
    layers, heads, queries, keys = weights.shape
    visible = np.ones((queries, keys), bool) if visible is None else np.asarray(visible, bool)
    visible = np.broadcast_to(visible, (layers, queries, keys))
    result = np.zeros_like(weights)
    for layer, head, query in np.ndindex(layers, heads, queries):
        seen = np.flatnonzero(visible[layer, query])
        if len(seen) == 0:
            continue
        transformed = values[layer, head][seen]
        null = left_null_space(
            np.concatenate([transformed, np.ones((len(seen), 1), transformed.dtype)], axis=1), tolerance
        )
        row = weights[layer, head, query, seen]
        for direction in null.T:
            row = row - (row @ direction) * direction
        result[layer, head, query, seen] = row
    return result


def clipped_rows(weights) -> np.ndarray:
    """Clip at zero and divide each row by its sum, as flow does with effective attention (the issue)."""
    return rows_to_one(np.maximum(_array(weights), 0))


def value_weighted(weights, values) -> np.ndarray:
    """Attention times the length of the transformed value, per head: [layer, head, query, key].

    kobayashi2020, section 2: the norm of alpha_{i,j} f(x_j), f(x) = (x W_V + b_V) W_O per head. Not normalised, as in
    that paper: rows do not sum to one (for a mix with the identity use `value_weighted_rows`).
    """
    weights, values = _array(weights), _array(values)
    result = np.zeros_like(weights)
    for layer, head, query, key in np.ndindex(weights.shape):
        length = math.sqrt(sum(float(number) ** 2 for number in values[layer, head, key]))
        result[layer, head, query, key] = weights[layer, head, query, key] * length
    return result


def value_weighted_rows(weights, values) -> np.ndarray:
    """`value_weighted` with each row of each head divided by its sum. Our choice: kobayashi2020 does not divide."""
    return rows_to_one(value_weighted(weights, values))


def value_weighted_layer(weights, values) -> np.ndarray:
    """The norm of the sum over heads of alpha f(x): [layer, query, key], not normalised.

    kobayashi2020's way of taking all heads of a layer together: vectors are added before the norm is taken, so this is
    at most the sum over heads of `value_weighted`.
    """
    weights, values = _array(weights), _array(values)
    layers, heads, queries, keys = weights.shape
    result = np.zeros((layers, queries, keys))
    for layer, query, key in np.ndindex(result.shape):
        vector = np.zeros(values.shape[-1])
        for head in range(heads):
            vector += weights[layer, head, query, key] * values[layer, head, key]
        result[layer, query, key] = math.sqrt(float(vector @ vector))
    return result


class GradientRollout(NamedTuple):
    """Four readings of one idea, each [layer, query, key]; M is the head mean of the positive part of grad times W."""

    chefer: np.ndarray  # roll of I + M
    chefer_rows: np.ndarray  # roll of I + M, each row divided by its sum
    residual: np.ndarray  # roll of (1 - r) M + r I: for r = 0.5 it is `chefer` divided by 2 in every layer
    residual_rows: np.ndarray  # roll of (1 - r) M' + r I, where M' is M with each row divided by its sum


def gradient_weighted(weights, gradients) -> np.ndarray:
    """M: the mean over heads of the positive part of gradient times attention, [layer, query, key].

    chefer2021, Eq. 5: the positive part is taken per head, before the mean.
    """
    weights, gradients = _array(weights), _array(gradients)
    layers, heads, queries, keys = weights.shape
    result = np.zeros((layers, queries, keys))
    for layer, head, query, key in np.ndindex(weights.shape):
        result[layer, query, key] += (
            max(weights[layer, head, query, key] * gradients[layer, head, query, key], 0.0) / heads
        )
    return result


def gradient_rollout(weights, gradients, residual: float = 0.5, start_layer: int = 0) -> GradientRollout:
    """Attention weighted by its gradient, positive part, rolled out.

    chefer2021, Eq. 5 and 6: R starts as I, and R <- R + M R in each layer from the lowest up, that is R_l = (I + M_l)
    R_{l-1}; nothing is normalised (`chefer`; the paper's scores are a row of R). The other forms are for whoever keeps
    rows that sum to one, see GradientRollout; a row of M that is zero stays zero in M'.

    `chefer` depends on the scale of the gradient (larger gradients weaken the identity); of the others only
    `residual_rows` does not.
    """
    positive = gradient_weighted(weights, gradients)
    identity = np.broadcast_to(np.eye(positive.shape[-1]), positive.shape)
    return GradientRollout(
        chefer=roll(identity + positive, start_layer),
        chefer_rows=roll(rows_to_one(identity + positive), start_layer),
        residual=roll((1 - residual) * positive + residual * identity, start_layer),
        residual_rows=roll((1 - residual) * rows_to_one(positive) + residual * identity, start_layer),
    )


# ---- the receptive field


def visible_keys(weights) -> np.ndarray:
    """The mask as the weights show it, [layer, query, key]: a key is visible if any head of the layer attends to it."""
    return (_array(weights) > 0).any(axis=1)


def uniform_attention(visible, heads: int = 1) -> np.ndarray:
    """The same weight on every visible key, [layer, head, query, key]; a query that sees nothing gets a zero row."""
    visible = np.asarray(visible, bool)
    rows = rows_to_one(visible.astype(np.float64))
    return np.stack([rows] * heads, axis=1)


class ReceptiveField(NamedTuple):
    """Scores and map after division by the receptive field."""

    scores: np.ndarray  # [token], sums to one
    map: np.ndarray  # [query, key], rows sum to one
    reference: np.ndarray  # [query, key], the same method on uniform attention


def divide_by_field(values, reference) -> np.ndarray:
    """Values divided by the reference, 0 where the reference is 0, then divided by their sum: one row, [token]."""
    quotients = np.zeros(len(values))
    for index, (value, field) in enumerate(zip(values, reference, strict=True)):
        if field > 0:
            quotients[index] = value / field
    return rows_to_one(quotients)


def receptive_field(weights, readout, method: Callable[[np.ndarray], np.ndarray], visible=None) -> ReceptiveField:
    """Scores = (readout @ map) / (readout @ reference), then divided by their sum; rows of the map likewise.

    abnar2020, section 5, asks to "normalize based on the receptive field of attention" and gives no formula; this is
    the issue's. `method` takes weights [layer, head, query, key] to a map [query, key], with its residual inside; the
    reference is the same method on uniform attention under the same mask. `visible` [layer, query, key] is the mask;
    unless given, it is where any head of the layer has weight (causal and sliding windows come out by themselves).

    The scores are divided as a whole, not averaged from the divided rows: for a read-out over several positions the two
    differ. Uniform causal attention is its own reference, so every quotient in the field is one, the result uniform:

    >>> causal = uniform_attention(np.tri(4, dtype=bool)[None].repeat(3, axis=0))
    >>> result = receptive_field(causal, [0, 0, 0, 1], lambda weights: rollout_maps(weights)[-1])
    >>> rollout_maps(causal)[-1][3].round(2).tolist()
    [0.38, 0.22, 0.16, 0.24]
    >>> result.scores.tolist()
    [0.25, 0.25, 0.25, 0.25]
    >>> result.map[1].tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    weights, readout = _array(weights), _array(readout)
    seen = visible_keys(weights) if visible is None else np.asarray(visible, bool)
    found = _array(method(weights))
    reference = _array(method(uniform_attention(seen, weights.shape[1])))
    rows = np.stack([divide_by_field(row, field) for row, field in zip(found, reference, strict=True)])
    return ReceptiveField(divide_by_field(readout @ found, readout @ reference), rows, reference)


# ---- agreement, faithfulness


def ranks(scores, digits: int | None = 9) -> np.ndarray:
    """Average ranks from 1, ties sharing theirs, after rounding to `digits` decimals (None: no rounding).

    The issue: average ranks after rounding to 1e-9, so that exact ties stay ties.
    """
    values = [float(score) if digits is None else round(float(score), digits) for score in _array(scores)]
    result = []
    for value in values:
        lower = sum(other < value for other in values)
        equal = sum(other == value for other in values)
        result.append(lower + (equal + 1) / 2)
    return np.array(result)


def spearman(first, second, digits: int | None = 9) -> float:
    """Pearson's correlation of the average ranks; not a number if either side is constant or has fewer than two."""
    first, second = ranks(first, digits), ranks(second, digits)
    if len(first) < 2:
        return math.nan
    first, second = first - first.mean(), second - second.mean()
    spread = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / spread if spread > 0 else math.nan


def kendall(first, second, digits: int | None = 9) -> float:
    """Kendall's tau-b of the ranks: (concordant - discordant) / sqrt(pairs not tied here x pairs not tied there)."""
    first, second = ranks(first, digits), ranks(second, digits)
    agreement, untied_first, untied_second = 0, 0, 0
    for i in range(len(first)):
        for j in range(i):
            here, there = np.sign(first[i] - first[j]), np.sign(second[i] - second[j])
            agreement += int(here * there)
            untied_first += int(here != 0)
            untied_second += int(there != 0)
    spread = math.sqrt(untied_first * untied_second)
    return agreement / spread if spread > 0 else math.nan


def best_positions(scores, fraction: float) -> list[int]:
    """The positions of the highest scores: ceil(fraction x tokens) of them, an earlier one first among equals."""
    scores = _array(scores)
    count = math.ceil(fraction * len(scores) - 1e-9)
    return sorted(range(len(scores)), key=lambda position: (-scores[position], position))[:count]


def _without(tokens: Sequence, gone: set[int], replacement) -> list:
    if replacement is None:
        return [token for position, token in enumerate(tokens) if position not in gone]
    return [replacement if position in gone else token for position, token in enumerate(tokens)]


def aopc_comprehensiveness(
    probability_function: Callable[[list], float],
    tokens: Sequence,
    scores,
    fractions: Sequence[float],
    replacement=None,
) -> float:
    """Mean over fractions of p(all tokens) - p(tokens without the best ones); signed, higher is better.

    deyoung2020, Eq. 1 and 3 (AOPC). Eq. 3 divides by the number of bins plus one because it counts the bin of nothing
    removed; here the mean is over exactly the fractions given: put 0 among them for the paper's sum. Tokens are
    deleted, or replaced if a replacement is given.
    """
    whole = probability_function(list(tokens))
    drops = [
        whole - probability_function(_without(tokens, set(best_positions(scores, fraction)), replacement))
        for fraction in fractions
    ]
    return sum(drops) / len(drops)


def aopc_sufficiency(
    probability_function: Callable[[list], float],
    tokens: Sequence,
    scores,
    fractions: Sequence[float],
    replacement=None,
) -> float:
    """Mean over fractions of p(all tokens) - p(the best tokens alone); signed, lower is better.

    deyoung2020, Eq. 2 and 3; the same choices as in `aopc_comprehensiveness`.
    """
    whole = probability_function(list(tokens))
    drops = []
    for fraction in fractions:
        others = set(range(len(tokens))) - set(best_positions(scores, fraction))
        drops.append(whole - probability_function(_without(tokens, others, replacement)))
    return sum(drops) / len(drops)
