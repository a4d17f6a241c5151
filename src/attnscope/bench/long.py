"""Long texts without the matrix, beside the forward pass alone and beside the peers' way to attention: all weights."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from transformers import LlamaConfig, LlamaModel

from ..attribution.without_matrix import rolled_down, sweep_down
from ..capture.vectors import VectorCollector, watch_vectors
from ..capture.watching import evaluation_mode
from ..record import VectorRecord
from .figure import Figure, faster, share, taking_turns

SIZE: dict[str, Any] = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 1000,
    "max_position_embeddings": 8192,
}
"""SmolLM2-135M, without its vocabulary: the answer is no part of what is measured."""
LENGTHS = (512, 1024, 4096)
ALL_WEIGHTS = 1024
"""Up to here all weights fit beside the rest: 1.1 GB."""
ROUNDS = 3


def measure_long(lengths: Sequence[int] = LENGTHS, size: dict[str, Any] = SIZE) -> Iterator[Figure]:
    """Queries and keys kept; then one row of rollout, and rollout with tracing, against the bare forward pass."""
    model = LlamaModel(LlamaConfig(**size)).eval()
    draw = torch.Generator().manual_seed(0)
    for length in lengths:
        ids = torch.randint(5, size["vocab_size"], (1, length), generator=draw)
        record = _recorded(model, ids)

        def one_row(record: VectorRecord = record) -> object:
            return rolled_down(record, "mean", 0.5, record.readout, range(record.shape[0]))

        work = {
            "forward": lambda ids=ids: _forward(model, ids),
            "kept": lambda ids=ids: _recorded(model, ids),
            "one row": one_row,
            "both": lambda record=record: sweep_down(record),
        }
        if length <= ALL_WEIGHTS:
            work["all weights"] = lambda ids=ids: _all_weights(model, ids)
        with torch.no_grad():
            seconds = taking_turns(work, ROUNDS)
        case = f"{length:,} tokens, {size['num_hidden_layers']} x {size['num_attention_heads']} heads"
        forward = seconds["forward"]
        yield share(f"one row of rollout, {case}", "forward pass", seconds["one row"], forward, 0.4)
        yield share(f"rollout and tracing, {case}", "forward pass", seconds["both"], forward, 1.0)
        yield share(f"the forward pass with vectors kept, {case}", "forward pass", seconds["kept"], forward, 1.5)
        if "all weights" in seconds:
            ours = seconds["kept"] + seconds["both"]
            yield faster(
                f"recorded, with rollout and tracing, {case}", "all weights", ours, seconds["all weights"], None
            )


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


def _all_weights(model: LlamaModel, ids: torch.Tensor) -> object:
    """How Inseq and BertViz come to attention: eager, with all weights of all layers kept."""
    with evaluation_mode(model):
        before = model.config._attn_implementation  # noqa: SLF001 -- as transformers has it
        model.set_attn_implementation("eager")
        try:
            return cast(Any, model(input_ids=ids, use_cache=False, output_attentions=True)).attentions
        finally:
            model.set_attn_implementation(before)
