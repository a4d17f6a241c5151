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

ONLY_LAST = (
    "without residual connections only the decoder's last cross-attention leads to the source: its other layers and its"
    " attention to what it had written have no part in this, and rollout counts them"
)


def trace_down(
    weights: Float[Tensor, "layer head token token"], start: Float[Tensor, "*of_heads token"]
) -> Float[Tensor, "layer head token"]:
    """What each head holds at each layer: A^l = A^{l+1} alpha^l, the same head all the way down (Eq. 8, 10).

    All heads start alike, from the read-out, or each has a start of its own.
    """
    held = start.expand(weights.shape[1], -1)
    layers = []
    for layer in reversed(weights.unbind()):
        held = torch.einsum("hq,hqk->hk", held, layer)
        layers.append(held)
    return torch.stack(layers[::-1])


def trace_to_source(record: AttentionRecord) -> Float[Tensor, "layer head key"]:
    """The same through the stacks of an encoder-decoder: A = alpha^c X_L, traced down the encoder; its layers, then A.

    X_L is the decoder's last cross-attention. What leaves a layer of the decoder is what its cross-attention gives,
    which comes from the encoder, and what the residual connection carries past it. Tracing has no residuals, so it
    never comes to the decoder's self-attention or to its other layers.
    """
    assert record.encoder_weights is not None  # noqa: S101 - the caller looked
    above, below = record.weights.shape[1], record.encoder_weights.shape[1]
    if above != below:
        raise BadInput(
            f"Tracing keeps to one head all the way down, and here {above} heads of the decoder stand over {below} of"
            ' the encoder: use rollout, or take the record with heads="mean".'
        )
    held = torch.einsum("q,hqk->hk", record.readout, record.weights[-1])
    return torch.cat([trace_down(record.encoder_weights, held), held.unsqueeze(0)])


@checked
def layerwise_tracing(record: AttentionRecord, normalize: str | None = None) -> TokenScores:
    """How much of the read-out's attention each input token has gathered when it has been traced down every layer.

    Wu, Nguyen & Ong 2020, Eq. 8, 10 and 11: every head starts from the read-out (their local attention alpha^c) and
    passes it down by its own weights, row vector times matrix; a token's score is the sum over heads, so scores sum to
    the number of heads. Our `per_head[0]` is their A^1, on the input tokens. `normalize="softmax"` is the paper's last
    step; it depends on the length of the text. Residuals, values and feed-forward layers have no part in it.

    Of a record of all three stacks of an encoder-decoder, each head's row of the last cross-attention is traced down
    the encoder; without residuals there is no other way to the source (see `trace_to_source`).
    """
    if normalize not in (None, "softmax"):
        raise BadInput(f'normalize is None or "softmax" here, not {normalize!r}.')
    if isinstance(record, VectorRecord):
        refuse_cross(record)
        per_head = sweep_once(record)[1]
    elif record.has_all_stacks:
        per_head = trace_to_source(record)
    else:
        per_head = trace_down(square_weights(record), record.readout)
    scores = per_head[0].sum(0)
    return scores_of(
        record,
        "layerwise_tracing",
        scores if normalize is None else scores.softmax(0),
        compute_per_head=lambda: per_head,
        warnings=(ONLY_LAST,) if record.has_all_stacks else lean_to_first(record, scores),
    )
