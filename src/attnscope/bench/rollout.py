"""Rollout beside the forward pass that gave its attention."""

from collections.abc import Iterator

import torch
from transformers import BertConfig, BertModel

from ..attribution.heads import pooled_maps
from ..attribution.rollout import rolled_out, rolled_row
from .figure import Figure, share, taking_turns

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
