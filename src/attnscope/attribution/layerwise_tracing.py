"""Layer-wise attention tracing: the read-out's attention handed down, head by head, to the input tokens."""

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, TokenScores, VectorRecord
from ..record.schema import checked
from ..record.scores import scores_of
from .heads import lean_to_first, refuse_cross, square_weights
from .without_matrix import sweep_once


def trace_down(
    weights: Float[Tensor, "layer head token token"], readout: Float[Tensor, " token"]
) -> Float[Tensor, "layer head token"]:
    """What each head holds at each layer: A^l = A^{l+1} alpha^l, the same head all the way down (Eq. 8, 10)."""
    held = readout.expand(weights.shape[1], -1)
    layers = []
    for layer in reversed(weights.unbind()):
        held = torch.einsum("hq,hqk->hk", held, layer)
        layers.append(held)
    return torch.stack(layers[::-1])


@checked
def layerwise_tracing(record: AttentionRecord, normalize: str | None = None) -> TokenScores:
    """How much of the read-out's attention each input token has gathered when it has been traced down every layer.

    Wu, Nguyen & Ong 2020, Eq. 8, 10 and 11: every head starts from the read-out (their local attention alpha^c) and
    passes it down by its own weights, row vector times matrix; a token's score is the sum over heads, so scores sum to
    the number of heads. Our `per_head[0]` is their A^1, on the input tokens. `normalize="softmax"` is the paper's last
    step; it depends on the length of the text. Residuals, values and feed-forward layers have no part in it.
    """
    if normalize not in (None, "softmax"):
        raise BadInput(f'normalize is None or "softmax" here, not {normalize!r}.')
    if isinstance(record, VectorRecord):
        refuse_cross(record)
        per_head = sweep_once(record)[1]
    else:
        per_head = trace_down(square_weights(record), record.readout)
    scores = per_head[0].sum(0)
    return scores_of(
        record,
        "layerwise_tracing",
        scores if normalize is None else scores.softmax(0),
        compute_per_head=lambda: per_head,
        warnings=lean_to_first(record, scores),
    )
