"""The rows of a training as they are given: checked, each text as text and each number as a number."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..errors import BadInput
from .sides import printable
from .tables import need

KEYS = ["quantity", "name", "step"]
"""What tells rows apart."""
BAND = ["low", "high"]
COLUMNS = ["step", "quantity", "name", "group", "value", *BAND]
LARGEST_STEP = 2**53
"""Up to here a script has every whole number."""


def checked_rows(rows: Any) -> pd.DataFrame:
    """The rows with all columns of a curve: no name or group is "", no band is NaN; one row for each step of a curve.

    >>> checked_rows([{"step": 3, "quantity": "V·W", "value": 0.5}]).to_dict("records")
    [{'step': 3, 'quantity': 'V·W', 'name': '', 'group': '', 'value': 0.5, 'low': nan, 'high': nan}]
    """
    table = _table_of(rows)
    if table.empty:
        empty = {"step": np.int64, "value": float, "low": float, "high": float}
        return pd.DataFrame({column: pd.Series(dtype=empty.get(column, object)) for column in COLUMNS})
    need(table, ["step", "quantity", "value"])
    if one := [column for column in BAND if column in table]:
        need(table, BAND if len(one) == 1 else [])
    nothing = pd.Series([None] * len(table), dtype=object)
    given = {column: table.get(column, nothing) for column in COLUMNS}
    made = pd.DataFrame(
        {
            "step": _steps(given["step"]),
            **{column: _texts(given[column]) for column in ("quantity", "name", "group")},
            **{column: _numbers(given[column], column) for column in ("value", *BAND)},
        }
    )
    _refuse(made["quantity"] == "", "has no quantity: say what its value is a value of")
    _refuse(made["low"] > made["high"], "has a band whose low is above its high")
    _refuse(made.duplicated(KEYS), "has the step, the quantity and the name of a row before it: give each once")
    return made[COLUMNS]


def _table_of(rows: Any) -> pd.DataFrame:
    if isinstance(rows, pd.DataFrame):
        return rows
    listed = list(rows) if isinstance(rows, Iterable) and not isinstance(rows, str | Mapping) else None
    if listed is None or not all(isinstance(row, Mapping) for row in listed):
        raise BadInput(
            "The curves of a training are a table, or a list of rows with step, quantity, name and value, not "
            f"{'a row alone' if isinstance(rows, Mapping) else 'what was given'}: put rows into a list."
        )
    # as they are: pandas' own texts may not hold half a character, which a token can be
    return pd.DataFrame(listed, dtype=object)


def _texts(given: "pd.Series[Any]") -> "pd.Series[Any]":
    """Each as text; the same ones are looked at once."""
    known: dict[Any, str] = {}
    texts = [known[one] if one in known else known.setdefault(one, _text(one)) for one in given]
    return pd.Series(texts, dtype=object)


def _text(given: Any) -> str:
    return "" if given is None or given is pd.NA or given != given else printable(str(given))  # noqa: PLR0124 - NaN


def _steps(given: "pd.Series[Any]") -> Any:
    steps = given.to_numpy()
    if steps.dtype.kind == "i" and steps.min() >= 0 and steps.max() <= LARGEST_STEP:
        return steps.astype(np.int64)
    for row, step in enumerate(given):
        whole = isinstance(step, int | float | np.integer | np.floating) and step == step // 1
        if isinstance(step, bool) or not whole or not 0 <= step <= LARGEST_STEP:
            raise BadInput(f"A step is a whole number from 0 on, but row {row} has {step!r}.")
    return np.array([int(step) for step in given], dtype=np.int64)


def _numbers(given: "pd.Series[Any]", column: str) -> Any:
    try:
        return given.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        row, number = next((row, number) for row, number in enumerate(given) if not _is_number(number))
        raise BadInput(f"Row {row} has {number!r} as its {column}, which is no number.") from None


def _is_number(given: Any) -> bool:
    try:
        return given is None or bool(float(given) or True)
    except (TypeError, ValueError):
        return False


def _refuse(bad: Any, why: str) -> None:
    if bad.any():
        raise BadInput(f"Row {int(np.flatnonzero(bad)[0])} {why}.")
