"""What was read for an answer, cut into parts and passages, and the answer cut into words, as its record tells them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BadInput
from ..record import AttentionRecord
from ..record.segments import MARKER
from .answer_scene import KINDS, Kind, Part, Passage
from .sides import printable

WORD = re.compile(r"\w+(?:['’.,:-]\w+)*|[^\w\s]")
WITHOUT_SPACES = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
"""Letters of scripts that put no space between words: there each token is a word."""
NAMES: dict[Kind, str] = {"marker": "Markers and sinks", "answer": "Its own earlier words", "question": "Question"}


@dataclass(frozen=True)
class Reading:
    """The parts of a prompt, and its passages in the order of the text."""

    parts: tuple[Part, ...]
    passages: tuple[Passage, ...]
    groups: tuple[tuple[int, ...], ...]
    """The positions of the tokens of each passage."""


def reading_of(record: AttentionRecord, level: str) -> Reading:
    """The passages of a record at a level of its segments; each part has the passages of one document or turn."""
    segments = record.segments
    if segments is None:
        raise BadInput("This record knows no segments: record a conversation, or give segments=.")
    tokens, special = record.key_tokens, record.key_special
    groups, labels, _ = segments.groups(level, tokens, special)
    outer = next((name for name in ("document", "turn") if name in segments.levels), level)
    documents = _by_position(segments.groups(outer, tokens, special))
    turns = _by_position(segments.groups("turn", tokens, special)) if "turn" in segments.levels else {}
    kinds = {_kind_of(kind) for _, _, kind in documents.values()}
    starts = [segments.offsets[group[0]][0] for group in groups]
    numbers: dict[tuple[Kind, int], int] = {}
    parts: list[Part] = []
    passages = []
    for place, (group, start) in enumerate(zip(groups, starts, strict=True)):
        number, name, said = documents[group[0]]
        kind = _kind_of(said)
        if kind in ("marker", "answer"):
            key, name = (kind, 0), NAMES[kind]
        elif kind == "turn":
            number, name, _ = turns.get(group[0], (0, "Instructions", ""))
            last = bool(turns) and "question" not in kinds and number == _last_turn(turns)
            # where nobody marked the question, the last turn is it
            key = ("question" if last else kind, number)
        else:
            key, name = (kind, number), NAMES.get(kind, name)
        if key not in numbers:
            numbers[key] = len(parts)
            parts.append(Part(printable(name), key[0]))
        end = starts[place + 1] if place + 1 < len(starts) else len(segments.text)
        # a token that stands for no characters, as [CLS], is called by its name
        passages.append(Passage(_shown(segments.text[start:end] or labels[place]), numbers[key]))
    return Reading(tuple(parts), tuple(passages), tuple(map(tuple, groups)))


def _kind_of(said: str) -> Kind:
    """What a segment is; what is called otherwise is some turn."""
    if said == MARKER:
        return "marker"
    return next((kind for kind in KINDS if kind == said), "turn")


def _by_position(
    told: tuple[list[list[int]], tuple[str, ...], tuple[str, ...]],
) -> dict[int, tuple[int, str, str]]:
    """Of each token the number, the name and the kind of its segment."""
    return {
        place: (number, label, kind)
        for number, (group, label, kind) in enumerate(zip(*told, strict=True))
        for place in group
    }


def _last_turn(turns: dict[int, tuple[int, str, str]]) -> int:
    """The number of the last turn before the answer."""
    asked = [number for number, _, kind in turns.values() if _kind_of(kind) == "turn"]
    return max(asked, default=-1)


def _shown(text: str) -> str:
    """A text whose control characters are signs to be seen, but for the ends of its lines."""
    return "\n".join(map(printable, text.replace("\r\n", "\n").split("\n")))


def answer_texts(record: AttentionRecord, first: int) -> list[str]:
    """What each token of the answer, from the `first` on, adds to its text: one after the other they spell it."""
    segments = record.segments
    if segments is None:
        raise BadInput("This record knows no segments: record a conversation, or give segments=.")
    starts = [start for start, _ in segments.offsets[first:]]
    return [_shown(segments.text[start:end]) for start, end in zip(starts, [*starts[1:], None], strict=True)]


def word_places(texts: Sequence[str]) -> list[list[int]]:
    """The tokens of each word of an answer; a stop behind a word is one of its own.

    >>> word_places(["The", " light", "house", ",", " ", "1", "8", "5", "4", "."])
    [[0], [1, 2], [3], [4, 5, 6, 7, 8], [9]]
    """
    whole = "".join(texts)
    words = [match.span() for match in WORD.finditer(whole)]
    found: list[list[int]] = []
    held: list[int] = []  # spaces, and what only begins a letter: they go with what follows
    last: object = None
    at, number = 0, 0
    for place, text in enumerate(texts):
        first = at + len(text) - len(text.lstrip())
        at += len(text)
        held.append(place)
        if not text.strip():
            continue
        while number < len(words) - 1 and words[number][1] <= first:
            number += 1
        inside = bool(words) and words[number][0] <= first < words[number][1]
        own = number if inside and not WITHOUT_SPACES.search(whole[slice(*words[number])]) else None
        if own is not None and own == last:
            found[-1] += held
        else:
            found.append(held)
        held, last = [], own
    if held and found:
        found[-1] += held
    return found or [held]
