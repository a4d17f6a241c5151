"""Segments: named spans of one text, nested (turn, document, paragraph, sentence), and the tokens of each.

Every character belongs to exactly one leaf of each level: a span, or what stands between spans. So does every token,
and sums over the segments of a level are sums over the tokens.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from ..errors import BadInput
from .schema import Count, Label, Words, check_fields, checked, quote
from .words import CLOSERS

OF_TOKENS = ("token", "word")
"""Levels that the tokens themselves have, whatever is marked in the text."""
MARKER = "marker"
"""The kind of what a chat template writes around turns; it is cut no further."""
Range = tuple[int, int]
"""From which character to before which."""


@dataclass(frozen=True)
class Span:
    """Characters from `start` to before `end`, what they are called, and what they are.

    Without a name a span is called by its text; without a kind it is of the kind of the span around it.
    """

    start: Count
    end: Count
    name: Label = ""
    kind: Label = ""


@dataclass(frozen=True)
class Segments:
    """Named spans of one text, level by level, the outermost first; frozen and checked.

    Spans of one level do not overlap; those of a finer level lie within those of a coarser, and are cut at their
    borders. `from_spans`, `by_separator`, `paragraphs`, `sentences` and `turns` make segments of a text, or of segments
    the same with one more, finer level:

    >>> segments = Segments.by_separator("One. Two.|Three.", "|").sentences()
    >>> [leaf.name for leaf in segments.leaves("document")], [segments.label(leaf) for leaf in segments.leaves()]
    (['document 1', 'document 2'], ['One.', 'Two.|', 'Three.'])
    """

    text: Words
    levels: Mapping[Label, tuple[Span, ...]]

    def __post_init__(self) -> None:
        check_fields(self, {})
        if not self.text.strip():
            raise BadInput("The text to be cut into segments is empty; give at least one word.")
        around = [Span(0, len(self.text))]
        cut: dict[str, tuple[Span, ...]] = {}
        for level, spans in self.levels.items():
            if level in OF_TOKENS or not level.strip():
                raise BadInput(f"A level cannot be called {quote(level)}: {' and '.join(OF_TOKENS)} are there already.")
            cut[level] = tuple(_cut(_in_order(spans, level, len(self.text)), around))
            around = list(_tiled(around, cut[level]))
        object.__setattr__(self, "levels", cut)

    @checked
    def from_spans(self: "Segments | str", spans: Sequence[Any], level: str = "document") -> "Segments":
        """The given spans of a text: (start, end, name) each, in characters.

        >>> [span.name for span in Segments.from_spans("Rome fell.", [(0, 4, "city")], level="field").levels["field"]]
        ['city']
        """
        return _with(self, level, [_span(entry, level) for entry in spans])

    @checked
    def by_separator(self: "Segments | str", separator: str, level: str = "document") -> "Segments":
        """What stands between separators, each of which belongs to what it ends: "document 1", "document 2", …."""
        if not separator:
            raise BadInput('The separator is empty; give what stands between two segments, such as "\\n\\n".')
        whole = _whole(self)
        ranges = _ranges(whole.text, [match.end() for match in re.finditer(re.escape(separator), whole.text)])
        filled = _joined_to_last(whole.text, ranges, separator)
        spans = [Span(start, end, f"{level} {place}", level) for place, (start, end) in enumerate(filled, 1)]
        return _with(whole, level, spans)

    @checked
    def paragraphs(self: "Segments | str", level: str = "paragraph") -> "Segments":
        """The paragraphs, which end at empty lines."""
        return _split(_whole(self), level, lambda text: [match.end() for match in EMPTY_LINE.finditer(text)])

    @checked
    def sentences(self: "Segments | str", level: str = "sentence") -> "Segments":
        """The sentences: up to . ! ? … or a line's end.

        None ends behind an initial or an abbreviation, nor before a small letter in a text that has capitals.
        """
        return _split(_whole(self), level, sentence_ends)

    @checked
    def turns(self: "Segments | str", messages: Sequence[Any], level: str = "turn") -> "Segments":
        """The turns of a conversation, found by their contents in their order; each is called by its role.

        `messages` are {"role": …, "content": …} each. What stands between them are the markers of a chat template.
        """
        whole = _whole(self)
        spans, beyond = [], 0
        for place, message in enumerate(messages):
            role, content = _role_and_content(message, place)
            start = whole.text.find(content, beyond)
            if start < 0:
                raise BadInput(f"The text does not hold the content of message {place} behind those before it.")
            spans.append(Span(start, start + len(content), role, "turn"))
            beyond = start + len(content)
        return _with(whole, level, numbered(spans))

    def leaves(self, level: str | None = None) -> list[Span]:
        """The parts of the text at a level (by default the finest): spans and what stands between, without a gap.

        What no span of the level names has no name, or where it is all of a span of a coarser level, the name of that.
        """
        return self._leaves[level or [*self.levels][-1]]

    @cached_property
    def _leaves(self) -> dict[str, list[Span]]:
        found: dict[str, list[Span]] = {}
        around = [Span(0, len(self.text))]
        for level, spans in self.levels.items():
            found[level] = around = list(_tiled(around, spans))
        return found

    def label(self, leaf: Span) -> str:
        """What a part is called: by its name, else by its text."""
        text = self.text[leaf.start : leaf.end]
        return leaf.name or " ".join(text.split()) or text.replace("\n", "⏎")


def _whole(given: Segments | str) -> Segments:
    return given if isinstance(given, Segments) else Segments(given, {})


def _with(given: Segments | str, level: str, spans: Sequence[Span]) -> Segments:
    whole = _whole(given)
    if level in whole.levels:
        raise BadInput(f"There is a level {quote(level)} already; give this one another name.")
    return Segments(whole.text, {**whole.levels, level: tuple(spans)})


def _split(whole: Segments, level: str, ends: Callable[[str], list[int]]) -> Segments:
    """One more level, of the parts in which each leaf is cut; markers stay whole."""
    spans = []
    for leaf in whole.leaves() if whole.levels else [Span(0, len(whole.text))]:
        if leaf.kind == MARKER:
            continue
        text = whole.text[leaf.start : leaf.end]
        ranges = _joined_to_last(text, _ranges(text, ends(text)))
        spans += [Span(leaf.start + start, leaf.start + end) for start, end in ranges if text[start:end].strip()]
    return _with(whole, level, spans)


def _ranges(text: str, ends: Sequence[int]) -> list[Range]:
    """The text cut at these places."""
    return [(start, end) for start, end in pairwise([0, *ends, len(text)]) if end > start]


def _joined_to_last(text: str, ranges: Sequence[Range], separator: str = " ") -> list[Range]:
    """The ranges, those of separators alone joined to the one before, or at the beginning to the one behind."""
    joined: list[Range] = []
    for start, end in ranges:
        is_full = all(text[first:last].replace(separator, "").strip() for first, last in [*joined[-1:], (start, end)])
        if joined and not is_full:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _span(entry: Any, kind: str) -> Span:
    """A span as the user gives it."""
    if isinstance(entry, Span):
        return entry
    fits = isinstance(entry, (tuple, list)) and len(entry) == 3 and isinstance(entry[2], str)
    if not fits or any(isinstance(place, bool) or not isinstance(place, int) for place in entry[:2]):
        raise BadInput(f"A span is (start, end, name), two places in the text and a name, not {quote(entry)}.")
    if min(entry[:2]) < 0:
        raise BadInput(f"The span {quote(entry[2])} begins or ends before the text does.")
    start, end, name = entry
    return Span(start, end, name, kind)


def _in_order(spans: Sequence[Span], level: str, length: int) -> list[Span]:
    """The spans of one level by their places, if they lie in the text and beside each other."""
    ordered = sorted(spans, key=lambda span: (span.start, span.end))
    for span in ordered:
        if not span.start < span.end <= length:
            raise BadInput(
                f"The span {quote(span.name)} of the level {quote(level)} goes from {span.start} to {span.end}, which"
                f" is nothing in a text of {length} characters."
            )
    for first, second in pairwise(ordered):
        if second.start < first.end:
            raise BadInput(
                f"The spans {quote(first.name)} and {quote(second.name)} of the level {quote(level)} overlap at"
                f" character {second.start}: give them levels of their own."
            )
    return ordered


def _cut(spans: Sequence[Span], around: Sequence[Span]) -> Iterator[Span]:
    """Spans cut at the borders of the parts around them."""
    parts = iter(around)
    part = next(parts)
    for span in spans:
        start = span.start
        while start < span.end:
            while part.end <= start:
                part = next(parts)
            end = min(span.end, part.end)
            yield Span(start, end, span.name, span.kind)
            start = end


def _tiled(around: Sequence[Span], spans: Sequence[Span]) -> Iterator[Span]:
    """The parts of a finer level: its spans, and of the parts around them what no span takes."""
    rest = list(reversed(spans))
    for part in around:
        start = part.start
        while rest and rest[-1].start < part.end:
            span = rest.pop()
            if span.start > start:
                yield Span(start, span.start, "", part.kind)
            yield Span(span.start, span.end, span.name, span.kind or part.kind)
            start = span.end
        if start < part.end:
            yield Span(start, part.end, part.name if start == part.start else "", part.kind)


def numbered(spans: Sequence[Span]) -> list[Span]:
    """The spans, the second and later ones of a name with a number: user, assistant, user 2."""
    seen: dict[str, int] = {}
    told = []
    for span in spans:
        seen[span.name] = seen.get(span.name, 0) + 1
        name = span.name if seen[span.name] == 1 or not span.name else f"{span.name} {seen[span.name]}"
        told.append(Span(span.start, span.end, name, span.kind))
    return told


def _role_and_content(message: Any, place: int) -> tuple[str, str]:
    role, content = (message.get("role"), message.get("content")) if isinstance(message, Mapping) else (None, None)
    if not isinstance(role, str) or not isinstance(content, str) or not role or not content:
        raise BadInput(f'Message {place} must be {{"role": …, "content": …}} with two texts, not {quote(message)}.')
    return role, content


# ---- sentences


EMPTY_LINE = re.compile(r"\n[^\S\n]*\n\s*")
_CLOSING = f"[{re.escape(CLOSERS)}]*"
SENTENCE_END = re.compile(
    rf"(?P<stop>[.!?…]+){_CLOSING}\s+|[。！？]+[」』{re.escape(CLOSERS)}]*\s*|[।؟]+\s*|(?P<line>[^\S\n]*\n\s*)"
)
ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'])(?:[A-Z]|[a-z](?:\.[a-z])+|[A-Z](?:\.[A-Z])+"
    r"|Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|etc|cf|Fig|Eq|Vol|pp|approx|Inc|Ltd|Co|Gen|Col|Lt|Sgt|Capt|Rev|Sen|Rep|Gov)$"
)
"""What a stop is often part of: a letter alone, e.g., U.S., and these."""
LONGEST_ABBREVIATION = 12


def sentence_ends(text: str) -> list[int]:
    """Where the sentences of a text end, the space behind them included.

    >>> text = "Dr. A. Li came at 3.5 p.m. and left. Why?"
    >>> [text[start:end] for start, end in pairwise([0, *sentence_ends(text), len(text)])]
    ['Dr. A. Li came at 3.5 p.m. and left. ', 'Why?']
    """
    ends = []
    has_capitals = text != text.lower()
    for match in SENTENCE_END.finditer(text):
        following = text[match.end() : match.end() + 1]
        goes_on = has_capitals and following.islower() and match[0].count("\n") < 2
        stop = match["stop"]
        if stop == "." and not goes_on:
            before = text[max(0, match.start() - LONGEST_ABBREVIATION) : match.start()]
            goes_on = ABBREVIATION.search(before) is not None and "\n" not in match[0]
        if following and not goes_on:
            ends.append(match.end())
    return ends


# ---- the tokens of segments


@dataclass(frozen=True)
class TokenSegments:
    """The segments of a record's key tokens, and the characters that each token covers.

    A token that crosses a border belongs where its first character that is no space lies. A special token that stands
    for no characters ([CLS]) is a segment of its own, called by its name.
    """

    segments: Segments
    offsets: tuple[tuple[Count, Count], ...]
    """From which character to before which; for a token that stands for none, twice the same."""

    def __post_init__(self) -> None:
        check_fields(self, {})
        last = max((end for _, end in self.offsets), default=0)
        if last > len(self.text) or any(start > end for start, end in self.offsets):
            raise BadInput(f"Tokens of segments lie within their text of {len(self.text)} characters, in their order.")

    @property
    def text(self) -> str:
        """The text that the segments and the places of the tokens are of."""
        return self.segments.text

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the segments, the outermost first."""
        return tuple(self.segments.levels)

    def groups(
        self, level: str, tokens: Sequence[str], special: Sequence[bool]
    ) -> tuple[list[list[int]], tuple[str, ...], tuple[str, ...]]:
        """The positions of each segment of a level that has tokens, what it is called, and of what kind it is."""
        leaves = self.segments.leaves(level)
        alone: dict[int, str] = {
            position: token
            for position, (token, quiet) in enumerate(zip(tokens, special, strict=True))
            if quiet and self.offsets[position][0] == self.offsets[position][1]
        }
        groups: dict[tuple[bool, int], list[int]] = {}
        for position, leaf in enumerate(self._leaf_of(leaves)):
            groups.setdefault((True, position) if position in alone else (False, leaf), []).append(position)
        labels = tuple(alone[place] if by_itself else self.segments.label(leaves[place]) for by_itself, place in groups)
        kinds = tuple(MARKER if by_itself else leaves[place].kind for by_itself, place in groups)
        return list(groups.values()), labels, kinds

    def _leaf_of(self, leaves: Sequence[Span]) -> Iterator[int]:
        """Which leaf each token belongs to."""
        leaf_of = [place for place, leaf in enumerate(leaves) for _ in range(leaf.start, leaf.end)]
        for start, end in self.offsets:
            covered = self.text[start:end]
            spaces = len(covered) - len(covered.lstrip())
            first = start if spaces == len(covered) else start + spaces
            yield leaf_of[min(first, len(leaf_of) - 1)]

    def merged(self, groups: Sequence[Sequence[int]]) -> "TokenSegments":
        """The same for units of several tokens."""
        return TokenSegments(self.segments, tuple(self._around(group) for group in groups))

    def _around(self, group: Sequence[int]) -> Range:
        covering = [self.offsets[place] for place in group if self.offsets[place][0] < self.offsets[place][1]]
        return (covering[0][0], max(end for _, end in covering)) if covering else self.offsets[group[0]]
