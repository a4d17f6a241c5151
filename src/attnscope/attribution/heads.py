"""From heads to one map a layer, with or without the residual connection."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
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
    count = weights.shape[1]
    if isinstance(chosen, str) or not chosen or not all(-count <= head < count for head in chosen):
        raise BadInput(f"heads={heads!r} is not mean, max, or heads between 0 and {count - 1}.")
    return weights[:, list(chosen)].mean(1)


def with_residual(maps: Float[Tensor, "*batch token token"], residual: float) -> Float[Tensor, "*batch token token"]:
    """A = (1 - r) W + r I: attention beside the residual connection (abnar2020, section 3)."""
    if not 0 <= residual <= 1:
        raise BadInput(f"residual={residual} is not a share between 0 and 1.")
    return (1 - residual) * maps + residual * torch.eye(maps.shape[-1], dtype=maps.dtype)


def pooled_maps(weights: Float[Tensor, "layer head query key"], heads: Heads) -> Float[Tensor, "layer query key"]:
    """One map per layer with rows that sum to one, as rollout and flow need them.

    The largest over heads sums to more than one, so its rows are brought back to one.
    """
    maps = pooled_heads(weights, heads)
    if heads != "max":
        return maps
    sums = maps.sum(-1, keepdim=True)
    return maps / sums.masked_fill(sums == 0, 1.0)


def square_weights(record: AttentionRecord) -> Float[Tensor, "layer head token token"]:
    """The weights of a self-attention record."""
    refuse_cross(record)
    return record.weights


def refuse_cross(record: AttentionRecord) -> None:
    """One sentence about why layers of cross-attention cannot be joined."""
    if record.stack == "cross":
        raise BadInput(
            "Cross-attention goes from one text to another, so its layers cannot be joined by themselves: use raw, a"
            ' record of the encoder or decoder stack, or rollout of one with stack="all".'
        )


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


# Scores beside what even attention would give: the correction for tokens that merely have more readers.
# In a decoder an early token is read by all later ones, so attention, rollout and flow lean to it whatever the model
# does. The reference is the same method on even attention under the same mask. This is our reading: abnar2020
# (section 5) names the need and gives no formula.


SMALLEST_REFERENCE = 1e-6
ALL_ON_FIRST = 0.9


def visible_keys(record: AttentionRecord) -> Bool[Tensor, "layer query key"]:
    """Which keys each query may attend to: the band from the farthest key back to the farthest ahead, layer by layer.

    Told from the distances at which any head attends at all, so that a weight that underflows does not look masked, and
    sliding windows come out.
    """
    attended = (record.weights > 0).any(1)
    queries, keys = attended.shape[1:]
    if queries != keys:
        return torch.ones_like(attended)
    offset = torch.arange(queries).unsqueeze(1) - torch.arange(keys)
    back = torch.where(attended, offset, -queries).amax((1, 2)).reshape(-1, 1, 1)
    ahead = torch.where(attended, offset, queries).amin((1, 2)).reshape(-1, 1, 1)
    return (offset <= back) & (offset >= ahead)


def even_weights(record: AttentionRecord) -> Float[Tensor, "layer head query key"]:
    """Attention spread evenly over the visible keys, in float64; all heads alike, masked queries still empty."""
    visible = visible_keys(record).double()
    even = visible / visible.sum(-1, keepdim=True)
    even[:, torch.tensor(record.masked_queries)] = 0
    return even.unsqueeze(1).expand(-1, record.weights.shape[1], -1, -1)


def normalize_scores(
    scores: TokenScores,
    record: AttentionRecord,
    normalize: str | None,
    method: Callable[[Float[Tensor, "layer head query key"]], TokenScores],
) -> TokenScores:
    """The scores as they are, or over the reference that `method` gives on even attention (`"receptive_field"`)."""
    if normalize is None:
        return scores
    if normalize != "receptive_field":
        raise BadInput(f'normalize is None or "receptive_field" here, not {normalize!r}.')
    reference = method(even_weights(record))
    warnings: tuple[str, ...] = ()
    inside = reference.scores[reference.scores > 0]
    if bool((inside < SMALLEST_REFERENCE).any()):
        warning = f"even attention reaches some tokens with less than {SMALLEST_REFERENCE:g}: their scores are shaky"
        warnings = (*warnings, warning)
    whole, row = scores.compute_map, scores.compute_row
    return replace(
        scores,
        scores=over(scores.scores, reference.scores),
        compute_map=None if whole is None else lambda: over(whole(), reference.map),
        compute_row=None if row is None else lambda layer, query: over(row(layer, query), reference.at(query, layer)),
        compute_saturation=None,
        compute_per_head=None,
        warnings=warnings,
    )


def lean_to_first(record: AttentionRecord, scores: Float[Tensor, " key"]) -> tuple[str, ...]:
    """A warning where a decoder's scores are nearly all on its first token, which every later one can read."""
    if not record.causal or len(scores) < 2 or float(scores[0]) <= ALL_ON_FIRST * float(scores.sum()):
        return ()
    return (
        f"the first token takes {float(scores[0] / scores.sum()):.0%}, as sinks do in decoders: look at the others",
    )


def over(scores: Float[Tensor, "*rows key"], reference: Float[Tensor, "*rows key"]) -> Float[Tensor, "*rows key"]:
    """Scores divided by their reference, 0 outside its field, each row brought to a sum of one; NaN stays."""
    ratio = torch.where(reference <= 0, 0.0, scores.double() / reference.masked_fill(reference <= 0, 1.0))
    sums = ratio.sum(-1, keepdim=True)
    return ratio / sums.masked_fill(sums == 0, 1.0)
