"""Raw attention: where the read-out looks in one layer, without residual or the layers below."""

from jaxtyping import Float
from torch import Tensor

from ..record import AttentionRecord, TokenScores, VectorRecord
from ..record.schema import checked
from ..record.scores import scores_of
from .heads import Heads, checked_layer, normalize_scores, pooled_heads
from .without_matrix import raw_row, scores_without_matrix


@checked
def raw(record: AttentionRecord, heads: Heads = "mean", layer: int = -1, normalize: str | None = None) -> TokenScores:
    """Attention of one layer (the last by default) from the read-out, heads pooled.

    Abnar & Zuidema 2020, section 3, "raw attention": readout @ W_l with W_l the pooled weights of layer l.
    `normalize="receptive_field"` corrects the lean of decoders to early tokens.
    """
    chosen = checked_layer(record, layer)
    if isinstance(record, VectorRecord):
        return scores_without_matrix(
            record, "raw", lambda by, layer, row: raw_row(record, heads, layer, row, by), normalize, layer=chosen
        )

    def of(weights: Float[Tensor, "layer head query key"]) -> TokenScores:
        return scores_of(
            record,
            "raw",
            record.readout.to(weights.dtype) @ pooled_heads(weights[[chosen]], heads)[0],
            compute_map=lambda: pooled_heads(weights, heads),
            compute_row=lambda layer, query: pooled_heads(weights[[layer]], heads)[0, query],
        )

    return normalize_scores(of(record.weights), record, normalize, of)
