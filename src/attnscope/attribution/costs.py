"""What slow methods will take here: a piece of the work of each is done and timed, and the rest told from it."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from ..errors import BadInput
from ..record import AttentionRecord, Model
from ..record.model import EMBEDDINGS
from ..record.words import units
from .flow_graph import FlowGraph
from .heads import pooled_maps, square_weights, with_residual
from .rerunning import input_positions, key_embeddings, key_ids

BATCH = 16
"""Runs of blank-out that go together, as it has them by default."""
GRADIENT_STEPS = 26
"""Gradients that integrated gradients takes on most texts, with those that choose a baseline."""
SOLVED = 6
"""Flows that are solved to tell how long all take."""

SOON = 0.2
"""Seconds below which a piece of work is done twice to be timed."""


def predicted_seconds(
    record: AttentionRecord, model: Model | None, methods: Iterable[str], by: str = "token"
) -> dict[str, float]:
    """About how long each slow method among these will take, by pieces of their work that are timed here and now."""
    wanted = set(methods)
    seconds: dict[str, float] = {}
    if "flow" in wanted:
        with suppress(BadInput):  # cross-attention has no flow, as it will say itself
            seconds["flow"] = flow_seconds(record)
    if model is None or not record.inputs:
        return seconds
    if "blank_out" in wanted:
        groups = units(record.key_tokens, record.key_special, record.key_word_ids, by, record.segments)[0]
        firsts = [min(input_positions(record, group), default=0) for group in groups]
        tokens = len(record.inputs[key_ids(record)])
        runs = runs_of(firsts, tokens, bool(getattr(model, "shares_beginnings", False)))
        with suppress(BadInput):  # a model without a head says so itself
            seconds["blank_out"] = runs * seconds_of(lambda: model.probabilities([record.inputs]))
    if "integrated_gradients" in wanted:
        with suppress(BadInput):
            point = {**record.inputs, EMBEDDINGS[key_ids(record)]: key_embeddings(record, model)}
            goal = model.target(record.inputs) if record.target is None else record.target
            seconds["integrated_gradients"] = GRADIENT_STEPS * seconds_of(lambda: model.target_gradients([point], goal))
    return seconds


def runs_of(firsts: Sequence[int], tokens: int, shares_beginnings: bool) -> float:
    """How many runs of the whole text blank-out takes, by the first position that each of its runs changes.

    Where runs share their beginning, each batch has what stands before its first change but once.

    >>> runs_of(range(32), 32, False), round(runs_of(range(32), 32, True), 1)
    (33.0, 26.0)
    """
    starts = [0, *sorted(firsts)]
    whole = 0
    for number in range(0, len(starts), BATCH):
        batch = starts[number : number + BATCH]
        shared = batch[0] if shares_beginnings else 0
        whole += shared + len(batch) * (tokens - shared)
    return whole / tokens


def flow_seconds(record: AttentionRecord) -> float:
    """How long the flows from the read-out take, told from some of them."""
    maps = with_residual(pooled_maps(square_weights(record).double(), "mean"), 0.5)
    graph, top, tokens = FlowGraph.of(maps, record.causal), len(maps) - 1, len(record.key_tokens)
    if top == 0:
        return 0.0
    source = int(record.readout.argmax())
    some = range(0, tokens, max(tokens // SOLVED, 1))
    graph.pairs(top, [source], [source])  # the first call compiles
    each = seconds_of(lambda: graph.pairs(top, [source], some)) / len(some)
    return each * tokens * int((record.readout > 0).sum())


def seconds_of(work: Callable[[], object]) -> float:
    """How long a piece of work takes; the better of two where that is soon told, as the first may warm something up."""

    def once() -> float:
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun

    first = once()
    return min(first, once()) if first < SOON else first
