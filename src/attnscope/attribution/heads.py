"""From heads to one map a layer, with or without the residual connection."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord

Heads = str | int | Sequence[int]
"""How heads become one map: "mean" or "max" over all, one head, or the mean over some."""


def pooled_heads(weights: Float[Tensor, "layer head query key"], heads: Heads) -> Float[Tensor, "layer query key"]:
    """One map per layer: the mean or largest over all heads, one head, or the mean over some."""
    if heads == "mean":
        return weights.mean(1)
    if heads == "max":
        return weights.amax(1)
    chosen = [heads] if isinstance(heads, int) else heads
    count = weights.shape[1]
    if isinstance(chosen, str) or not chosen or not all(-count <= head < count for head in chosen):
        raise BadInput(f"heads={heads!r} is not mean, max, or heads between 0 and {count - 1}.")
    return weights[:, list(chosen)].mean(1)


def with_residual(maps: Float[Tensor, "*batch token token"], residual: float) -> Float[Tensor, "*batch token token"]:
    """A = (1 - r) W + r I: attention beside the residual connection (abnar2020, section 3)."""
    if not 0 <= residual <= 1:
        raise BadInput(f"residual={residual} is not a share between 0 and 1.")
    return (1 - residual) * maps + residual * torch.eye(maps.shape[-1], dtype=maps.dtype)


def pooled_maps(weights: Float[Tensor, "layer head token token"], heads: Heads) -> Float[Tensor, "layer token token"]:
    """One map per layer with rows that sum to one, as rollout and flow need them.

    The largest over heads sums to more than one, so its rows are brought back to one.
    """
    maps = pooled_heads(weights, heads)
    if heads != "max":
        return maps
    sums = maps.sum(-1, keepdim=True)
    return maps / sums.masked_fill(sums == 0, 1.0)


def square_weights(record: AttentionRecord) -> Float[Tensor, "layer head token token"]:
    """The weights of a self-attention record, or one sentence about why layers cannot be joined."""
    if record.stack == "cross":
        raise BadInput(
            "Cross-attention goes from one text to another, so its layers cannot be joined: use raw, or a record of the"
            " encoder or decoder stack."
        )
    return record.weights


def checked_layer(record: AttentionRecord, layer: int) -> int:
    """A layer counted from zero, given from either end."""
    count = len(record.layers)
    if not -count <= layer < count:
        raise BadInput(f"There is no layer {layer}: this record has {count}, counted from 0.")
    return layer % count


def checked_positions(record: AttentionRecord, positions: Sequence[int] | None, axis: str) -> list[int]:
    """Layers or queries counted from zero; all of them for None."""
    count = len(record.layers) if axis == "layer" else len(record.query_tokens)
    if positions is None:
        return list(range(count))
    for position in positions:
        if not -count <= position < count:
            raise BadInput(f"There is no {axis} {position}: this record has {count}, counted from 0.")
    return sorted({position % count for position in positions})
