"""The curves of a training: rows that keep coming, by quantity and name, and the bytes that a script draws."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import BadInput
from .learning_rows import BAND, COLUMNS, KEYS, checked_rows
from .packing import base64_text, deflated

RECENT = 2000
"""Rows that travel by themselves: only when there are more are all the bytes made and sent anew."""
MEANT = {"positive": 0, "negative": 5, "neutral": 7}
"""Groups that have their colour in every figure: blue, orange and grey."""
OTHERS = (2, 3, 4, 1, 6, 0, 5, 7)
"""The order in which other groups, or names without one, take the eight colours."""
DASHES = 4
"""Patterns for names of one colour, one after the other."""


class Curves:
    """Rows by quantity and name. `payload` and `blobs` are what a view shows, and change in place when rows are added.

    Bytes hold what has settled; a few rows of late stand beside them in the payload, so that a training can be watched
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
        groups = _grouped(self.groups, zip(pairs["name"], pairs["group"], strict=True))
        if self.wanted is not None:
            table = table[table["quantity"].isin(self.wanted)]
            groups = {
                name: group for name, group in groups.items() if name in self.groups or name in set(table["name"])
            }
        self.groups = groups
        table = table.sort_values("step", kind="stable")
        behind = self._follow(table)
        self._recent = _joined(self._recent, table)
        if behind or len(self._recent) > RECENT:
            self._settle()
        self._describe()

    @property
    def quantities(self) -> list[str]:
        """What has a panel, in its order."""
        return (
            list(self.wanted)
            if self.wanted is not None
            else list(dict.fromkeys(quantity for quantity, _ in self._last))
        )

    def frame(self) -> pd.DataFrame:
        """Every row that is shown, curve by curve; the band only where there is one."""
        table = _merged(self._settled, self._recent)
        order = {quantity: place for place, quantity in enumerate(self.quantities)}
        names = {name: place for place, name in enumerate(self.groups)}
        table = table.assign(group=table["name"].map(self.groups))
        places = pd.DataFrame(
            {"one": table["quantity"].map(order), "two": table["name"].map(names), "three": table["step"]}
        )
        table = table.loc[places.sort_values(["one", "two", "three"]).index].reset_index(drop=True)
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
        self._settled, self._recent = _merged(self._settled, self._recent), checked_rows([])
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
        self.blobs["curves"] = deflated(*steps, *arrays)

    def _describe(self) -> None:
        """Make the payload true: which curves there are, and the rows of late as bytes."""
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


def _grouped(known: Mapping[str, str], pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The group of each name; a row that has none says nothing about it."""
    groups = dict(known)
    for name, group in pairs:
        held = groups.get(name, "")
        if group and held and group != held:
            raise BadInput(f"{name!r} is in two groups, {held} and {group}: give each name one group.")
        groups[name] = group or held
    return groups


def _joined(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    return (
        pd.concat([first, second], ignore_index=True)
        if len(first) and len(second)
        else second
        if len(second)
        else first
    )


def _merged(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """All rows; of several for one step of a curve, the last."""
    return _joined(first, second).drop_duplicates(KEYS, keep="last", ignore_index=True)
