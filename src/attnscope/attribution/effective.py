"""Effective attention: the part of each row that reaches the output at all."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, TokenScores
from ..record.schema import checked
from ..record.scores import scores_of
from .heads import Heads, checked_layer, pooled_heads, square_weights
from .receptive_field import visible_keys

NO_VALUES = "This needs the values of each head: take the record with model.record(text, values=True)."


def effective_weights(record: AttentionRecord) -> Float[Tensor, "layer head query key"]:
    """Each row projected off the left null space of [V W_O, 1], over the keys its query may see.

    What lies in that null space changes neither the head's output nor the row's sum, so a row's effective part is
    all that can be told from what the head does. Rows keep their sum; entries may be negative.
    """
    if record.values is None:
        raise BadInput(NO_VALUES)
    visible = visible_keys(record)
    effective = torch.zeros(record.weights.shape, dtype=torch.float64)
    for layer, (weights, values) in enumerate(zip(record.weights.double(), record.values.double(), strict=True)):
        ones = torch.ones(*values.shape[:2], 1, dtype=torch.float64)
        seen = torch.cat([values, ones], -1)
        # one basis per head of what its values span: at most head width + 1 columns, however wide the model is
        compact = _columns(seen)
        for queries, keys in _rows_that_see_alike(visible[layer]):
            span = _columns(compact[:, keys])
            effective[layer][:, queries[:, None], keys] = (weights[:, queries][..., keys] @ span) @ span.mT
    return effective


def _columns(matrices: Float[Tensor, "head row column"]) -> Float[Tensor, "head row rank"]:
    """An orthonormal basis of what the columns span; zeros stand where a head's rank is less than the largest."""
    left, singular, _ = torch.linalg.svd(matrices, full_matrices=False)
    # values were computed in float32: what lies below its rounding is no direction of theirs
    tolerance = singular.amax(-1, keepdim=True) * max(matrices.shape[-2:]) * torch.finfo(torch.float32).eps
    counts = singular > tolerance
    basis: Float[Tensor, "head row rank"] = (left * counts.unsqueeze(-2))[..., : int(counts.sum(-1).max())]
    return basis


def _rows_that_see_alike(visible: Bool[Tensor, "query key"]) -> list[tuple[Tensor, Tensor]]:
    """Queries grouped by the keys they see, as positions: one group where all see all, one for each query if causal."""
    patterns, group_of = visible.unique(dim=0, return_inverse=True)
    return [(torch.where(group_of == group)[0], torch.where(pattern)[0]) for group, pattern in enumerate(patterns)]


def identifiability(record: AttentionRecord) -> tuple[str, ...]:
    """A warning where weights cannot be told from what a head does: more tokens than the head is wide, plus one."""
    if record.values is None:
        raise BadInput(NO_VALUES)
    rank = int(torch.linalg.matrix_rank(record.values).max()) + 1
    if len(record.key_tokens) <= rank:
        return ()
    warning = (
        f"with {len(record.key_tokens)} tokens and heads of width {rank - 1} many weights give the same output, so raw"
        " weights are not identifiable; effective attention is what they share"
    )
    return (warning,)


def chosen_attention(record: AttentionRecord, attention: str) -> Float[Tensor, "layer head token token"]:
    """The maps a method joins: the weights as they are, or effective attention."""
    if attention == "weights":
        return square_weights(record)
    if attention == "effective":
        square_weights(record)
        return effective_weights(record)
    raise BadInput(f'attention is "weights" or "effective", not {attention!r}.')


@checked
def effective(record: AttentionRecord, heads: Heads = "mean", layer: int = -1) -> TokenScores:
    """Effective attention of one layer from the read-out, heads pooled.

    Brunner et al. 2020 (On Identifiability in Transformers), with the row sum kept as Sun & Marasović 2021 propose: our
    `values` are their V W_O. Abnar & Zuidema 2020 (section 5) name it as the next step.
    """
    layer = checked_layer(record, layer)
    weights = effective_weights(record)
    return scores_of(
        record,
        "effective",
        record.readout.double() @ pooled_heads(weights[[layer]], heads)[0],
        compute_map=lambda: pooled_heads(weights, heads),
        compute_row=lambda layer, query: pooled_heads(weights[[layer]], heads)[0, query],
        warnings=identifiability(record),
    )
