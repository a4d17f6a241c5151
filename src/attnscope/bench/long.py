"""Long texts without the matrix, beside the forward pass alone and beside the peers' way to attention: all weights.

Time is measured by turns in one process, memory in fresh ones: the peak of a process never goes down again.
"""

import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, cast

import torch
from transformers import LlamaConfig, LlamaModel

from ..attribution.without_matrix import raw_row, rolled_down, sweep_down
from ..capture.request import available_bytes
from ..capture.vectors import VectorCollector, watch_vectors
from ..capture.watching import evaluation_mode
from ..errors import BadInput
from ..record import VectorRecord
from .figure import Figure, faster, seconds_by_turns, share, taking_turns
from .memory import CLEAR_PEAK, held_now

LARGE: dict[str, Any] = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 1000,
    "max_position_embeddings": 2**15,
}
"""SmolLM2-135M, without its vocabulary: the answer is no part of what is measured."""
SMALL = LARGE | {
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
}
"""Four layers of eight heads, 64 wide."""
CASES: tuple[tuple[Mapping[str, Any], Sequence[int]], ...] = (
    (LARGE, (512, 1024, 2048, 4096)),
    (SMALL, (8192, 2**14, 2**15)),
)
TOO_LONG = 2048
"""Longer texts run once: they take minutes, which no busy moment changes by much."""
ROUNDS = 3
ROOM = 6 * 2**30
"""What a text of 32,768 tokens may take."""
LARGEST_PART = 0.7
"""All weights are asked for only where they take less of the free memory than this."""
OF_ONE_LAYER = 3
"""What eager attention holds of one layer's size beside the weights: scores, masked scores, and their softmax."""


def measure_long(cases: Sequence[tuple[Mapping[str, Any], Sequence[int]]] = CASES) -> Iterator[Figure]:
    """Queries and keys kept; then one row of rollout, and rollout with tracing, against the bare forward pass."""
    for size, lengths in cases:
        for length in lengths:
            yield from _measure_time(size, length)
            yield from _measure_memory(size, length)


def _measure_time(size: Mapping[str, Any], length: int) -> Iterator[Figure]:
    model, ids = _made(size, length)
    record = _recorded(model, ids)
    work = {
        "forward": lambda: _forward(model, ids),
        "kept": lambda: _recorded(model, ids),
        "one row": lambda: rolled_down(record, "mean", 0.5, record.readout, range(record.shape[0])),
        "all rows": lambda: _all_rows(record),
    }
    if length <= TOO_LONG:
        work["all weights"] = lambda: _all_weights(model, ids)
    with torch.no_grad():
        seconds = taking_turns(work, ROUNDS) if length <= TOO_LONG else seconds_by_turns(work, 1)
    case, forward = _case(size, length), seconds["forward"]
    yield share(f"one row of rollout, {case}", "forward pass", seconds["one row"], forward, 0.4)
    yield share(f"rollout, tracing and raw, {case}", "forward pass", seconds["all rows"], forward, 1.0)
    yield share(f"the forward pass with vectors kept, {case}", "forward pass", seconds["kept"], forward, 1.5)
    if "all weights" in seconds:
        ours, what = seconds["kept"] + seconds["all rows"], "recorded, with rollout, tracing and raw"
        yield faster(f"{what}, {case}", "all weights", ours, seconds["all weights"], None)


def _measure_memory(size: Mapping[str, Any], length: int) -> Iterator[Figure]:
    """Peaks over that of a forward pass alone: beside the vectors that must be kept, and beside all weights."""
    case, forward = _case(size, length), _peak("forward", size, length)
    ours = _peak("recorded", size, length)
    width = size["hidden_size"] // size["num_attention_heads"]
    # queries, keys of groups, and a normalizer for each query
    numbers = size["num_attention_heads"] * (width + 1) + size["num_key_value_heads"] * width
    vectors = 4.0 * size["num_hidden_layers"] * length * numbers
    yield share(f"peak over the forward pass, {case}", "the vectors", ours - forward, vectors, 1.5, unit="B")
    if length == max(CASES[-1][1]):
        yield share(f"peak of all, {case}", "6 GB", ours, ROOM, 1.0, unit="B")
    weights = _weight_bytes(size, length)
    try:
        every = _peak("all weights", size, length) - forward
    except (BadInput, BrokenProcessPool):
        note = f"all weights do not fit: they are {weights:.3g} B by themselves"
        yield faster(f"peak over the forward pass, {case}", "all weights", ours - forward, weights, None, note)
        return
    yield faster(f"peak over the forward pass, {case}", "all weights", ours - forward, every, None)


def _case(size: Mapping[str, Any], length: int) -> str:
    return f"{length:,} tokens, {size['num_hidden_layers']} x {size['num_attention_heads']} heads"


def _peak(name: str, size: Mapping[str, Any], length: int) -> float:
    """The most bytes that a process of its own ever holds while it does this."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_peak_here, name, dict(size), length, torch.get_num_threads()).result()


def _peak_here(name: str, size: dict[str, Any], length: int, threads: int) -> float:
    torch.set_num_threads(threads)
    model, ids = _made(size, length)
    with torch.no_grad():
        if name == "forward":
            _forward(model, ids)
        elif name == "recorded":
            _all_rows(_recorded(model, ids))
        else:
            _refuse_what_does_not_fit(size, length)
            _all_weights(model, ids)
    if CLEAR_PEAK.exists():  # on Linux a process begins with the largest size of its parent as its own in getrusage
        return float(held_now("VmHWM"))
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _refuse_what_does_not_fit(size: Mapping[str, Any], length: int) -> None:
    """A process that asks for too much is killed, and others with it."""
    free = available_bytes()
    needed = _weight_bytes(size, length) * (1 + OF_ONE_LAYER / size["num_hidden_layers"])
    if free is not None and needed > LARGEST_PART * free:
        raise BadInput("All weights do not fit.")


def _weight_bytes(size: Mapping[str, Any], length: int) -> float:
    return float(4 * size["num_hidden_layers"] * size["num_attention_heads"] * length**2)


def _made(size: Mapping[str, Any], length: int) -> tuple[LlamaModel, torch.Tensor]:
    torch.manual_seed(0)
    model = LlamaModel(LlamaConfig(**size)).eval()
    draw = torch.Generator().manual_seed(0)
    return model, torch.randint(5, size["vocab_size"], (1, length), generator=draw)


def _forward(model: LlamaModel, ids: torch.Tensor) -> object:
    return model(input_ids=ids, use_cache=False)


def _recorded(model: LlamaModel, ids: torch.Tensor) -> VectorRecord:
    collector = VectorCollector(model, "decoder", values=False, dtype=torch.float32)
    with torch.no_grad(), watch_vectors(model, collector) as run:
        run(input_ids=ids, use_cache=False)
    tokens = tuple(map(str, range(ids.shape[1])))
    readout = torch.zeros(len(tokens))
    readout[-1] = 1
    return VectorRecord(
        **collector.fields(), query_tokens=tokens, key_tokens=tokens, stack="decoder", causal=True, readout=readout
    )


def _all_rows(record: VectorRecord) -> object:
    """Rollout and tracing of the read-out, by one sweep, and its row of raw attention."""
    return sweep_down(record), raw_row(record, "mean", record.shape[0] - 1, record.readout)


def _all_weights(model: LlamaModel, ids: torch.Tensor) -> object:
    """How Inseq 0.7.1 and BertViz 1.4.1 come to attention: eager, with all weights of all layers kept.

    Inseq loads with `attn_implementation="eager"`, asks for `output_attentions` and then stacks them, which takes them
    once more; BertViz draws what such a run has returned. What both have in common is measured: the least of it.
    """
    with evaluation_mode(model):
        before = model.config._attn_implementation  # noqa: SLF001 -- as transformers has it
        model.set_attn_implementation("eager")
        try:
            return cast(Any, model(input_ids=ids, use_cache=False, output_attentions=True)).attentions
        finally:
            model.set_attn_implementation(before)
