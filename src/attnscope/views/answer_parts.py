"""What was read for an answer, cut into parts and passages, and the answer cut into words, as its record tells them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from ..attribution import Answer
from ..record.segments import MARKER
from .answer_scene import KINDS, Kind, Part, Passage
from .sides import printable

WORD = re.compile(r"\w+(?:['’.,:-]\w+)*|[^\w\s]")
WITHOUT_SPACES = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
"""Letters of scripts that put no space between words: there each token is a word."""
NAMES: dict[str, str] = {"marker": "Markers and sinks", "answer": "Its own earlier words", "question": "Question"}


@dataclass(frozen=True)
class Reading:
    """The parts of a prompt, and its passages; where a sink stands in a passage, its score is one of its own."""

    parts: tuple[Part, ...]
    passages: tuple[Passage, ...]
    groups: tuple[tuple[int, ...], ...]
    """The positions of the tokens of each passage."""
    removable: tuple[int, ...]
    """The passages that can be taken away, in the order in which `Answer.leave_one_out` does."""
    outer: str
    """The level of documents."""
    removable_parts: tuple[int, ...]
    """The same for that level: the part that each belongs to."""

    def sums(self, rows: Float64[Tensor, "token key"]) -> Float64[np.ndarray, "token passage"]:
        """The scores of passages: exact sums of those of their tokens."""
        return torch.stack([rows[:, list(group)].sum(-1) for group in self.groups], -1).numpy()

    def spread(
        self, scores: Float64[np.ndarray, "token removable"], segments: Sequence[str]
    ) -> Float64[np.ndarray, "token passage"]:
        """Scores of the passages that were taken away; those of all others are 0."""
        assert len(segments) == len(self.removable)  # noqa: S101 -- the same rule on both sides
        spread = np.zeros((len(scores), len(self.passages)))
        spread[:, list(self.removable)] = scores
        return spread


def reading_of(answer: Answer, level: str) -> Reading:
    """The passages of what was read at a level of segments; each part has the passages of one document or turn."""
    record = answer.record
    segments = record.segments
    assert segments is not None  # noqa: S101 -- an answer has some
    outer = next((name for name in ("document", "turn") if name in segments.levels), level)
    groups, labels, kinds = answer.groups(level)
    outer_groups = answer.groups(outer)
    documents = _by_position(outer_groups)
    turns = _by_position(answer.groups("turn")) if "turn" in segments.levels else {}
    asked = any(_kind_of(kind) == "question" for _, _, kind in documents.values())
    starts = [*(segments.offsets[group[0]][0] for group in groups)]
    numbers: dict[tuple[Kind, int], int] = {}
    parts: list[Part] = []

    def part_of(position: int) -> int:
        """The part of a token, made where it is the first."""
        number, name, said = documents[position]
        kind = _kind_of(said)
        if kind == "turn":
            number, name, _ = turns.get(position, (0, "Instructions", ""))
            # where nobody marked the question, the last turn is it
            kind = "question" if turns and not asked and number == _last_turn(turns) else kind
        if kind in ("marker", "answer"):
            number = 0
        key = (kind, number)
        if key not in numbers:
            numbers[key] = len(parts)
            parts.append(Part(printable(name if kind in ("document", "turn") else NAMES[kind]), kind))
        return numbers[key]

    passages: list[Passage] = []
    counted: list[tuple[int, ...]] = []
    removable = []
    resting: list[int] = []
    for place, (group, start) in enumerate(zip(groups, starts, strict=True)):
        part = part_of(group[0])
        quiet = parts[part].kind in ("marker", "answer")
        end = starts[place + 1] if place + 1 < len(starts) else len(segments.text)
        sinks = [] if quiet else [position for position in group if answer.kinds[position] == "sink"]
        resting += sinks
        # a token that stands for no characters, as [CLS], is called by its name
        passages.append(Passage(_shown(segments.text[start:end] or labels[place]), part))
        counted.append(tuple(position for position in group if position not in sinks))
        if _can_go(answer, group, kinds[place]):
            removable.append(place)
    for position in resting:
        number = numbers.setdefault(("marker", 0), len(parts))
        if number == len(parts):
            parts.append(Part(NAMES["marker"], "marker"))
        start, end = segments.offsets[position]
        passages.append(Passage(_shown(segments.text[start:end] or record.key_tokens[position]), number))
        counted.append((position,))
    whole = [(group, kind) for group, _, kind in zip(*outer_groups, strict=True)]
    return Reading(
        parts=tuple(parts),
        passages=tuple(passages),
        groups=tuple(counted),
        removable=tuple(removable),
        outer=outer,
        removable_parts=tuple(part_of(group[0]) for group, kind in whole if _can_go(answer, group, kind)),
    )


def _can_go(answer: Answer, group: Sequence[int], kind: str) -> bool:
    """Whether a segment can be taken away: the same rule as that of `Answer.leave_one_out`."""
    return kind not in ("answer", "marker", "sink") and not all(answer.record.key_special[place] for place in group)


def _kind_of(said: str) -> Kind:
    """What a segment is; what is called otherwise is some turn."""
    if said in (MARKER, "sink"):
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


def answer_texts(answer: Answer) -> list[str]:
    """What each token of the answer adds to its text: one after the other they spell it."""
    starts = [start for start, _ in answer.offsets]
    return [_shown(answer.text[start:end]) for start, end in zip(starts, [*starts[1:], None], strict=True)]


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
