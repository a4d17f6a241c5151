"""What may be chosen in a view: layers, heads, tokens, methods; anything else is refused in one sentence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any, Literal

from ..errors import BadInput

Kind = Literal["number", "numbers", "switch", "share", "text", "texts", "places", "sorting"]
"""A share is from 0 to 1, places are the layer and the head of some heads; the others are what their names say."""


@dataclass(frozen=True)
class Kept:
    """What a name in the state of a view holds: a notebook, a link and Python keep nothing else under it."""

    kind: Kind
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
    **dict.fromkeys(("words", "special", "root", "lines", "enlarged", "folded"), Kept("switch")),
    **dict.fromkeys(("threshold", "opacity"), Kept("share")),
    **dict.fromkeys(
        ("between", "order", "scale", "layout", "reference", "statistic", "measure", "method"), Kept("text")
    ),
    "role": Kept("text", optional=True),
    **dict.fromkeys(("methods", "names", "label"), Kept("texts", optional=True)),
    **dict.fromkeys(("sort_layers", "sort_heads"), Kept("sorting", optional=True, of="model")),
}
"""All that any view keeps. A view declares what it keeps by the names in its state; its scripts have no list."""


def declaration_of(view: str, state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the host of a view must know of all that the view keeps; a link would drop what is not declared.

    >>> declaration_of("head", {"words": True})
    {'words': {'kind': 'switch', 'optional': False, 'of': ''}}
    """
    if unknown := sorted(state.keys() - KEPT.keys()):
        raise BadInput(f"The {view} view keeps {', '.join(unknown)}, which KEPT in views/choices.py does not declare.")
    return {name: asdict(KEPT[name]) for name in state}


def pick_one(number: Any, numbers: Sequence[Any], what: str) -> Any:
    """A layer or head by its number, counted from the end if negative; the first if none is asked for."""
    if number is None:
        return numbers[0]
    counted = [one for one in numbers if one is not None]
    if isinstance(number, Integral) and not isinstance(number, bool) and -len(counted) <= int(number) < 0:
        return counted[int(number)]
    if isinstance(number, bool) or number not in counted:
        raise BadInput(f"There is no {what} {number!r} in this record; it has {_in_words(counted)}.")
    return int(number) if isinstance(number, Integral) else number


def pick_several(numbers: Any, allowed: Sequence[Any], what: str) -> list[Any]:
    """Layers, heads or tokens of a list, each once by its number."""
    if isinstance(numbers, str) or not isinstance(numbers, Sequence | range) or None in numbers:
        raise BadInput(f"{what} is a list of them, not {numbers!r}.")
    return [pick_one(number, allowed, what.rstrip("s")) for number in numbers]


def position(number: Any, count: int, what: str) -> int:
    """A token by its position among so many, counted from the end if negative."""
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise BadInput(f"A {what} is given by its position, a whole number, not {number!r}.")
    if not -count <= int(number) < count:
        raise BadInput(f"There is no {what} {number}: this text has {count} tokens, counted from 0.")
    return int(number) % count


def check_state(
    view: str, opening: Mapping[str, Any], choices: Mapping[str, Sequence[Any]], wanted: Mapping[str, Any]
) -> dict[str, Any]:
    """What is to be selected, if all of it can be; `choices` are the values of a name, None where none is needed."""
    if unknown := sorted(wanted.keys() - opening.keys()):
        raise BadInput(f"In the {view} view there is no {', '.join(unknown)} to select: there is {', '.join(opening)}.")
    return {name: _check_value(name, value, choices.get(name)) for name, value in wanted.items()}


def _check_value(name: str, value: Any, allowed: Sequence[Any] | None) -> Any:
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
        return pick_several(value, allowed, name) if kind in ("numbers", "texts") else pick_one(value, allowed, name)
    return value


def _in_words(values: Sequence[Any]) -> str:
    """Numbers as a span where they follow each other, and anything else one by one."""
    some = [value for value in values if value is not None]
    if not some:
        return "none"
    if len(some) > 1 and all(isinstance(value, int) for value in some) and some == list(range(some[0], some[-1] + 1)):
        return f"{some[0]} to {some[-1]}"
    return ", ".join(map(str, some))
