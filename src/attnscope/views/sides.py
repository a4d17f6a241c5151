"""The tokens of a record as a view shows them: texts, words, special tokens, sinks and the sentences of a pair."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import category

import torch

from ..errors import BadInput
from ..record import AttentionRecord, readable
from ..record.words import word_groups, word_labels
from ..statistics.sinks import sinks_of
from .printing import shorten

DELETE = 0x7F
TITLE = 60
"""Letters of a text that a page is called by."""
NO_CHARACTERS = "\ufffe\uffff"
"""What Unicode reserves as no character; XML, and so an SVG, may not hold them."""


def token_texts(tokens: Sequence[str]) -> list[str]:
    """Each token as it is drawn: without markers and the space around it, an invisible one as a sign.

    >>> token_texts(["Ġkey", "Ġ", ""])
    ['key', '␣', '∅']
    """
    return [_display_text(text) for text in readable(tokens)]


def printable(text: str) -> str:
    r"""A text whose control characters, halves of characters and reserved ones are signs to be seen.

    Neither a file of text nor an SVG may hold all of them, and a reader sees none.

    >>> printable("b\x1b\x00"), printable("\ud800\x85"), printable("שלום $x$")
    ('b␛␀', '��', 'שלום $x$')
    """
    return "".join(map(_sign, text)) if any(_sign(letter) != letter for letter in text) else text


def _sign(letter: str) -> str:
    if letter in NO_CHARACTERS or category(letter) == "Cs":
        return "\ufffd"
    if category(letter) != "Cc":
        return letter
    code = ord(letter)
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == DELETE else "\ufffd"


def _display_text(text: str) -> str:
    return printable(text.strip()) or ("␣" if text else "∅")


def join_marks(tokens: Sequence[str], word_ids: Sequence[int | None], special: Sequence[bool]) -> list[bool]:
    """Which tokens go on with the word of the token before them, so that a thin join stands for the marker.

    The tokenizer's own word ids tell; where they are unknown (each token its own word), the markers do.

    >>> join_marks(["play", "##ing", "now"], [0, 1, 2], [False] * 3), join_marks(["Ġplay", "ing"], [0, 0], [False] * 2)
    ([False, True, False], [False, True])
    >>> join_marks(["Ġat", "Ġhome", "."], [0, 1, 2], [False] * 3)
    [False, False, False]
    """
    texts = readable(tokens)
    marks_starts = any(text.startswith(" ") for text in texts)
    marks = []
    for position, (token, text) in enumerate(zip(tokens, texts, strict=True)):
        if position == 0 or special[position] or special[position - 1]:
            marks.append(False)
            continue
        same_word = word_ids[position] is not None and word_ids[position] == word_ids[position - 1]
        # a full stop stands at its word without being a piece of it
        without_space = marks_starts and not text.startswith(" ") and any(letter.isalnum() for letter in text)
        marks.append(same_word or without_space or (text != token and token.startswith("##")))
    return marks


def sides_of(record: AttentionRecord, sentence_b_start: int | None = None) -> dict[str, Any]:
    """The queries and the keys for a script; a pair of sentences is told apart on both sides.

    `sentence_b_start` is the first token of the second sentence, where the record itself does not tell.
    """
    sinks = sinks_of(record)
    sentences = sentences_of(record, sentence_b_start)
    queries = side_of(record.query_tokens, record.query_word_ids, record.query_special, sentences)
    keys = side_of(record.key_tokens, record.key_word_ids, record.key_special, sentences)
    own = record.stack != "cross"
    queries["pair"] = keys["pair"] = ["Prompt", "Answer"] if _prompt_tokens(record) else ["A", "B"]
    queries["sinks"] = [position for position in sinks if own]
    keys["sinks"] = sinks
    queries["masked"] = [position for position, masked in enumerate(record.masked_queries) if masked]
    return {"queries": queries, "keys": keys, "stack": record.stack, "causal": record.causal}


def title_of(view: str, side: Mapping[str, Any], record: AttentionRecord | None = None) -> str:
    """What a page is called: the view, the beginning of the text, and the model where it is known."""
    special = set(side["special"])
    text: Any = None if record is None else record.text
    if isinstance(text, tuple):
        text = " / ".join(text)
    text = text or " ".join(word["text"] for word in side["words"] if word["places"][0] not in special)
    text = printable(" ".join(text.split()))
    cut = text if len(text) <= TITLE else f"{text[: TITLE - 1].rstrip()}…"
    model = None if record is None else record.card.get("model")
    return f"{view.capitalize()} view: “{cut}”" + (f" · {printable(str(model))}" if model else "")


def readout_places(record: AttentionRecord) -> list[int]:
    """Where the answer is read: the strongest positions of the read-out, all of them for a mean."""
    return [int(place) for place in torch.isclose(record.readout, record.readout.max()).nonzero().flatten()]


def _prompt_tokens(record: AttentionRecord) -> int:
    """How many tokens are the prompt, where the others were written by the model or given as its answer; else 0."""
    prompt = record.card.get("prompt_tokens")
    if not isinstance(prompt, int) or record.stack == "cross" or record.card.get("level") == "word":
        return 0
    return prompt if 0 < prompt < len(record.key_tokens) else 0


def sentences_of(record: AttentionRecord, sentence_b_start: int | None = None) -> list[int] | None:
    """For each token 0 or 1, the sentence of a pair that it belongs to; None where there is one text only.

    What a model wrote is the second of a pair whose first is the prompt.
    """
    count = len(record.key_tokens)
    if sentence_b_start is None and (prompt := _prompt_tokens(record)):
        sentence_b_start = prompt
    if sentence_b_start is not None:
        if record.stack == "cross" or not 0 < sentence_b_start < count:
            raise BadInput(f"The second sentence must begin within the {count} tokens of self-attention.")
        return [int(position >= sentence_b_start) for position in range(count)]
    if record.stack == "cross" or not isinstance(record.text, tuple) or len(record.text) != 2:
        return None
    kinds = record.inputs.get("token_type_ids")
    if kinds is not None and len(kinds) == count and set(kinds.tolist()) == {0, 1}:
        return [int(kind) for kind in kinds.tolist()]
    # the tokenizer numbers words through a pair, and puts special tokens between its sentences
    inner = [position for position in range(1, count - 1) if record.key_special[position]]
    between = [position for position in inner if not all(record.key_special[:position])]
    if not between:
        return None
    start = next((position for position in range(between[0] + 1, count) if not record.key_special[position]), count)
    return [int(position >= start) for position in range(count)]


def side_of(
    tokens: Sequence[str], word_ids: Sequence[int | None], special: Sequence[bool], sentences: list[int] | None
) -> dict[str, Any]:
    """One side for a script: its texts, joins, special tokens, words, and the sentence of each token."""
    groups = word_groups(word_ids, special)
    return {
        "texts": token_texts(tokens),
        "joins": [position for position, join in enumerate(join_marks(tokens, word_ids, special)) if join],
        "special": [position for position, quiet in enumerate(special) if quiet],
        "words": [
            {"text": _display_text(label), "places": group}
            for label, group in zip(word_labels(tokens, groups), groups, strict=True)
        ],
        "sentences": sentences,
    }


# What stands in a row or column of a view: a token or a whole word, and which of them a state shows.
# The rules are those of units.js, so that the screen, the printed figure and the table show the same.


MOST_UNITS = 64
"""Tokens that a printed column or row can hold readably; beyond it quiet ones are folded away."""
UNFOLDED = 40
"""How many tokens stay where quiet ones are folded away, as on the screen."""
NAMED = 25
"""Letters of a token that a caption names."""


@dataclass(frozen=True)
class Unit:
    """A token or a word of one side."""

    text: str
    places: tuple[int, ...]
    """The positions of its tokens."""
    quiet: bool
    """Whether it is a special token or holds a sink."""
    join: bool
    """Whether it goes on with the word of the token before it; a whole word never does."""
    sentence: int | None
    """0 or 1, the sentence of a pair that it belongs to; None where there is one text only."""

    def holds(self, positions: Collection[int]) -> bool:
        """Whether any of these tokens is in it."""
        return not set(positions).isdisjoint(self.places)


def units_of(side: Mapping[str, Any], *, words: bool) -> list[Unit]:
    """The tokens of one side (`sides_of`), or its words."""
    tokens = [{"text": text, "places": [place]} for place, text in enumerate(side["texts"])]
    quiet, joins, sentences = {*side["special"], *side["sinks"]}, set(side["joins"]), side["sentences"]
    return [
        Unit(
            text=unit["text"],
            places=tuple(unit["places"]),
            quiet=not quiet.isdisjoint(unit["places"]),
            join=not words and unit["places"][0] in joins,
            sentence=None if sentences is None else sentences[unit["places"][0]],
        )
        for unit in (side["words"] if words else tokens)
    ]


def in_sight(units: Sequence[Unit], *, special: bool, sentence: int | None = None) -> list[int]:
    """The places of the units that are shown: all or those that are no special token and no sink, of one sentence."""
    return [
        place for place, unit in enumerate(units) if (special or not unit.quiet) and sentence in (None, unit.sentence)
    ]


def check_in_sight(places: Sequence[int], *, special: bool) -> None:
    """Refuse a figure of nothing, and say what would bring something into sight."""
    if not places and not special:
        raise BadInput("Every token is special or a sink, so that nothing is left to draw: show special tokens.")
    if not places:
        raise BadInput("No token belongs to this sentence, so that nothing is left to draw: show all sentences.")


def check_fits(count: int, what: str, way: str = "take a shorter text") -> None:
    """Refuse a figure nobody could read, and say a way that works."""
    if count > MOST_UNITS:
        raise BadInput(
            f"A printed figure holds {MOST_UNITS} {what} readably, and this text has {count}: {way},"
            " or save the view as .html."
        )


def shown_units(side: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[list[Unit], list[int]]:
    """All units of one side at the level that a state chooses, and the places of those that it shows; never none."""
    special = bool(state.get("special", True))
    units = units_of(side, words=bool(state.get("words")))
    places = in_sight(units, special=special)
    check_in_sight(places, special=special)
    return units, places


def units_holding(units: Iterable[Unit], positions: Collection[int]) -> tuple[Unit, ...]:
    """The units that hold some of these tokens."""
    return tuple(unit for unit in units if unit.holds(positions))


def quoted_texts(units: Iterable[Unit]) -> str:
    """Units by their texts, for a caption."""
    return " + ".join(f"“{shorten(unit.text, NAMED)}”" for unit in units)
