"""From texts to passages: tokens for the encoder, and for the decoder a target or the model's own output."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from ..errors import BadInput
from ..record import Text
from ..record.attention import Stack
from .batching import by_length
from .encoding import Encoded, checked_parts, encode, encode_ids
from .families import CODES_OF_SOUND
from .generation import decoder_start, greedy_outputs
from .passage import Passage, shifted
from .reader import Reader
from .vocabulary import check_ids, embedding_count


def source_of(reader: Reader, text: Text, *, longest: int | None, truncate: bool) -> Encoded:
    """The tokens of a text, at most `longest` of them, with only the inputs that this model takes."""
    if reader.model.config.model_type in CODES_OF_SOUND:
        raise BadInput(
            f"{type(reader.model).__name__} reads or writes several codes of a sound at each position, so a text is not"
            " enough for it: record it with inputs=, with the codes among them."
        )
    embedded = embedding_count(reader.model)
    encoded = encode(reader.tokenizer, text, longest, truncate=truncate, embedded=embedded)
    taken = {name: ids for name, ids in encoded.inputs.items() if name == "input_ids" or name in reader.accepted}
    return replace(encoded, inputs=taken)


def target_of(reader: Reader, text_target: Text | None, *, truncate: bool) -> Encoded | None:
    """What a decoder reads to say the target text."""
    if text_target is None:
        return None
    if not reader.has_both_sides:
        name = type(reader.model).__name__
        raise BadInput(f"{name} writes no text, so text_target= has no use.")
    labels = encode(reader.tokenizer, text_target, reader.longest, truncate=truncate, as_target=True)
    return shifted(reader.tokenizer, labels, decoder_start(reader))


def answered(reader: Reader, text: Text, source: Encoded, answer: Text) -> Passage:
    """What a causal model reads when a given answer stands behind the prompt; its tokens are its own, as generated."""
    first, second = checked_parts(answer)
    if not isinstance(first, str) or second is not None:
        raise BadInput("The answer of a causal model is one string, as it goes on from the prompt.")
    ids = list(reader.tokenizer(first, add_special_tokens=False, verbose=False)["input_ids"])
    check_ids(reader.tokenizer, ids, embedding_count(reader.model))
    if reader.longest is not None and len(source) + len(ids) > reader.longest:
        raise BadInput(
            f"{len(source)} tokens and an answer of {len(ids)} are more than the {reader.longest} the model reads."
        )
    whole = source.followed_by(encode_ids(reader.tokenizer, ids))
    return Passage(text, whole, None, notes={"prompt_tokens": len(source)})


def with_decoder_inputs(reader: Reader, passages: Sequence[Passage], stack: Stack, batch_size: int) -> list[Passage]:
    """The passages of an encoder-decoder with what its decoder reads: the encoder alone asks it for nothing."""
    if not reader.has_both_sides:
        return list(passages)
    filled: dict[int, Encoded] = {}
    if reader.task == "classifier":
        start = decoder_start(reader)
        filled = {place: shifted(reader.tokenizer, passage.source, start) for place, passage in enumerate(passages)}
    elif stack == "encoder":
        start_alone = encode_ids(reader.tokenizer, [decoder_start(reader)])
        filled = dict.fromkeys(range(len(passages)), start_alone)
    else:
        missing = [place for place, passage in enumerate(passages) if passage.target is None]
        for batch in by_length([len(passages[place].source) for place in missing], batch_size):
            places = [missing[position] for position in batch]
            filled |= zip(places, greedy_outputs(reader, [passages[place].source for place in places]), strict=True)
    return [replace(passage, target=passage.target or filled[place]) for place, passage in enumerate(passages)]


def record_bytes(passage: Passage, layers_and_heads: tuple[int, int] | None) -> int:
    """What the record of a passage will take in memory, as far as the model's configuration tells."""
    layers, heads = layers_and_heads or (0, 0)
    return layers * heads * len(passage.source) ** 2 * torch.float32.itemsize
