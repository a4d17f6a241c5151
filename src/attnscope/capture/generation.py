"""Text of a model's own, to be recorded afterwards in one forward pass."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import GenerationConfig

from ..errors import BadInput
from .encoding import Encoded, encode_ids
from .reader import Reader
from .watching import restored

GREEDY_TOKENS = 128
"""How far a decoder goes on by itself where the user gives no target text."""
GREEDY = {"do_sample": False, "num_beams": 1}
ONE_SEQUENCE = frozenset(
    {"num_return_sequences", "return_dict_in_generate", "output_scores", "output_logits", "output_attentions"}
    | {"output_hidden_states", "max_length", "max_new_tokens"}
)
"""What would change the form of the output, or how long it is said to be."""


def decoder_start(reader: Reader) -> int:
    """The token that begins every output of an encoder-decoder."""
    for holder in (getattr(reader.model, "generation_config", None), reader.model.config):
        start = getattr(holder, "decoder_start_token_id", None)
        if start is not None:
            return int(start)
    raise BadInput("This model's configuration has no decoder_start_token_id, so its decoder cannot begin.")


def greedy_outputs(reader: Reader, sources: Sequence[Encoded]) -> list[Encoded]:
    """What an encoder-decoder says to each source, as the input its decoder reads while saying it."""
    room = GREEDY_TOKENS if reader.longest is None else min(GREEDY_TOKENS, reader.longest - 1)
    written = _sequences(reader, sources, room, GREEDY)
    return [encode_ids(reader.tokenizer, _without_end(reader, sequence, 1)) for sequence in written]


def checked_generation(options: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """The user's options of transformers' `generate`, with a seed where they draw; greedy without any."""
    unknown = [name for name in options if name not in vars(GenerationConfig()) or name.startswith("_")]
    if unknown:
        raise BadInput(f"record_generation takes no {unknown[0]}: its options are those of record and of generate.")
    fixed = [name for name in options if name in ONE_SEQUENCE]
    if fixed:
        raise BadInput(
            f"A record is of one sequence and its attention, so {fixed[0]}= has no use in record_generation."
        )
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63):
        raise BadInput(f"seed is a whole number from 0 to 2**63 - 1, not {seed!r}.")
    chosen = {**GREEDY, **options}
    # the random state is put back after each call: without a seed of its own, every call would draw the same text
    return {**chosen, "seed": secrets.randbits(32) if seed is None and chosen["do_sample"] else seed}


def generated(reader: Reader, source: Encoded, max_new_tokens: int, options: Mapping[str, Any]) -> Encoded:
    """The prompt and its continuation, or an encoder-decoder's output, without the end token that closes it."""
    prompt = [] if reader.has_both_sides else source.inputs["input_ids"].tolist()
    read = len(prompt) or 1
    if isinstance(max_new_tokens, bool) or not isinstance(max_new_tokens, int) or max_new_tokens < 1:
        raise BadInput(f"max_new_tokens must be at least 1, not {max_new_tokens}.")
    if reader.longest is not None and read + max_new_tokens > reader.longest:
        raise BadInput(
            f"{read} tokens and {max_new_tokens} new ones are more than the {reader.longest} the model reads:"
            " lower max_new_tokens."
        )
    sequence = _without_end(reader, _sequences(reader, [source], max_new_tokens, options)[0], read)
    if not prompt:
        return encode_ids(reader.tokenizer, sequence)
    new = sequence[len(prompt) :]
    return source.followed_by(encode_ids(reader.tokenizer, new)) if new else source


def _sequences(
    reader: Reader, sources: Sequence[Encoded], max_new_tokens: int, options: Mapping[str, Any]
) -> list[list[int]]:
    if not reader.model.can_generate():
        raise BadInput(f"{type(reader.model).__name__} cannot generate: give the decoder's text as text_target=.")
    batch = reader.batched([source.inputs for source in sources])
    inputs: dict[str, Any] = {name: tensor for name, tensor in batch.items() if isinstance(tensor, torch.Tensor)}
    if reader.has_both_sides:
        inputs["decoder_start_token_id"] = decoder_start(reader)
    wishes = {name: value for name, value in options.items() if name != "seed"}
    # what the user's generation config may say about the form of the output must not reach us
    form = {"num_return_sequences": 1, "return_dict_in_generate": False, "max_new_tokens": max_new_tokens}
    with torch.no_grad(), restored(reader.model):
        if options.get("seed") is not None:
            torch.manual_seed(options["seed"])
        try:
            sequences = reader.model.generate(  # type: ignore[operator]
                **{"pad_token_id": reader.padding, **inputs, **wishes, **form}
            )
        except (TypeError, ValueError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
            raise BadInput(f"The model cannot generate with these options: {reason}.") from None
    return [list(sequence) for sequence in sequences.tolist()]


def _without_end(reader: Reader, sequence: list[int], read: int) -> list[int]:
    """The sequence without the end token, and without the padding behind it, that close it."""
    config = getattr(reader.model, "generation_config", None)
    named = [getattr(config, "eos_token_id", None), reader.tokenizer.eos_token_id, reader.padding]
    ends = {end for name in named if name is not None for end in (name if isinstance(name, list) else [name])}
    while len(sequence) > read and sequence[-1] in ends:
        sequence = sequence[:-1]
    return sequence
