"""A text longer than a model reads, as windows of tokens that overlap: each is a text of its own to the model."""

from dataclasses import replace
from typing import Any

from ..errors import BadInput
from ..record import AttentionRecord, Text
from .encoding import Encoded
from .passage import Passage


def windows_of(encoded: Encoded, text: Text, window: int, stride: int | None) -> list[Passage]:
    """The text cut into windows of at most `window` tokens, special tokens counted, each with the special tokens.

    A window begins `stride` tokens of the text after the one before it (half of what fits, unless said); the last ends
    with the text. Word ids go on counting over the whole text.
    """
    if isinstance(text, tuple):
        raise BadInput("A pair of texts cannot be cut into windows: give one text.")
    if all(encoded.special):
        raise BadInput("A text of special tokens alone cannot be cut into windows.")
    before = next(place for place, quiet in enumerate(encoded.special) if not quiet)
    after = next(place for place, quiet in enumerate(reversed(encoded.special)) if not quiet)
    room = window - before - after
    if room < 1:
        raise BadInput(f"A window of {window} tokens has no room for text beside {before + after} special ones.")
    stride = max(1, room // 2) if stride is None else stride
    if not 1 <= stride <= room:
        raise BadInput(
            f"stride={stride} must be from 1 to {room}, the tokens of text in a window, or text is left out."
        )
    content = len(encoded) - before - after
    starts = list(range(0, max(content - room, 0) + stride, stride))
    ranges = [(start, min(start + room, content)) for start in starts]
    # the last two may both reach the end: then the first of them does
    ranges = [span for place, span in enumerate(ranges) if place == 0 or ranges[place - 1][1] < content]
    return [_window(encoded, text, before, after, start, end) for start, end in ranges]


def _window(encoded: Encoded, text: Text, before: int, after: int, start: int, end: int) -> Passage:
    length = len(encoded)
    kept = [*range(before), *range(before + start, before + end), *range(length - after, length)]
    offsets = None if encoded.offsets is None else tuple(encoded.offsets[place] for place in kept)
    cut = replace(
        encoded,
        inputs={name: ids[kept] for name, ids in encoded.inputs.items()},
        tokens=tuple(encoded.tokens[place] for place in kept),
        word_ids=tuple(encoded.word_ids[place] for place in kept),
        special=tuple(encoded.special[place] for place in kept),
        offsets=offsets,
    )
    return Passage(_part(text, encoded, before + start, before + end), cut, None, (start, end))


def _part(text: Text, encoded: Encoded, start: int, end: int) -> Text:
    """The part of the text that a window reads, as far as the tokenizer tells."""
    if isinstance(text, str) and encoded.offsets is not None:
        return text[encoded.offsets[start][0] : encoded.offsets[end - 1][1]]
    return " ".join(encoded.tokens[start:end])


def with_places(records: list[AttentionRecord], passages: list[Passage]) -> list[AttentionRecord]:
    """The records with the place of each in the text: `card["window"]`."""
    return [
        replace(record, card={**record.card, "window": _place(place, passage, len(passages))})
        for place, (record, passage) in enumerate(zip(records, passages, strict=True))
    ]


def _place(number: int, passage: Passage, of: int) -> dict[str, Any]:
    """Which window this is, and from where to where it reads: tokens of the text, and its characters if known."""
    assert passage.place is not None  # noqa: S101 -- windows have one
    spans = [
        span for span, quiet in zip(passage.source.offsets or (), passage.source.special, strict=False) if not quiet
    ]
    characters = [spans[0][0], spans[-1][1]] if spans else None
    return {"number": number, "of": of, "tokens": list(passage.place), "characters": characters}
