"""Greedy text of a model's own, to be recorded afterwards in one forward pass."""

import torch

from ..errors import BadInput
from .encoding import Encoded, encode_ids
from .instrument import restored
from .reader import Reader

GREEDY_TOKENS = 128
"""How far a decoder goes on by itself where the user gives no target text."""


def decoder_start(reader: Reader) -> int:
    """The token that begins every output of an encoder-decoder."""
    start = reader.model.config.decoder_start_token_id
    if start is None:
        raise BadInput("This model's configuration has no decoder_start_token_id, so its decoder cannot begin.")
    return int(start)


def greedy_output(reader: Reader, source: Encoded) -> Encoded:
    """What an encoder-decoder says to a source, as the input its decoder read while saying it."""
    room = GREEDY_TOKENS if reader.longest is None else min(GREEDY_TOKENS, reader.longest - 1)
    return generated(reader, source, room)


def generated(reader: Reader, source: Encoded, max_new_tokens: int) -> Encoded:
    """The prompt and its greedy continuation, or an encoder-decoder's output, without the end token that closes it."""
    prompt = [] if reader.has_both_sides else source.inputs["input_ids"].tolist()
    read = len(prompt) or 1
    if max_new_tokens < 1:
        raise BadInput(f"max_new_tokens must be at least 1, not {max_new_tokens}.")
    if reader.longest is not None and read + max_new_tokens > reader.longest:
        raise BadInput(
            f"{read} tokens and {max_new_tokens} new ones are more than the {reader.longest} the model reads:"
            " lower max_new_tokens."
        )
    inputs = {name: tensor for name, tensor in reader.batched([source.inputs]).items() if name != "use_cache"}
    with torch.no_grad(), restored(reader.model):
        sequence = reader.model.generate(  # type: ignore[operator]
            **inputs, do_sample=False, num_beams=1, max_new_tokens=max_new_tokens, pad_token_id=reader.padding
        )[0].tolist()
    ends = {reader.tokenizer.eos_token_id, reader.tokenizer.pad_token_id}
    while len(sequence) > read and sequence[-1] in ends:
        sequence.pop()
    if not prompt:
        return encode_ids(reader.tokenizer, sequence)
    if len(sequence) == len(prompt):
        return source
    return source.followed_by(encode_ids(reader.tokenizer, sequence[len(prompt) :]))
