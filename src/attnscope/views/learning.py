"""The learning view: what drives a training, as curves over its steps; it grows while the training runs."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from ..errors import BadInput
from ..record.schema import checked
from .learning_figure import learning_figure
from .sides import printable
from .tables import need
from .view import View
from .weights import base64_text, deflate


@checked
def learning(table: Any, title: str | None = None, quantities: Sequence[str] | None = None) -> View:
    """Curves over the steps of a training: a panel for each quantity, a curve for each name, one step read in all.

    While the training runs, `view.add(rows)` takes more rows, and a notebook that shows the view draws them in place.

    Args:
        table: A table, or a list of rows, with `step`, `quantity`, `name` (a token or a group of them, or "") and
            `value`; on request `group`, which gives the colour, and `low` and `high` for a band. It may be empty.
        title: What stands above the curves.
        quantities: Those that are shown, in this order; else all.
    """
    wanted = [quantities] if isinstance(quantities, str) else quantities
    if wanted is not None and not len(wanted):
        raise BadInput("There is no quantity to show: name at least one, or leave quantities= out for all.")
    rows = checked_rows(table)
    found = list(dict.fromkeys(rows["quantity"]))
    if found and (missing := [quantity for quantity in wanted or () if quantity not in found]):
        raise BadInput(f"There is no quantity {missing[0]!r} in these rows; there are {', '.join(found)}.")
    curves = Curves(rows, wanted, title)
    state = {"step": None, "names": None, "scale": "linear"}
    return View(
        "learning",
        curves.payload,
        state,
        curves.blobs,
        table=curves.frame,
        draw=lambda selected, width: learning_figure(curves.frame(), curves.payload, selected, width),
        grow=curves.add,
    )


# The rows of a training as they are given: checked, each text as text and each number as a number.


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
    return pd.Series(list(map(cache(_text), given)), dtype=object)


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


# The curves of a training: rows that keep coming, by quantity and name, and the bytes that a script draws.


RECENT = 2000
"""Rows that travel by themselves: only when there are more are all the bytes made and sent again."""
MEANT = {"positive": 0, "negative": 5, "neutral": 7}
"""Groups that have their colour in every figure: blue, orange and grey."""
OTHERS = (2, 3, 4, 1, 6, 0, 5, 7)
"""The order in which other groups, or names without one, take the eight colours."""
DASHES = 4
"""Patterns for names of one colour, one after the other."""


class Curves:
    """Rows by quantity and name. `payload` and `blobs` are what a view shows, and change in place when rows are added.

    Bytes hold what has settled; a few recent rows stand beside them in the payload, so that a training can be watched
    step by step without sending everything again.
    """

    def __init__(self, rows: pd.DataFrame, quantities: Sequence[str] | None = None, title: str | None = None) -> None:
        self.wanted = quantities
        self.payload: dict[str, Any] = {"title": title}
        self.blobs: dict[str, bytes] = {}
        self.groups: dict[str, str] = {}
        """The group of each name, in the order in which names have come."""
        self._last: dict[tuple[str, str], int] = {}
        """The last step of each curve, a curve being a quantity and a name, in the order in which they have come."""
        self._settled = self._recent = checked_rows([])
        self._described: dict[str, Any] = {"grids": [], "curves": []}
        self._take(rows)

    def add(self, rows: Any) -> None:
        """Take more rows; one for a step that is there already replaces it."""
        self._take(checked_rows(rows))

    def _take(self, table: pd.DataFrame) -> None:
        """Take rows that have been checked."""
        pairs = table[["name", "group"]].drop_duplicates()
        groups = _groups_of(self.groups, zip(pairs["name"], pairs["group"], strict=True))
        if self.wanted is not None:
            table = table[table["quantity"].isin(self.wanted)]
            groups = {
                name: group for name, group in groups.items() if name in self.groups or name in set(table["name"])
            }
        self.groups = groups
        table = table.sort_values("step", kind="stable")
        behind = self._follow(table)
        self._recent = _join(self._recent, table)
        if behind or len(self._recent) > RECENT:
            self._settle()
        self._describe()

    @property
    def quantities(self) -> list[str]:
        """What has a panel, in its order."""
        return list(dict.fromkeys(quantity for quantity, _ in self._last) if self.wanted is None else self.wanted)

    def frame(self) -> pd.DataFrame:
        """Every row that is shown, curve by curve; the band only where there is one."""
        table = _merge(self._settled, self._recent)
        shown = {"quantity": self.quantities, "name": self.groups}
        orders = {column: {text: place for place, text in enumerate(texts)} for column, texts in shown.items()}
        table = table.assign(group=table["name"].map(self.groups)).sort_values(
            KEYS,
            key=lambda column: column.map(orders[column.name]) if column.name in orders else column,
            ignore_index=True,
        )
        return table[[column for column in COLUMNS if column not in BAND or table[column].notna().any()]]

    def _follow(self, table: pd.DataFrame) -> bool:
        """Note the last step of each curve; whether a row comes before or replaces one that its curve has."""
        behind = False
        for quantity, name, step in zip(table["quantity"], table["name"], table["step"].tolist(), strict=True):
            last = self._last.get((quantity, name), -1)
            behind |= step <= last
            self._last[quantity, name] = max(step, last)
        return behind

    def _settle(self) -> None:
        """Put all rows into the bytes: the steps that curves share once, then the values of each curve."""
        self._settled, self._recent = _merge(self._settled, self._recent), checked_rows([])
        rows = self._settled.groupby(KEYS[:2], sort=False).indices
        columns = {column: self._settled[column].to_numpy(dtype="<f8") for column in ("step", "value", *BAND)}
        grids: dict[bytes, int] = {}
        curves, arrays = [], []
        for curve in self._last:
            own = rows[curve]
            own = own[np.argsort(columns["step"][own])]
            grid = grids.setdefault(columns["step"][own].tobytes(), len(grids))
            band = bool(np.isfinite(columns["low"][own]).any())
            curves.append({"grid": grid, "band": band})
            arrays += [columns[column][own] for column in ("value", *(BAND if band else []))]
        steps = [np.frombuffer(grid, dtype="<f8") for grid in grids]
        self._described = {"grids": [len(grid) for grid in steps], "curves": curves}
        self.blobs["curves"] = deflate(*steps, *arrays)

    def _describe(self) -> None:
        """Make the payload true: which curves there are, and the recent rows as bytes."""
        places = {curve: place for place, curve in enumerate(self._last)}
        settled = [*self._described["curves"], *([{"grid": None, "band": False}] * len(places))]
        recent = np.empty((len(self._recent), 5), dtype="<f8")
        recent[:, 0] = [places[curve] for curve in zip(self._recent["quantity"], self._recent["name"], strict=True)]
        recent[:, 1:] = self._recent[["step", "value", *BAND]]
        self.payload |= {
            "quantities": self.quantities,
            "names": looks_of(self.groups),
            "grids": self._described["grids"],
            "curves": [
                {"quantity": quantity, "name": name, **settled[place]} for (quantity, name), place in places.items()
            ],
            "recent": base64_text(recent.tobytes()),
        }


def looks_of(groups: Mapping[str, str]) -> list[dict[str, Any]]:
    """The colour of each name, by its group or else its own, and the dash that tells it from others of this colour.

    They never change when more names come. What has neither name nor group has no colour: it is drawn as text is.

    >>> [(look["colour"], look["dash"]) for look in looks_of({"superb": "positive", "fine": "positive", "the": ""})]
    [(0, 0), (0, 1), (2, 0)]
    """
    colours: dict[str, int] = {}
    used: dict[int | None, int] = {}
    looks = []
    for name, group in groups.items():
        key = group or name
        if key and key not in colours:
            free = sum(other not in MEANT for other in colours)
            colours[key] = MEANT[key] if key in MEANT else OTHERS[free % len(OTHERS)]
        colour = colours.get(key)
        used[colour] = used.get(colour, -1) + 1
        looks.append({"name": name, "group": group, "colour": colour, "dash": used[colour] % DASHES})
    return looks


def _groups_of(known: Mapping[str, str], pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The group of each name; a row that has none says nothing about it."""
    groups = dict(known)
    for name, group in pairs:
        held = groups.get(name, "")
        if group and held and group != held:
            raise BadInput(f"{name!r} is in two groups, {held} and {group}: give each name one group.")
        groups[name] = group or held
    return groups


def _join(*parts: pd.DataFrame) -> pd.DataFrame:
    """All rows one after the other; pandas would look at the types of a part without rows too."""
    return pd.concat([part for part in parts if len(part)] or [parts[0]], ignore_index=True)


def _merge(*parts: pd.DataFrame) -> pd.DataFrame:
    """All rows; of several for one step of a curve, the last."""
    return _join(*parts).drop_duplicates(KEYS, keep="last", ignore_index=True)
