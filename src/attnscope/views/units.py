"""What stands in a row or column of a view: a token or a whole word, and which of them a state shows.

The rules are those of units.js, so that the screen, the printed figure and the table show the same.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import BadInput
from .printing import shortened

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


def shown_units(side: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[list[Unit], list[int]]:
    """All units of one side at the level that a state chooses, and the places of those that it shows; never none."""
    special = bool(state.get("special", True))
    units = units_of(side, words=bool(state.get("words")))
    places = in_sight(units, special=special)
    check_in_sight(places, special=special)
    return units, places


def holding(units: Iterable[Unit], positions: Collection[int]) -> tuple[Unit, ...]:
    """The units that hold some of these tokens."""
    return tuple(unit for unit in units if unit.holds(positions))


def named(units: Iterable[Unit]) -> str:
    """Units by their texts, for a caption."""
    return " + ".join(f"“{shortened(unit.text, NAMED)}”" for unit in units)
