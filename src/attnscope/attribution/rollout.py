"""Attention rollout: attention multiplied through the layers, as if values were only ever passed on and mixed."""

from collections.abc import Sequence
from functools import cache
from typing import Any

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


# Through the three stacks of an encoder-decoder: from an output token to the tokens of the source.


def rolled_over(
    encoder: Float[Tensor, "encoder_layer key key"],
    decoder: Float[Tensor, "layer query query"],
    cross: Float[Tensor, "layer query key"],
    residual: float,
) -> tuple[Float[Tensor, "layer query key"], Float[Tensor, "layer query query"]]:
    """What every query has of the source (S) and of the decoder's own prefix (P), behind every layer of the decoder.

    With E the rollout of the whole encoder, W_l and X_l a layer's attention to the prefix and to the encoder:
    S_l = (1-r) X_l E + r ((1-r) W_l + r I) S_{l-1}, from S = 0; P_l = r ((1-r) W_l + r I) P_{l-1}, from P = I.
    """
    put_out = rolled_out(encoder, 1 - residual, residual)[-1]
    source, prefix = torch.zeros_like(cross[0]), torch.eye(decoder.shape[-1], dtype=decoder.dtype)
    sources, prefixes = [], []
    for to_prefix, to_source in zip(decoder, cross, strict=True):
        source, prefix = ((1 - residual) * to_prefix @ before + residual * before for before in (source, prefix))
        source, prefix = (1 - residual) * to_source @ put_out + residual * source, residual * prefix
        sources.append(source)
        prefixes.append(prefix)
    return torch.stack(sources), torch.stack(prefixes)


def rolled_over_row(
    row: Float[Tensor, " query"],
    encoder: Float[Tensor, "encoder_layer key key"],
    decoder: Float[Tensor, "layer query query"],
    cross: Float[Tensor, "layer query key"],
    residual: float,
) -> tuple[Float[Tensor, " key"], Float[Tensor, " query"]]:
    """One row of both by vector-matrix products, from the top layer down: what leaves for the source is collected."""
    source = cross.new_zeros(cross.shape[-1])
    for to_prefix, to_source in zip(reversed(decoder.unbind()), reversed(cross.unbind()), strict=True):
        source = source + (1 - residual) * row @ to_source
        row = residual * ((1 - residual) * row @ to_prefix + residual * row)
    return rolled_row(source, encoder, residual), row


def kept_by_residuals(residual: float, layers: int) -> str:
    """The warning about what no rollout by weights can tell."""
    return (
        f"{residual**layers:.3g} of each row stays on what the decoder had written (scores.prefix), by the residual"
        " share and the number of layers alone: how much an answer owes to the source is not told by this"
    )


def rollout_to_source(
    record: AttentionRecord, heads: Heads, residual: float, wanted: Sequence[int] | None
) -> TokenScores:
    """The rollout of a record of all three stacks over the tokens of its source; `prefix` has the others."""
    assert record.encoder_weights is not None and record.decoder_weights is not None  # noqa: S101, PT018
    encoder, decoder, cross = (
        pooled_maps(weights, heads) for weights in (record.encoder_weights, record.decoder_weights, record.weights)
    )
    positions = torch.eye(len(record.query_tokens), dtype=cross.dtype)

    def row(layer: int, start: Float[Tensor, " query"]) -> tuple[Float[Tensor, " key"], Float[Tensor, " query"]]:
        return rolled_over_row(start, encoder, decoder[: layer + 1], cross[: layer + 1], residual)

    @cache
    def maps() -> tuple[Float[Tensor, "layer query key"], Float[Tensor, "layer query query"]]:
        if wanted is None:
            return rolled_over(encoder, decoder, cross, residual)
        sources, prefixes = torch.full_like(cross, torch.nan), torch.full_like(decoder, torch.nan)
        for layer in range(len(cross)):
            for query in wanted:
                sources[layer, query], prefixes[layer, query] = row(layer, positions[query])
        return sources, prefixes

    source, prefix = row(len(cross) - 1, record.readout.to(cross.dtype))
    return scores_of(
        record,
        "rollout",
        source,
        warnings=(kept_by_residuals(residual, len(cross)),),
        compute_map=lambda: maps()[0],
        compute_row=lambda layer, query: row(layer, positions[query])[0],
        prefix=TokenScores(
            method="rollout",
            tokens=record.query_tokens,
            scores=prefix,
            special=record.query_special,
            word_ids=record.query_word_ids,
            size=(len(record.layers), len(record.query_tokens)),
            compute_map=lambda: maps()[1],
            compute_row=lambda layer, query: row(layer, positions[query])[1],
        ),
    )


def _refuse_of_one_stack(**options: tuple[Any, Any]) -> None:
    """Refuse options that have no meaning through several stacks, unless they are left as they are by themselves."""
    for name, (given, usual) in options.items():
        if given != usual:
            raise BadInput(
                f"{name}= is for one stack, and this record holds all three: leave it out, or take"
                ' record.of_stack("encoder") or "decoder".'
            )


def _of_vectors(
    record: VectorRecord,
    heads: Heads,
    residual: float,
    start: int,
    normalize: str | None,
    wanted: Sequence[int] | None,
    attention: str,
) -> TokenScores:
    """Rollout row by row, where there are queries and keys in place of weights."""
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

    Of a record of all three stacks of an encoder-decoder (`stack="all"`), scores are of the source's tokens. Each layer
    of the decoder attends twice, each time beside a residual connection (Vaswani et al. 2017): to the prefix it has
    read (W), then to what the encoder put out (X). Both mix as above: h' = (1-r) X e + r ((1-r) W h + r h), where e is
    the encoder's own rollout. So behind a layer r² is what the position held before, r (1-r) what those it attends to
    held, and 1-r comes from the source: 1/4, 1/4 and 1/2. Ferrando et al. 2022 (ALTI+) compose the blocks in this
    order, with contributions they measure in place of the fixed r; Chefer, Gur & Wolf 2021 add up what we average. What
    stays on the prefix is `scores.prefix`: with it, every row sums to one.
    """
    start = checked_layer(record, start_layer)
    wanted = None if queries is None else checked_positions(record, queries, "query")
    with_residual(torch.zeros(1, 1), residual)  # refuse a share that is none before anything is computed
    if record.has_all_stacks:
        _refuse_of_one_stack(start_layer=(start, 0), normalize=(normalize, None), attention=(attention, "weights"))
        return rollout_to_source(record, heads, residual, wanted)
    if isinstance(record, VectorRecord):
        return _of_vectors(record, heads, residual, start, normalize, wanted, attention)

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
