"""Effective attention: the part of each row that reaches the output at all."""

from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, TokenScores, VectorRecord
from ..record.schema import checked
from ..record.scores import scores_of
from ..record.vectors import visible
from .heads import Heads, checked_layer, pooled_heads, square_weights, visible_keys
from .rerunning import say_lacking
from .without_matrix import carried_row, effective_basis, rows_of_some, scores_by_rows

NO_VALUES = "This needs the values of each head: take the record with model.record(text, values=True)."
ROUNDING = torch.finfo(torch.float32).eps
"""Values were computed in float32: what lies below its rounding is no direction of theirs."""


def effective_weights(record: AttentionRecord) -> Float[Tensor, "layer head query key"]:
    """Each row projected off the left null space of [V W_O, 1], over the keys its query may see.

    What lies in that null space changes neither the head's output nor the row's sum, so a row's effective part is
    all that can be told from what the head does. Rows keep their sum; entries may be negative.
    """
    everyone = range(len(record.query_tokens))
    return torch.stack([effective_rows(record, layer, everyone) for layer in range(len(record.layers))])


def effective_rows(record: AttentionRecord, layer: int, queries: Sequence[int]) -> Float[Tensor, "head query key"]:
    """The same for some queries of one layer, by its place."""
    values, asking = values_of(record)[layer].double(), list(queries)
    weights, seen = record.weights[layer][:, asking].double(), visible_keys(record)[layer][asking]
    return _effective(values, weights, seen)


def effective_of(record: AttentionRecord, queries: Sequence[int]) -> Float[Tensor, "query key"]:
    """The effective rows of some queries of the last layer, heads averaged, of any record."""
    top = len(record.layers) - 1
    if not isinstance(record, VectorRecord):
        return effective_rows(record, top, queries).mean(0)
    vectors, asked = record.layer(top), list(queries)
    weights = rows_of_some(record, top, asked).double()
    return _effective(effective_basis(record, top), weights, visible(vectors, asked)).mean(0)


def effective_row(
    record: VectorRecord, heads: Heads, layer: int, row: Float[Tensor, " query"]
) -> Float[Tensor, " key"]:
    """A row times the effective weights of one layer, heads pooled, of a record of vectors.

    Where every query sees every key all rows are projected alike, so that their sum is, too.
    """
    vectors, read = record.layer(layer), row.nonzero().flatten().tolist()
    if vectors.sees_all:
        weights, seen = carried_row(record, layer, row).unsqueeze(1), torch.ones(1, vectors.shape[2], dtype=torch.bool)
        shares = torch.ones(1, dtype=torch.float64)
    else:
        weights, seen, shares = rows_of_some(record, layer, read), visible(vectors, read), row[read].double()
    found = _effective(effective_basis(record, layer), weights.double(), seen)
    return shares @ pooled_heads(found.unsqueeze(0), heads)[0]


def _effective(
    values: Float[Tensor, "head key width"],
    weights: Float[Tensor, "head query key"],
    seen: Bool[Tensor, "query key"],
) -> Float[Tensor, "head query key"]:
    # one basis per head of what its values span: at most head width + 1 columns, however wide the model is
    spans = _columns(torch.cat([values, torch.ones(*values.shape[:2], 1, dtype=torch.float64)], -1))
    return torch.stack([_project(rows, span, seen) for rows, span in zip(weights, spans, strict=True)])


def _columns(matrices: Float[Tensor, "head row column"]) -> list[Float[Tensor, "row rank"]]:
    """An orthonormal basis of what the columns of each matrix span.

    By the eigenvectors of the smaller Gram matrix, in float64 and many times quicker than singular values.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    squares, vectors = torch.linalg.eigh(matrices.mT @ matrices if tall else matrices @ matrices.mT)
    kept = squares > squares.amax(-1, keepdim=True) * (max(matrices.shape[-2:]) * ROUNDING) ** 2
    bases = []
    for matrix, square, vector, keep in zip(matrices, squares, vectors, kept, strict=True):
        bases.append(matrix @ vector[:, keep] / square[keep].sqrt() if tall else vector[:, keep])
    return bases


def _project(
    rows: Float[Tensor, "query key"], span: Float[Tensor, "key rank"], seen: Bool[Tensor, "query key"]
) -> Float[Tensor, "query key"]:
    """Each row projected onto what the columns of the span are over the keys it sees, which are neighbours.

    With C the rows of the span that a query sees, the projection is C (C'C)⁺ C': the Gram matrices C'C of all queries
    are differences of sums from the first key on.
    """
    patterns, pattern_of = seen.unique(dim=0, return_inverse=True)
    counts, firsts = patterns.sum(-1), patterns.int().argmax(-1)
    rank, tolerance = span.shape[1], len(span) * ROUNDING
    sums = torch.cat([torch.zeros(1, rank, rank, dtype=span.dtype), (span[:, :, None] * span[:, None, :]).cumsum(0)])
    # a row over independent keys is its own projection, and some of independent keys are independent
    own = torch.zeros(len(patterns), dtype=torch.bool)
    for first in firsts.unique().tolist():
        keys = span[first : first + rank]
        own |= (firsts == first) & (counts <= len(keys)) & _inverses(keys[None] @ keys.mT, tolerance)[1]
    inverses = torch.zeros(len(patterns), rank, rank, dtype=span.dtype)
    inverses[~own] = _pseudo_inverses((sums[firsts + counts] - sums[firsts])[~own], tolerance)
    visible = rows * seen
    coordinates = torch.einsum("qr,qrs->qs", visible @ span, inverses[pattern_of])
    return torch.where(own[pattern_of].unsqueeze(-1), visible, coordinates @ span.mT * seen)


def _pseudo_inverses(grams: Float[Tensor, "pattern rank rank"], tolerance: float) -> Float[Tensor, "pattern rank rank"]:
    """The pseudo-inverse of each Gram matrix of columns that are no longer than one."""
    inverses, sound = _inverses(grams, tolerance)
    squares, vectors = torch.linalg.eigh(grams[~sound])
    kept = squares > squares.amax(-1, keepdim=True) * tolerance**2
    inverses[~sound] = (vectors * torch.where(kept, 1 / squares, 0.0).unsqueeze(-2)) @ vectors.mT
    return inverses


def _inverses(
    grams: Float[Tensor, "pattern rank rank"], tolerance: float
) -> tuple[Float[Tensor, "pattern rank rank"], Bool[Tensor, " pattern"]]:
    """The inverse of each Gram matrix, and which of them surely have one: no singular value below the tolerance."""
    lower, failed = torch.linalg.cholesky_ex(grams)
    halves = torch.linalg.solve_triangular(lower, torch.eye(grams.shape[-1], dtype=grams.dtype), upper=False)
    # the length of the inverse is at least one over the smallest singular value
    sound = (failed == 0) & (torch.linalg.matrix_norm(halves) * tolerance < 1)
    return halves.mT @ halves, sound


def identifiability(record: AttentionRecord, layer: int) -> tuple[str, ...]:
    """A warning where weights cannot be told from what a head does: more tokens than the head is wide, plus one."""
    values = effective_basis(record, layer) if isinstance(record, VectorRecord) else values_of(record)[layer].double()
    width = max(span.shape[1] for span in _columns(values))
    if len(record.key_tokens) <= width + 1:
        return ()
    warning = (
        f"with {len(record.key_tokens)} tokens and heads of width {width} many weights give the same output, so raw"
        " weights are not identifiable; effective attention is what they share"
    )
    return (warning,)


def values_of(record: AttentionRecord) -> Float[Tensor, "layer head key model_width"]:
    """The values of each head, or one sentence about how to get them."""
    if record.values is None:
        raise BadInput(say_lacking(record, NO_VALUES))
    return record.values


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
    if isinstance(record, VectorRecord):
        row = partial(effective_row, record, heads)
        return scores_by_rows(record, "effective", row, row(layer, record.readout), identifiability(record, layer))
    read = record.readout.nonzero().flatten().tolist()
    rows = pooled_heads(effective_rows(record, layer, read).unsqueeze(0), heads)[0]
    return scores_of(
        record,
        "effective",
        record.readout[read].double() @ rows,
        compute_map=lambda: pooled_heads(effective_weights(record), heads),
        compute_row=lambda layer, query: pooled_heads(effective_rows(record, layer, [query]).unsqueeze(0), heads)[0, 0],
        warnings=identifiability(record, layer),
    )
