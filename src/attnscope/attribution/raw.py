"""Raw attention: where the read-out looks in one layer, without residual or the layers below."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, TokenScores

Heads = str | int | Sequence[int]
"""How heads become one map: "mean" or "max" over all, one head, or the mean over some."""


def pooled_heads(weights: Float[Tensor, "layer head query key"], heads: Heads) -> Float[Tensor, "layer query key"]:
    """One map per layer: the mean or largest over all heads, one head, or the mean over some."""
    if heads == "mean":
        return weights.mean(1)
    if heads == "max":
        return weights.amax(1)
    chosen = [heads] if isinstance(heads, int) else heads
    if isinstance(chosen, str) or not all(-weights.shape[1] <= head < weights.shape[1] for head in chosen):
        raise BadInput(f"heads={heads!r} is not mean, max, or heads between 0 and {weights.shape[1] - 1}.")
    return weights[:, list(chosen)].mean(1)


def raw(record: AttentionRecord, heads: Heads = "mean", layer: int = -1) -> TokenScores:
    """Attention of one layer (the last by default) from the read-out, heads pooled.

    Abnar & Zuidema 2020, section 3, "raw attention": readout @ W_l with W_l the pooled weights of layer l.
    """
    if not -len(record.layers) <= layer < len(record.layers):
        raise BadInput(f"There is no layer {layer}: this record has {len(record.layers)}, counted from 0.")
    return TokenScores(
        method="raw",
        tokens=record.key_tokens,
        scores=record.readout @ pooled_heads(record.weights[[layer]], heads)[0],
        special=record.key_special,
        compute_map=lambda: pooled_heads(record.weights, heads),
    )
