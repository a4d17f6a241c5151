"""Maximum flow in the layered attention graph, compiled: Dinic's algorithm on dense layers, in integers.

Nodes are (level, token), from the source at level `depth` down to the sink at level 0. `capacity[level, i, j]` is the
arc from (level + 1, i) to (level, j). Capacities are int64 multiples of 2**-50, so there is no residue to round away: a
cut of m arcs is off by at most m * 2**-51. Between `low` and `high` lie the tokens that a path may visit; in a causal
graph these are sink..source.

How it is fast. A first blocking flow passes amounts, not paths, down the layers, each node's own diagonal arc first
(half of its capacity with the residual), and skips nodes that are full by path halving. Where that misses the bound,
ordinary phases follow: breadth-first levels with shrinking lists of unvisited nodes, and a blocking flow that may also
lead up again. Only the arcs touched are undone, so one workspace serves all pairs.
"""

import threading
from typing import NamedTuple, no_type_check

import numba
import numpy as np
import torch

from .compiling import compiled

SCALE = 2**50
SERIAL_WORK = 200_000
"""Below this many pairs x levels x tokens waking threads costs more than it saves."""
_parallel_lock = threading.Lock()


class Workspace(NamedTuple):
    """What one thread needs beside the flow itself, all of int64."""

    touched: np.ndarray
    """Arcs to be undone."""
    arc: np.ndarray
    """The next one to try, of each node."""
    after: np.ndarray
    """The next node alive, of each node."""
    distance: np.ndarray
    queue: np.ndarray
    unvisited: np.ndarray
    left: np.ndarray
    """How many nodes of a level are unvisited."""
    amount: np.ndarray
    """Asked of a node on the way."""
    sent: np.ndarray
    """Sent on by it."""
    level: np.ndarray
    node: np.ndarray
    """Its token."""


@compiled()
@no_type_check
def _next_alive(after, level, j):
    """The first node from j on that can still pass something down, by path halving."""
    while after[level, j] != j:
        after[level, j] = after[level, after[level, j]]
        j = after[level, j]
    return j


@compiled()
@no_type_check
def _first_blocking_flow(capacity, flow, space, depth, source, sink, low, high, limit):
    """Pass up to `limit` down the layers by forward arcs alone, until every way is blocked."""
    touched, arc, after, node = space.touched, space.arc, space.after, space.node
    amount, sent = space.amount, space.sent
    n = capacity.shape[1]
    count = 0
    for level in range(1, depth + 1):
        for j in range(low, high + 1):
            arc[level, j] = low - 1
            after[level, j] = j
        after[level, high + 1] = high + 1
    level = depth
    node[level], amount[level], sent[level] = source, limit, 0
    while True:
        i = node[level]
        wanted = amount[level] - sent[level]
        moved = False
        if wanted > 0 and after[level, i] == i:
            below = level - 1
            if level == 1:
                room = capacity[0, i, sink] - flow[0, i, sink]
                passed = min(room, wanted)
                if passed > 0:
                    if flow[0, i, sink] == 0:
                        touched[count] = i * n + sink
                        count += 1
                    flow[0, i, sink] += passed
                    sent[level] += passed
                if passed == room:
                    after[level, i] = i + 1
            else:
                j = arc[level, i]
                if j < low:  # the diagonal arc, tried first
                    room = capacity[below, i, i] - flow[below, i, i]
                    if room > 0 and after[below, i] == i:
                        node[below], amount[below], sent[below] = i, min(room, wanted), 0
                        moved = True
                    else:
                        j = low
                if not moved:
                    j = _next_alive(after, below, j)
                    while j <= high:
                        room = capacity[below, i, j] - flow[below, i, j]
                        if room > 0 and j != i:
                            node[below], amount[below], sent[below] = j, min(room, wanted), 0
                            moved = True
                            break
                        j = _next_alive(after, below, j + 1)
                    arc[level, i] = j
                    if not moved:
                        after[level, i] = i + 1
        if moved:
            level -= 1
            continue
        passed = sent[level]
        if level == depth:
            return passed, count
        j = node[level]
        level += 1
        i = node[level]
        if passed > 0:
            if flow[level - 1, i, j] == 0:
                touched[count] = ((level - 1) * n + i) * n + j
                count += 1
            flow[level - 1, i, j] += passed
            sent[level] += passed


@compiled()
@no_type_check
def _reach(capacity, flow, space, depth, source, sink, low, high):
    """Breadth-first distances from the source in the residual graph (-1: out of reach); true if the sink is reached."""
    distance, queue, unvisited, left = space.distance, space.queue, space.unvisited, space.left
    n = capacity.shape[1]
    for level in range(depth + 1):
        for j in range(low, high + 1):
            distance[level, j] = -1
            unvisited[level, j - low] = j
        left[level] = high - low + 1
    left[0], unvisited[0, 0] = 1, sink  # other input tokens lead nowhere
    distance[depth, source] = 0
    queue[0] = depth * n + source
    head, tail = 0, 1
    while head < tail:
        level = queue[head] // n
        i = queue[head] - level * n
        head += 1
        further = distance[level, i] + 1
        below, above = level - 1, level + 1
        kept = 0
        for c in range(left[below]):
            j = unvisited[below, c]
            if capacity[below, i, j] > flow[below, i, j]:
                distance[below, j] = further
                if below == 0:
                    return True
                queue[tail] = below * n + j
                tail += 1
            else:
                unvisited[below, kept] = j
                kept += 1
        left[below] = kept
        if above < depth:
            kept = 0
            for c in range(left[above]):
                j = unvisited[above, c]
                if flow[level, j, i] > 0:
                    distance[above, j] = further
                    queue[tail] = above * n + j
                    tail += 1
                else:
                    unvisited[above, kept] = j
                    kept += 1
            left[above] = kept
    return False


@compiled()
@no_type_check
def _distances_to_sink(capacity, flow, space, depth, source, sink, low, high):
    """Breadth-first distances to the sink in the residual graph (-1: none); true if the source has one.

    From the sink and not from the source, because near the sink most arcs are full: few nodes can still reach it, and
    the search that follows walks into no dead end that it has not made itself.
    """
    distance, queue, unvisited, left = space.distance, space.queue, space.unvisited, space.left
    n = capacity.shape[1]
    for level in range(depth + 1):
        for j in range(low, high + 1):
            distance[level, j] = -1
            unvisited[level, j - low] = j
        left[level] = high - low + 1
    left[0], left[depth], unvisited[depth, 0] = 0, 1, source
    distance[0, sink] = 0
    queue[0] = sink
    head, tail = 0, 1
    while head < tail:
        level = queue[head] // n
        j = queue[head] - level * n
        head += 1
        further = distance[level, j] + 1
        above, below = level + 1, level - 1
        kept = 0
        for c in range(left[above]):
            i = unvisited[above, c]
            if capacity[level, i, j] > flow[level, i, j]:
                distance[above, i] = further
                if above == depth:
                    return True
                queue[tail] = above * n + i
                tail += 1
            else:
                unvisited[above, kept] = i
                kept += 1
        left[above] = kept
        if below > 0:
            kept = 0
            for c in range(left[below]):
                i = unvisited[below, c]
                if flow[below, j, i] > 0:
                    distance[below, i] = further
                    queue[tail] = below * n + i
                    tail += 1
                else:
                    unvisited[below, kept] = i
                    kept += 1
            left[below] = kept
    return False


@compiled()
@no_type_check
def _blocking_flow(capacity, flow, space, depth, source, sink, low, high, limit, count):
    """Augment along shortest residual paths until every one is blocked; arcs may lead down or, undoing flow, up."""
    touched, arc, distance, node = space.touched, space.arc, space.distance, space.node
    amount, sent, at_level = space.amount, space.sent, space.level
    n = capacity.shape[1]
    width = high - low + 1
    for level in range(depth + 1):
        for j in range(low, high + 1):
            arc[level, j] = low
    top = 0
    at_level[0], node[0], amount[0], sent[0] = depth, source, limit, 0
    while True:
        level, i = at_level[top], node[top]
        wanted = amount[top] - sent[top]
        moved = False
        if level == 0:
            sent[top] = amount[top]
        elif wanted > 0 and distance[level, i] >= 0:
            nearer = distance[level, i] - 1
            a = arc[level, i]
            # arcs low..high lead down, the same number behind them lead up
            while a <= high + width:
                step = 1
                if a <= high:
                    to = level - 1
                    j = a
                    if to == 0:
                        j, step = sink, high + 1 - a
                    room = capacity[to, i, j] - flow[to, i, j]
                else:
                    to = level + 1
                    if to >= depth:
                        a = high + width + 1
                        break
                    j = a - width
                    room = flow[level, j, i]
                if room > 0 and distance[to, j] == nearer:
                    top += 1
                    at_level[top], node[top], amount[top], sent[top] = to, j, min(room, wanted), 0
                    moved = True
                    break
                a += step
            arc[level, i] = a
            if not moved:
                distance[level, i] = -1
        if moved:
            continue
        passed = sent[top]
        if top == 0:
            return passed, count
        to, j = at_level[top], node[top]
        top -= 1
        level, i = at_level[top], node[top]
        if passed > 0:
            if to > level:
                flow[level, j, i] -= passed
            else:
                if flow[to, i, j] == 0 and count < touched.shape[0]:
                    touched[count] = (to * n + i) * n + j
                    count += 1
                flow[to, i, j] += passed
            sent[top] += passed


@compiled()
@no_type_check
def _workspace(depth, n):
    nodes = (depth + 1) * n + 2
    return Workspace(
        np.empty(2 * depth * n * n, np.int64),
        np.empty((depth + 1, n), np.int64),
        np.empty((depth + 1, n + 1), np.int64),
        np.empty((depth + 1, n), np.int64),
        np.empty(nodes, np.int64),
        np.empty((depth + 1, n), np.int64),
        np.empty(depth + 1, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
    )


@compiled()
@no_type_check
def _maximum_flow(capacity, flow, space, depth, source, sink, low, high, bound):
    """The maximum flow, known to be at most `bound`, left in `flow`, and how many arcs it touched."""
    total, count = _first_blocking_flow(capacity, flow, space, depth, source, sink, low, high, bound)
    while total < bound and _distances_to_sink(capacity, flow, space, depth, source, sink, low, high):
        passed, count = _blocking_flow(capacity, flow, space, depth, source, sink, low, high, bound - total, count)
        total += passed
    return total, count


@compiled()
@no_type_check
def _solve_some(capacity, depth, sources, sinks, lows, highs, bounds, result, first, step):
    """Every `step`-th pair from `first` on."""
    n = capacity.shape[1]
    flow = np.zeros((depth, n, n), np.int64)
    flat = flow.reshape(-1)
    space = _workspace(depth, n)
    touched = space.touched
    for pair in range(first, sources.shape[0], step):
        result[pair], count = _maximum_flow(
            capacity, flow, space, depth, sources[pair], sinks[pair], lows[pair], highs[pair], bounds[pair]
        )
        if count == touched.shape[0]:
            flat[:] = 0
        for c in range(count):
            flat[touched[c]] = 0


@compiled(parallel=True)
@no_type_check
def _solve_parallel(capacity, depth, sources, sinks, lows, highs, bounds, result, threads):
    for thread in numba.prange(threads):
        _solve_some(capacity, depth, sources, sinks, lows, highs, bounds, result, thread, threads)


@compiled()
@no_type_check
def solve_pairs_serially(capacity, depth, sources, sinks, lows, highs, bounds, result):
    """The maximum flow of each pair, in this thread."""
    _solve_some(capacity, depth, sources, sinks, lows, highs, bounds, result, 0, 1)


@no_type_check
def solve_pairs(capacity, depth, sources, sinks, lows, highs, bounds):
    """The maximum flow from (depth, source) to (0, sink) of each pair, given an upper bound for each."""
    result = np.empty(len(sources), np.int64)
    # numba compiles once more for every mix of arrays with and without gaps, and what np.nonzero finds has gaps
    pairs = (np.ascontiguousarray(numbers) for numbers in (sources, sinks, lows, highs, bounds))
    arguments = (np.ascontiguousarray(capacity), depth, *pairs, result)
    threads = torch.get_num_threads()
    if threads == 1 or len(sources) * depth * capacity.shape[1] < SERIAL_WORK:
        solve_pairs_serially(*arguments)
        return result
    with _parallel_lock:  # numba's simple thread pool aborts when two threads enter it
        _solve_parallel(*arguments, threads)
        torch.set_num_threads(threads)  # where numba and torch share OpenMP, starting the one changes the other
    return result


@compiled()
@no_type_check
def reachable(capacity, depth, source, sink, low, high, bound):
    """The maximum flow of one pair, along each arc too, and the nodes that its source still reaches: near the cut."""
    n = capacity.shape[1]
    flow = np.zeros((depth, n, n), np.int64)
    space = _workspace(depth, n)
    total, _ = _maximum_flow(capacity, flow, space, depth, source, sink, low, high, bound)
    _reach(capacity, flow, space, depth, source, sink, low, high)
    return total, flow, space.distance


# Bounds of flows, from the arcs beside source and token and from the flows of the layer below, compiled.


SLACK = 2**12
"""How far apart bounds may be and still count as met: 4e-12, the rounding of the sums that make them."""


@compiled()
@no_type_check
def trivial_cuts(capacity, level, causal):
    """What each query of a level can give and each token can take in layer 1, over the tokens that paths may visit."""
    n = capacity.shape[1]
    source_side = np.zeros((n, n), np.int64)
    token_side = np.zeros((n, n), np.int64)
    if causal:
        for i in range(n):
            for j in range(i, -1, -1):
                source_side[i, j] = capacity[level, i, j] + (source_side[i, j + 1] if j < i else 0)
                # row by row: what a token can take from queries up to i is what it could up to i - 1, and more
                token_side[i, j] = capacity[0, i, j] + (token_side[i - 1, j] if j < i else 0)
    else:
        gives, takes = capacity[level].sum(1), capacity[0].sum(0)
        for i in range(n):
            for j in range(n):
                source_side[i, j], token_side[i, j] = gives[i], takes[j]
    return source_side, token_side


@compiled()
@no_type_check
def bounds_from_below(capacity, level, below, causal):
    """Bounds of the flows of one level from the flows `below[v, j]` of the level under it.

    Upper: no more passes than each arc and what its end can send on. Lower: the flows of the nodes below, scaled by
    shares that add up to one, fit into the graph together, so shares are given to the largest first, as far as the arcs
    carry.
    """
    n = capacity.shape[1]
    row = capacity[level]
    upper = np.zeros((n, n), np.int64)
    lower = np.zeros((n, n), np.int64)
    for j in range(n):
        order = np.argsort(-below[:, j])
        for i in range(n):
            low, high = (j, i) if causal else (0, n - 1)
            through = 0
            for v in range(low, high + 1):
                through += min(row[i, v], below[v, j])
            upper[i, j] = through
            share, together = 1.0, 0.0
            for c in range(n):
                v = order[c]
                if below[v, j] == 0 or share <= 0.0:
                    break
                taken = min(share, row[i, v] / below[v, j])
                together += taken * below[v, j]
                share -= taken
            lower[i, j] = np.int64(together)
    return upper, lower
