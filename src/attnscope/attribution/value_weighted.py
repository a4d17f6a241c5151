"""Value-weighted attention: a weight counts by how much it carries."""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from ..record import AttentionRecord, TokenScores, VectorRecord
from ..record.schema import checked
from ..record.scores import scores_of
from .effective import values_of
from .heads import Heads, checked_layer, pooled_heads
from .without_matrix import carried_lengths, scores_by_rows


def carry(
    weights: Float[Tensor, "layer head query key"], values: Float[Tensor, "layer head key model_width"]
) -> Float[Tensor, "layer head query key"]:
    """The norm of what each key adds to each query: ||alpha f(x)|| = alpha ||f(x)||, f(x) the value after W_O."""
    lengths: Float[Tensor, "layer head key"] = torch.linalg.vector_norm(values, dim=-1)
    return weights * lengths.unsqueeze(-2)


@checked
def value_weighted(record: AttentionRecord, heads: Heads = "mean", layer: int = -1) -> TokenScores:
    """Attention of one layer times the norm of the transformed value, from the read-out, heads pooled.

    Kobayashi et al. 2020 (Attention is Not Only a Weight), Eq. 3: a large weight on a small vector moves little. Rows
    are in the units of the residual stream, and so do not sum to one.
    """
    layer = checked_layer(record, layer)
    if isinstance(record, VectorRecord):
        row = partial(carried_lengths, record, heads)
        return scores_by_rows(record, "value_weighted", row, row(layer, record.readout))
    weights, values = record.weights, values_of(record)
    return scores_of(
        record,
        "value_weighted",
        record.readout @ pooled_heads(carry(weights[[layer]], values[[layer]]), heads)[0],
        compute_map=lambda: pooled_heads(carry(weights, values), heads),
        compute_row=lambda layer, query: pooled_heads(carry(weights[[layer]], values[[layer]]), heads)[0, query],
    )
