"""What may be chosen in a view: layers, heads, tokens, methods; anything else is refused in one sentence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord
from .sides import Unit, check_in_sight, holding, in_sight, named, units_of


@dataclass(frozen=True)
class Kept:
    """What a name in the state of a view holds: a notebook, a link and Python keep nothing else under it."""

    kind: str
    """number, numbers, switch, share (from 0 to 1), text, texts, places (layer and head of some heads), or sorting."""
    optional: bool = False
    """Whether nothing may be chosen."""
    of: str = ""
    """"text" or "model": what it speaks of, so that it says nothing about another one."""


KEPT: Mapping[str, Kept] = {
    "layer": Kept("number", optional=True, of="model"),
    "head": Kept("number", optional=True, of="model"),
    "heads": Kept("numbers", optional=True, of="model"),
    "query": Kept("number", of="text"),
    "queries": Kept("numbers", of="text"),
    "keys": Kept("numbers", of="text"),
    "pinned": Kept("places", of="text"),
    "step": Kept("number", optional=True),
    **dict.fromkeys(("words", "special", "root", "lines", "enlarged"), Kept("switch")),
    **dict.fromkeys(("threshold", "opacity"), Kept("share")),
    **dict.fromkeys(("between", "order", "scale", "layout", "reference", "statistic", "measure"), Kept("text")),
    "role": Kept("text", optional=True),
    **dict.fromkeys(("methods", "names", "label"), Kept("texts", optional=True)),
    **dict.fromkeys(("sort_layers", "sort_heads"), Kept("sorting", optional=True, of="model")),
}
"""All that any view keeps. A view declares what it keeps by the names in its state; its scripts have no list."""


def declared(view: str, state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the host of a view must know of all that the view keeps; a link would drop what is not declared.

    >>> declared("head", {"words": True})
    {'words': {'kind': 'switch', 'optional': False, 'of': ''}}
    """
    if unknown := sorted(state.keys() - KEPT.keys()):
        raise BadInput(f"The {view} view keeps {', '.join(unknown)}, which KEPT in views/choices.py does not declare.")
    return {name: asdict(KEPT[name]) for name in state}


def known(number: Any, numbers: Sequence[Any], what: str) -> Any:
    """A layer or head by its number, counted from the end if negative; the first if none is asked for."""
    if number is None:
        return numbers[0]
    counted = [one for one in numbers if one is not None]
    if isinstance(number, Integral) and not isinstance(number, bool) and -len(counted) <= int(number) < 0:
        return counted[int(number)]
    if isinstance(number, bool) or number not in counted:
        raise BadInput(f"There is no {what} {number!r} in this record; it has {_in_words(counted)}.")
    return int(number) if isinstance(number, Integral) else number


def several(numbers: Any, allowed: Sequence[Any], what: str) -> list[Any]:
    """Layers, heads or tokens of a list, each once by its number."""
    if isinstance(numbers, str) or not isinstance(numbers, Sequence | range) or None in numbers:
        raise BadInput(f"{what} is a list of them, not {numbers!r}.")
    return [known(number, allowed, what.rstrip("s")) for number in numbers]


def position(number: Any, count: int, what: str) -> int:
    """A token by its position among so many, counted from the end if negative."""
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise BadInput(f"A {what} is given by its position, a whole number, not {number!r}.")
    if not -count <= int(number) < count:
        raise BadInput(f"There is no {what} {number}: this text has {count} tokens, counted from 0.")
    return int(number) % count


def checked_state(
    view: str, opening: Mapping[str, Any], choices: Mapping[str, Sequence[Any]], wanted: Mapping[str, Any]
) -> dict[str, Any]:
    """What is to be selected, if all of it can be; `choices` are the values of a name, None where none is needed."""
    if unknown := sorted(wanted.keys() - opening.keys()):
        raise BadInput(f"In the {view} view there is no {', '.join(unknown)} to select: there is {', '.join(opening)}.")
    return {name: _checked(name, value, choices.get(name)) for name, value in wanted.items()}


def _checked(name: str, value: Any, allowed: Sequence[Any] | None) -> Any:
    kind = KEPT[name].kind
    if kind == "switch":
        if not isinstance(value, bool):
            raise BadInput(f"{name} is True or False, not {value!r}.")
    elif kind == "share":
        number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
        if not number or not 0 <= value <= 1:
            raise BadInput(f"{name} is a number from 0 to 1, not {value!r}.")
        return float(value)
    elif allowed is not None and value is None:
        if None not in allowed:
            raise BadInput(f"{name} must be chosen; there is {_in_words(allowed)}.")
    elif allowed is not None:
        return several(value, allowed, name) if kind in ("numbers", "texts") else known(value, allowed, name)
    return value


def _in_words(values: Sequence[Any]) -> str:
    """Numbers as a span where they follow each other, and anything else one by one."""
    some = [value for value in values if value is not None]
    if not some:
        return "none"
    if len(some) > 1 and all(isinstance(value, int) for value in some) and some == list(range(some[0], some[-1] + 1)):
        return f"{some[0]} to {some[-1]}"
    return ", ".join(map(str, some))


# What a printed figure shows of a record: the words, tokens and weights that a view's state selects.


MOST_UNITS = 64
"""Tokens that a printed column or row can hold readably."""
SENTENCES = "AB"
"""What the sentences of a pair are called."""


@dataclass(frozen=True)
class Selection:
    """Rows and columns of a figure, and the weights between them."""

    queries: tuple[Unit, ...]
    keys: tuple[Unit, ...]
    weights: Float[Tensor, "layer head query key"]
    looked_at: Bool[Tensor, "query key"]
    """Between which of them weights are drawn: of tokens that are pinned only, where some are."""
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    hidden: Float[Tensor, " layer"]
    """The share of the attention of the shown rows that goes to keys left out."""
    choice: str
    """Which sentences and which pinned tokens are chosen, in words; nothing where all are."""

    def said(self, layer: int | slice = slice(None)) -> str:
        """What is chosen and left out of these layers, in words; nothing where everything is shown."""
        hidden = float(self.hidden[layer].mean())
        left_out = f" Tokens left out take {100 * hidden:.1f} % of the attention." if hidden > 1e-6 else ""
        return self.choice + left_out


def selected(record: AttentionRecord, sides: Mapping[str, Any], state: Mapping[str, Any]) -> Selection:
    """The part of a record that is selected, as the screen shows it.

    That is words or tokens, with or without special tokens and sinks, from one sentence of a pair to one, these heads,
    and the weights of the tokens that are pinned; `sides` are those of the record (`sides_of`).
    """
    words, special = bool(state.get("words")), bool(state.get("special", True))
    between = str(state.get("between") or "all")
    units, places = [], []
    for side, name in enumerate(("queries", "keys")):
        of_side = units_of(sides[name], words=words)
        found = in_sight(of_side, special=special, sentence=None if between == "all" else int(between[side]))
        check_in_sight(found, special=special)
        units.append(tuple(of_side[place] for place in found))
        places.append(found)
    chosen = state.get("heads")
    heads = [place for place, number in enumerate(record.heads) if chosen is None or number in chosen]
    of_rows = (record.words() if words else record).weights[:, heads][:, :, places[0]]
    weights = of_rows[..., places[1]]
    mass = of_rows.sum((1, 2, 3))
    pinned = [state.get("queries") or (), state.get("keys") or ()]
    rows, columns = (_looked_at(*side) for side in zip(units, pinned, strict=True))
    return Selection(
        queries=units[0],
        keys=units[1],
        weights=weights,
        looked_at=rows.unsqueeze(-1) & columns,
        layers=record.layers,
        heads=tuple(record.heads[place] for place in heads),
        # rows that attend to nothing hide nothing
        hidden=((mass - weights.sum((1, 2, 3))) / mass.masked_fill(mass == 0, 1.0)).clamp(min=0.0),
        choice=_choice(between, *(named(holding(*side)) for side in zip(units, pinned, strict=True))),
    )


def _looked_at(units: tuple[Unit, ...], pinned: tuple[int, ...] | list[int]) -> Bool[Tensor, " unit"]:
    """The units that are pinned; all where none in sight is."""
    held = torch.tensor([unit.holds(pinned) for unit in units])
    return held if bool(held.any()) else torch.ones_like(held)


def _choice(between: str, queries: str, keys: str) -> str:
    said = ""
    if between != "all":
        first, second = (SENTENCES[int(sentence)] for sentence in between)
        said += f" Shown is what sentence {first} attends to in sentence {second}."
    if queries or keys:
        ends = [f"{word} {names}" for word, names in (("from", queries), ("to", keys)) if names]
        said += f" Only lines {' '.join(ends)} are drawn."
    return said


def check_fits(count: int, what: str) -> None:
    """Refuse a figure nobody could read."""
    if count > MOST_UNITS:
        raise BadInput(
            f"A printed figure holds {MOST_UNITS} {what} readably, and this text has {count}: take a shorter text,"
            " or save the view as .html."
        )
