"""Attention rollout: attention multiplied through the layers, as if values were only ever passed on and mixed."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, TokenScores, VectorRecord
from ..record.schema import checked
from ..record.scores import scores_of
from .effective import chosen_attention
from .heads import (
    Heads,
    checked_layer,
    checked_positions,
    lean_to_first,
    normalize_scores,
    pooled_maps,
    refuse_cross,
    with_residual,
)
from .without_matrix import rolled_down, rolled_heads, rolled_rows, scores_without_matrix, sweep_once


def rolled_out(
    maps: Float[Tensor, "layer token token"], mixed: float, carried: float, start_layer: int = 0
) -> Float[Tensor, "layer token token"]:
    """R_l = (mixed W_l + carried I) R_{l-1} for every layer, with R = I below `start_layer` (abnar2020, Eq. 1).

    The identity is never multiplied by: `carried` of what came before is added to the product.
    """
    untouched = torch.eye(maps.shape[-1], dtype=maps.dtype)
    rolled = [untouched] * start_layer
    for layer, weights in enumerate(maps[start_layer:]):
        if layer == 0:
            rolled.append(mixed * weights + carried * untouched)
        else:
            rolled.append(torch.addmm(rolled[-1], weights, rolled[-1], beta=carried, alpha=mixed))
    return torch.stack(rolled)


def rolled_row(
    row: Float[Tensor, " token"], maps: Float[Tensor, "layer token token"], residual: float
) -> Float[Tensor, " token"]:
    """One row of the rollout by vector-matrix products, from the top layer down: maps are still without residual."""
    for weights in reversed(maps.unbind()):
        row = (1 - residual) * (row @ weights) + residual * row
    return row


@checked
def rollout(
    record: AttentionRecord,
    heads: Heads = "mean",
    residual: float = 0.5,
    start_layer: int = 0,
    queries: Sequence[int] | None = None,
    normalize: str | None = None,
    attention: str = "weights",
) -> TokenScores:
    """Which tokens reach the read-out if every layer only mixes: A = (1-r) W + r I, multiplied through the layers.

    Abnar & Zuidema 2020, Eq. 1: our `map[l]` is their Ã(l_i), `residual` r the share of the residual connection. Per
    head (appendix A.1), layer l uses the head's own map and the layers below are pooled; the mean over heads is the
    rollout. `queries` computes only these rows of the map (the others are NaN), of a record of vectors all in one
    sweep. `attention="effective"` rolls out effective attention; `normalize="receptive_field"` corrects the lean of
    decoders to early tokens.
    """
    start = checked_layer(record, start_layer)
    wanted = None if queries is None else checked_positions(record, queries, "query")
    with_residual(torch.zeros(1, 1), residual)  # refuse a share that is none before anything is computed
    if isinstance(record, VectorRecord):
        refuse_cross(record)
        if attention != "weights":
            raise BadInput(
                "Rollout of effective attention needs whole maps, which a record of vectors does without: roll out its"
                " weights, or those of record.full() where it fits."
            )
        is_plain = (heads, residual, start) == ("mean", 0.5, 0)
        return scores_without_matrix(
            record,
            "rollout",
            lambda by, layer, row: rolled_down(record, heads, residual, row, range(start, layer + 1), by),
            normalize,
            compute_per_head=lambda: rolled_heads(record, heads, residual, start),
            known=sweep_once(record)[0] if is_plain and normalize is None else None,
            compute_rows=None if not wanted else lambda by: rolled_rows(record, heads, residual, start, wanted, by),
            queries=wanted or (),
        )

    def of(weights: Float[Tensor, "layer head token token"]) -> TokenScores:
        pooled = pooled_maps(weights, heads)
        readout = record.readout.to(pooled.dtype)

        def row(layer: int, query: int) -> Float[Tensor, " token"]:
            one = torch.eye(pooled.shape[-1], dtype=pooled.dtype)[query]
            return rolled_row(one, pooled[start : layer + 1], residual)

        def every_row() -> Float[Tensor, "layer token token"]:
            return rolled_out(pooled, 1 - residual, residual, start)

        def wanted_rows() -> Float[Tensor, "layer token token"]:
            rows = torch.full_like(pooled, torch.nan)
            for layer in range(len(pooled)):
                for query in wanted or ():
                    rows[layer, query] = row(layer, query)
            return rows

        def per_head() -> Float[Tensor, "layer head token"]:
            mixed = with_residual(weights, residual)
            below = torch.cat([torch.eye(pooled.shape[-1], dtype=pooled.dtype)[None], every_row()[:-1]])
            return torch.einsum("q,lhqt,ltk->lhk", readout, mixed, below)

        scores = rolled_row(readout, pooled[start:], residual)
        return scores_of(
            record,
            "rollout",
            scores,
            warnings=lean_to_first(record, scores),
            compute_map=every_row if wanted is None else wanted_rows,
            compute_row=row,
            compute_per_head=per_head,
        )

    return normalize_scores(of(chosen_attention(record, attention)), record, normalize, of)
