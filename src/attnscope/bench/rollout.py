"""Rollout beside the forward pass that gave its attention."""

from collections.abc import Iterator

import torch
from transformers import BertConfig, BertModel

from ..attribution import blank_out
from ..attribution.heads import pooled_maps
from ..attribution.rollout import rolled_out, rolled_row
from ..capture import load
from .figure import Figure, faster, share, taking_turns

LAYERS, HEADS, TOKENS = 12, 12, 512


def measure_rollout() -> Iterator[Figure]:
    """All rows and one row at BERT-base size and 512 tokens, against a bare forward pass."""
    model = BertModel(BertConfig(num_hidden_layers=LAYERS, num_attention_heads=HEADS)).eval()
    ids = torch.randint(5, 1000, (1, TOKENS), generator=torch.Generator().manual_seed(0))
    weights = torch.randn(LAYERS, HEADS, TOKENS, TOKENS, generator=torch.Generator().manual_seed(0)).softmax(-1)
    means = pooled_maps(weights, "mean")
    readout = torch.eye(TOKENS)[0]
    with torch.no_grad():
        seconds = taking_turns(
            {
                "forward": lambda: model(ids),
                "all rows": lambda: rolled_out(means, 0.5, 0.5),
                "one row": lambda: rolled_row(readout, means, 0.5),
                "head mean": lambda: pooled_maps(weights, "mean"),
            }
        )
    case = f"{LAYERS} x {HEADS} x {TOKENS}"
    yield share(f"all rows, {case}", "forward pass", seconds["all rows"], seconds["forward"], 0.10, "from head means")
    yield share(f"one row, {case}", "forward pass", seconds["one row"], seconds["forward"], 0.005, "from head means")
    yield share(
        f"mean over heads, {case}", "forward pass", seconds["head mean"], seconds["forward"], 0.10, "once a record"
    )


# Blank-out in batches against one run after another.


TEXT = "the keys to the cabinet near the old doors that the tall man with the dogs often opens"


def measure_blank_out() -> Iterator[Figure]:
    """The shipped model, one sentence, every token blanked in turn."""
    model = load("demo")
    record = model.record(TEXT)
    seconds = taking_turns(
        {
            "batched": lambda: blank_out(record, model),
            "one by one": lambda: blank_out(record, model, batch_size=1),
        }
    )
    yield faster(f"{len(record.tokens)} tokens, demo model", "one by one", seconds["batched"], seconds["one by one"], 2)
