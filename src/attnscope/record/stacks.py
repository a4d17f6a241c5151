"""The three stacks of an encoder-decoder in one record: cross-attention, with the other two beside it.

An output token reads what was written before it (decoder), that reads the source (cross), and the source has read
itself before (encoder). A method that follows an output token to the words of the source needs all three of one forward
pass.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from ..errors import BadInput
from . import checks
from .words import merge_keys, merge_queries

if TYPE_CHECKING:
    from .attention import AttentionRecord, Stack

SIDES = {"encoder": ("key_tokens", ("input_ids",)), "decoder": ("query_tokens", ("input_ids", "decoder_input_ids"))}
"""Of each other stack, which tokens of the record of cross-attention are its own, and what made it of the inputs."""


def check_other_stacks(record: "AttentionRecord") -> None:
    """What makes the weights of the other stacks attention, as of any; both are there, or neither."""
    if record.encoder_weights is None or record.decoder_weights is None or record.stack != "cross":
        raise BadInput(
            "encoder_weights and decoder_weights stand together beside cross-attention: give both, with stack='cross'."
        )
    if record.added_tokens:
        raise BadInput(
            "Stacks that attend to more than their tokens (a learned sink) cannot be joined: record one stack."
        )
    everywhere = (False,) * len(record.key_tokens)
    for name, masked in (("encoder_weights", everywhere), ("decoder_weights", record.masked_queries)):
        try:
            object.__setattr__(record, name, checks.checked_weights(getattr(record, name), masked))
        except BadInput as error:
            raise BadInput(f"{name}: {error}") from None


def joined(cross: "AttentionRecord", encoder: "AttentionRecord", decoder: "AttentionRecord") -> "AttentionRecord":
    """The record of cross-attention with the weights of the other two, if all three are of one pass."""
    if cross.stack != "cross":
        raise BadInput(
            f"Stacks are joined to a record of cross-attention, and this is of the {cross.stack} stack: take it with"
            ' model.record(text, stack="cross").'
        )
    for name, other in (("encoder", encoder), ("decoder", decoder)):
        if other.stack == "cross":
            raise BadInput(f"{name}= is the {name}'s attention to itself, and this record is of cross-attention.")
        side, made_of = SIDES[name]
        if getattr(cross, side) != other.query_tokens:
            raise BadInput(
                f"These records are of different passes: the {name} read {_some(other.query_tokens)}, and"
                f" cross-attention has {_some(getattr(cross, side))} there."
            )
        for given in made_of:
            mine, its = cross.inputs.get(given), other.inputs.get(given)
            if mine is not None and its is not None and not torch.equal(mine, its):
                raise BadInput(f"These records are of different passes: the {name} was given other {given}.")
        if cross.card.get("model") != other.card.get("model"):
            raise BadInput(
                f"These records are of different models: cross-attention of {cross.card.get('model')}, the {name} of"
                f" {other.card.get('model')}."
            )
    if len(decoder.layers) != len(cross.layers):
        raise BadInput(
            f"Each layer of a decoder attends to itself and to the source, but these are {len(decoder.layers)} layers"
            f" of the decoder and {len(cross.layers)} of cross-attention: take all layers of both."
        )
    return replace(cross, encoder_weights=encoder.weights, decoder_weights=decoder.weights)


def _some(tokens: Sequence[str]) -> str:
    """A few tokens for a sentence."""
    shown = " ".join(tokens[:6])
    return f"{len(tokens)} tokens ({shown}{' …' if len(tokens) > 6 else ''})"


def apart(record: "AttentionRecord", stack: "Stack") -> "AttentionRecord":
    """One of the stacks as a record of its own, without what belongs to cross-attention."""
    if record.encoder_weights is None or record.decoder_weights is None:
        raise BadInput(
            f"This record holds the {record.stack} stack alone: take all three with"
            ' model.record(text, stack="all"), of an encoder-decoder.'
        )
    alone = replace(record, encoder_weights=None, decoder_weights=None)
    if stack == "cross":
        return alone
    is_encoder = stack == "encoder"
    weights = record.encoder_weights if is_encoder else record.decoder_weights
    side = "key" if is_encoder else "query"
    tokens, word_ids, special = (getattr(record, f"{side}_{name}") for name in ("tokens", "word_ids", "special"))
    count = len(tokens)
    of_cross = ("queries", "keys", "scaling", "softcap", "score_bias", "values", "attention_gradients")
    of_source = ("embeddings", "embedding_gradients", "target")
    without: dict[str, Any] = dict.fromkeys(of_cross if is_encoder else (*of_cross, *of_source))
    return replace(
        alone,
        **without,
        weights=weights,
        stack=stack,
        causal=not is_encoder and (count == 1 or checks.looks_causal(weights)),
        readout=torch.full((count,), 1 / count) if is_encoder else record.readout,
        query_tokens=tokens,
        key_tokens=tokens,
        query_word_ids=word_ids,
        key_word_ids=word_ids,
        query_special=special,
        key_special=special,
        masked_queries=(False,) * count if is_encoder else record.masked_queries,
        layers=tuple(range(weights.shape[0])) if is_encoder else record.layers,
        heads=tuple(range(weights.shape[1])),
    )


def merged_stacks(
    record: "AttentionRecord", query_groups: Sequence[Sequence[int]], key_groups: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """The weights of the other stacks at word level: sums over keys, means over queries."""
    if record.encoder_weights is None or record.decoder_weights is None:
        return {}
    everywhere = (False,) * len(record.key_tokens)
    return {
        "encoder_weights": merge_queries(merge_keys(record.encoder_weights, key_groups), key_groups, everywhere),
        "decoder_weights": merge_queries(
            merge_keys(record.decoder_weights, query_groups), query_groups, record.masked_queries
        ),
    }
