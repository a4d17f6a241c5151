"""Where tokens lie in their text: by the tokenizer's own offsets, or by decoding; and the segments they belong to."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from transformers import PreTrainedTokenizerBase

from ..errors import BadInput
from ..record import Segments, TokenSegments
from .encoding import Encoded, Passage


def segments_of(passage: Passage, keys: Encoded, added: int) -> TokenSegments | None:
    """The segments of the tokens attended to, behind so many that are none of the text."""
    if passage.segments is None:
        return None
    if keys.offsets is None:
        raise BadInput("Segments are of the text that is attended to: record the encoder's stack, or cross-attention.")
    return TokenSegments(passage.segments, ((0, 0),) * added + keys.offsets)


def with_segments(reader: object, passage: Passage, segments: Segments | None) -> Passage:
    """The passage with segments of its text, if there are any."""
    if segments is None:
        return passage
    if not isinstance(segments, Segments):
        raise BadInput(f"segments= takes attnscope.Segments of the text, not {type(segments).__name__}.")
    if not isinstance(passage.text, str):
        raise BadInput("Segments are of one text, a string, not of a pair or of words already split.")
    if segments.text != passage.text:
        raise BadInput("The segments are of another text than the one to be recorded: make them of the same string.")
    source = passage.source
    if source.offsets is None:
        tokenizer = getattr(reader, "given_tokenizer", None)
        if tokenizer is None:
            raise BadInput("A model without a tokenizer of transformers does not tell where its tokens lie in a text.")
        ids = source.inputs["input_ids"].tolist()
        source = replace(source, offsets=offsets_by_decoding(tokenizer, ids, source.special, segments.text))
    return replace(passage, source=source, segments=segments)


def offsets_by_decoding(
    tokenizer: PreTrainedTokenizerBase,
    ids: Sequence[int],
    special: Sequence[bool],
    text: str,
    before: Sequence[int] = (),
) -> tuple[tuple[int, int], ...]:
    """The characters of a text that each of its tokens covers, told by decoding ever more of them.

    Spaces may differ, as decoders take liberties with them: they belong to the token behind them. `before` are the
    tokens in front, where the text goes on from others.
    """
    solid = [place for place, character in enumerate(text) if not character.isspace()]
    beyond = _letters(tokenizer, before)
    ends: list[int] = []
    for place, quiet in enumerate(special):
        counted = 0 if quiet else len(_letters(tokenizer, [*before, *ids[: place + 1]])) - len(beyond)
        counted = min(max(counted, ends[-1] if ends else 0), len(solid))
        ends.append(counted)
    spelled = _letters(tokenizer, [*before, *ids])
    if spelled.lower() != (beyond + "".join(text.split())).lower():
        raise BadInput(
            f"The tokenizer ({type(tokenizer).__name__}) does not tell which characters its tokens cover, nor does it"
            " spell this text back, so segments have no tokens: use a fast tokenizer."
        )
    places = [0, *(solid[count - 1] + 1 if count else 0 for count in ends)]
    return tuple(
        (end, end) if quiet else (start, end) for (start, end), quiet in zip(pairwise(places), special, strict=True)
    )


def _letters(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    """What some tokens spell, without spaces and without what is only half a character yet."""
    spelled = str(tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))
    return "".join(spelled.rstrip("\ufffd").split())
