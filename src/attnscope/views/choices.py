"""What may be chosen in a view: layers, heads, tokens, methods; anything else is refused in one sentence."""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from ..errors import BadInput
from ..record import AttentionRecord

LISTS = ("heads", "queries", "keys", "methods", "names")
"""What is chosen as a list; all else is one value."""

SHARES = ("threshold", "opacity")
"""What is a number from 0 to 1."""


def check_record(given: object, view: str) -> None:
    """Refuse what is no record, and say how one is made."""
    if not isinstance(given, AttentionRecord):
        raise BadInput(
            f"The {view} view shows an AttentionRecord, as model.record(text) or AttentionRecord.from_weights(...)"
            f" gives, not {_kind(given)}."
        )


def check_count(number: object, what: str) -> None:
    """Refuse what is no whole number of bytes, keys or tokens; None is no wish."""
    if number is not None and (isinstance(number, bool) or not isinstance(number, Integral)):
        raise BadInput(f"{what} is a whole number, not {number!r}.")


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
    return {name: _checked(name, value, opening[name], choices.get(name)) for name, value in wanted.items()}


def _checked(name: str, value: Any, opening: Any, allowed: Sequence[Any] | None) -> Any:
    if isinstance(opening, bool):
        if not isinstance(value, bool):
            raise BadInput(f"{name} is True or False, not {value!r}.")
    elif name in SHARES:
        number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
        if not number or not 0 <= value <= 1:
            raise BadInput(f"{name} is a number from 0 to 1, not {value!r}.")
        return float(value)
    elif allowed is not None and value is None:
        if None not in allowed:
            raise BadInput(f"{name} must be chosen; there is {_in_words(allowed)}.")
    elif allowed is not None:
        return several(value, allowed, name) if name in LISTS else known(value, allowed, name)
    return value


def _kind(given: object) -> str:
    return "nothing" if given is None else f"a {type(given).__name__}"


def _in_words(values: Sequence[Any]) -> str:
    """Numbers as a span where they follow each other, and anything else one by one."""
    some = [value for value in values if value is not None]
    if not some:
        return "none"
    if len(some) > 1 and all(isinstance(value, int) for value in some) and some == list(range(some[0], some[-1] + 1)):
        return f"{some[0]} to {some[-1]}"
    return ", ".join(map(str, some))
