"""What a method that runs the model again needs: the model, the inputs of its key tokens, and what stands for none."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, Model
from ..record.model import EMBEDDINGS


def rerunnable(record: AttentionRecord, model: Model | None, method: str) -> Model:
    """The model, if it was given and the record says what to give it."""
    if model is None:
        raise BadInput(f"The method {method} runs the model again: pass the model too.")
    if not record.inputs:
        sentence = f"The method {method} runs the model again, but this record does not hold what the model was given:"
        raise BadInput(say_lacking(record, f"{sentence} take it with model.record(text)."))
    return model


def say_lacking(record: AttentionRecord, sentence: str) -> str:
    """What a record lacks, in a sentence that says how to take one with it; of words, what to score instead."""
    if record.card.get("level") != "word":
        return sentence
    return (
        "A record of words holds neither vectors nor gradients nor what the model was given: score the record that it"
        ' was made of and take scores.words(), or for blank_out by="word".'
    )


def key_ids(record: AttentionRecord) -> str:
    """The name of the inputs whose tokens are the record's keys: a decoder beside an encoder has its own."""
    beside_encoder = record.stack == "decoder" and "decoder_input_ids" in record.inputs
    return "decoder_input_ids" if beside_encoder else "input_ids"


def input_positions(record: AttentionRecord, positions: Sequence[int]) -> list[int]:
    """Where key tokens stand in what the model was given; what stands for a learned sink is nowhere there."""
    return [position - record.added_tokens for position in positions if position >= record.added_tokens]


def key_embeddings(record: AttentionRecord, model: Model) -> Float[Tensor, "key width"]:
    """The embeddings of the key tokens, as the model looks them up."""
    return model.embedded(record.inputs)[EMBEDDINGS[key_ids(record)]]


def blank_embeddings(record: AttentionRecord, model: Model, blank: str) -> Float[Tensor, "key width"]:
    """The same for a text of nothing but blanks: the embedding of unk, mask or pad at every position, zero or the mean.

    The mean is that of the text's own tokens.
    """
    name = key_ids(record)
    if blank == "zero":
        return torch.zeros_like(key_embeddings(record, model))
    if blank == "mean":
        own = key_embeddings(record, model)
        return own.mean(0).expand_as(own).clone()
    if blank not in ("unk", "mask", "pad"):
        raise BadInput(f"There is no blank {blank!r}: choose unk, mask, pad, zero or mean.")
    if blank not in model.blank_ids:
        known = ", ".join([*model.blank_ids, "zero"])
        raise BadInput(f"This model has no {blank} token: choose from {known}.")
    blanks = torch.full_like(record.inputs[name], model.blank_ids[blank])
    return model.embedded({**record.inputs, name: blanks})[EMBEDDINGS[name]]


def default_blank(model: Model) -> str:
    """The blank that says least of those the model has: unk, or else mask."""
    blank = next((name for name in ("unk", "mask") if name in model.blank_ids), None)
    if blank is None:
        raise BadInput("This model has neither an unk nor a mask token: choose replacement= pad, delete or zero.")
    return blank
