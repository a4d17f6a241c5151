"""The printed learning view: a small panel for each quantity, a curve for each name, on one axis of steps."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64

from ..errors import BadInput
from ..numerals import counted
from .learning_rows import BAND, COLUMNS, KEYS, checked_rows
from .palette import CATEGORICAL
from .printing import INK, PAGE, QUIET, Plot, drawn_figure, fitting, text_width
from .weights import base64_text, deflated

PATTERNS = ("solid", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)))
"""The dashes of names of one colour; the script has the same."""
LABELLED = 6
"""Curves of a panel that have their names at their ends; more are named below the panels."""
NAMED = 36
"""Names that a figure can tell apart."""
PANELS = 24
PANEL_HEIGHT, LOWEST_PANEL, LARGEST_HEIGHT = 1.25, 0.9, 8.0
"""Inches of a panel and of all of them: they fit on a page."""
LABEL_SHARE = 0.15
"""The share of a panel's height that a name at the end of a curve takes."""
DOTS_PER_INCH = 100
"""Places across for which the least and the largest value of a curve are drawn: a line is no thinner."""
LOGARITHM = (np.log1p, np.expm1)
"""The logarithmic axis: of step + 1, so that step 0 has its place."""


def learning_figure(
    table: pd.DataFrame, payload: Mapping[str, Any], state: Mapping[str, Any], width: int | float | None = None
) -> Plot:
    """The curves of the names that are selected; a pinned step is a line across all panels."""
    chosen, width = state.get("names"), width or PAGE
    looks = [look for look in payload["names"] if chosen is None or look["name"] in chosen]
    table = table[table["name"].isin([look["name"] for look in looks])]
    quantities = [quantity for quantity in payload["quantities"] if (table["quantity"] == quantity).any()]
    _refuse_what_is_unreadable(table, quantities, looks)
    across = min(
        len(quantities), max(1, round(width / 2.2), math.ceil(len(quantities) * LOWEST_PANEL / LARGEST_HEIGHT))
    )
    down = math.ceil(len(quantities) / across)
    most = max(table[table["quantity"] == quantity]["name"].nunique() for quantity in quantities)
    legend = _legend(looks, labelled=most <= LABELLED)
    columns = max(1, int((width - 0.2) / (max((text_width(text, 7) for text, _ in legend), default=0) + 0.5)))
    below = 0.15 * math.ceil(len(legend) / columns) + 0.05 * bool(legend)
    label = "step, logarithmic" if state.get("scale") == "log" else "step"
    curves = {(quantity, name): rows for (quantity, name), rows in table.groupby(["quantity", "name"], sort=False)}
    height = min(PANEL_HEIGHT, LARGEST_HEIGHT / down)
    with drawn_figure(width, down * height + 0.25 + below) as figure:
        panels = figure.subplots(down, across, squeeze=False, sharex=True)
        for place, axes in enumerate(panels.flat):
            if place >= len(quantities):
                axes.set_axis_off()
                continue
            drawn = [
                (look, curves[quantities[place], look["name"]])
                for look in looks
                if (quantities[place], look["name"]) in curves
            ]
            _draw_panel(axes, drawn, state, int(width / across * DOTS_PER_INCH), labelled=most <= LABELLED)
            axes.set_title(fitting(quantities[place], width / across - 0.5), loc="left", pad=3)
            lowest = place + across >= len(quantities)  # of its column
            axes.tick_params(labelbottom=lowest)
            axes.set_xlabel(label if lowest else "", labelpad=2)
        _set_steps(panels, table["step"].to_numpy(), state)
        if legend:
            texts, samples = zip(*legend, strict=True)
            lines = [panels[0, 0].plot([], [], **sample)[0] for sample in samples]
            figure.legend(lines, texts, loc="outside lower left", ncols=columns, handlelength=2, columnspacing=1.2)
    return Plot(figure, _caption(table, payload, state, quantities, looks))


def outline(
    places: Float64[np.ndarray, " step"], values: Float64[np.ndarray, " step"], columns: int
) -> Int64[np.ndarray, " drawn"]:
    """Which points of a curve are worth drawing: of each column the first, the least, the largest and the last.

    >>> outline(np.arange(8.0), np.array([0, 5, -5, 1, 2, 2, 2, 3.0]), 1).tolist()
    [0, 1, 2, 7]
    """
    if len(places) <= 4 * columns:
        return np.arange(len(places))
    span = places[-1] - places[0] or 1.0
    column = np.minimum((places - places[0]) / span * columns, columns - 1).astype(np.int64)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    ends = np.append(starts[1:], len(places))
    finite = np.isfinite(values)
    least = np.lexsort((np.where(finite, values, np.inf), column))[starts]
    most = np.lexsort((np.where(finite, values, -np.inf), column))[ends - 1]
    gaps = np.flatnonzero(~finite)
    first_gaps = gaps[np.unique(column[gaps], return_index=True)[1]]
    return np.unique(np.concatenate([starts, least, most, first_gaps, ends - 1]))


def _draw_panel(
    axes: Any,
    curves: Sequence[tuple[Mapping[str, Any], Any]],
    state: Mapping[str, Any],
    columns: int,
    *,
    labelled: bool,
) -> None:
    axes.axhline(0, color=QUIET, linewidth=0.5)
    if state.get("step") is not None:
        axes.axvline(state["step"], color=INK, linewidth=0.6)
    ends = []
    for look, rows in curves:
        steps, values = rows["step"].to_numpy(dtype=float), rows["value"].to_numpy(dtype=float)
        places = LOGARITHM[0](steps) if state.get("scale") == "log" else steps
        kept = outline(places, values, columns)
        values = np.where(np.isfinite(values), values, np.nan)
        if "low" in rows and np.isfinite(rows["low"]).any():
            edges = [rows[edge].to_numpy(dtype=float) for edge in ("low", "high")]
            both = np.union1d(*(outline(places, edge, columns) for edge in edges))
            axes.fill_between(
                steps[both], *(edge[both] for edge in edges), color=_colour(look), alpha=0.18, linewidth=0
            )
        alone = {"marker": "o", "markersize": 2} if np.isfinite(values).sum() == 1 else {}
        axes.plot(steps[kept], values[kept], **_line(look), **alone)
        last = np.flatnonzero(np.isfinite(values))
        if len(last) and look["name"]:
            ends.append((float(values[last[-1]]), look))
    axes.yaxis.get_major_locator().set_params(nbins=4)
    if labelled and len(ends) + bool(curves) > 1:
        _draw_names(axes, ends)


def _draw_names(axes: Any, ends: Sequence[tuple[float, Mapping[str, Any]]]) -> None:
    """The name of each curve beside its end, moved apart where they would touch."""
    bottom, top = axes.get_ylim()
    ordered = sorted(ends, key=lambda end: end[0])
    shares = spread([(value - bottom) / (top - bottom) for value, _ in ordered], LABEL_SHARE)
    for (_, look), share in zip(ordered, shares, strict=True):
        axes.plot([1.01, 1.05], [share, share], transform=axes.transAxes, clip_on=False, **_line(look))
        axes.text(
            1.07, share, fitting(look["name"], 0.9, 7), transform=axes.transAxes, fontsize=7, va="center", color=INK
        )


def spread(places: Sequence[float], gap: int | float) -> list[float]:
    """Places between 0 and 1 in rising order, at least a gap apart, each as near to where it was as is simple.

    >>> [round(place, 2) for place in spread([0.5, 0.51, 0.99], 0.2)]
    [0.5, 0.7, 0.9]
    """
    moved = list(places)
    for place in range(1, len(moved)):
        moved[place] = max(moved[place], moved[place - 1] + gap)
    ceiling = 1 - gap / 2
    for place in reversed(range(len(moved))):
        moved[place] = min(moved[place], ceiling)
        ceiling = moved[place] - gap
    return moved


def _legend(looks: Sequence[Mapping[str, Any]], *, labelled: bool) -> list[tuple[str, dict[str, Any]]]:
    """What stands below the panels: groups where names stand beside their curves or are too many, else names."""
    groups = {look["group"]: {**_line(look), "linestyle": "solid"} for look in looks if look["group"]}
    if labelled or len(looks) > NAMED:
        return list(groups.items())
    together = sorted(looks, key=lambda look: [*groups, ""].index(look["group"]))
    return [(fitting(look["name"] or "no name", 1.4, 7), _line(look)) for look in together]


def _set_steps(panels: Any, steps: Any, state: Mapping[str, Any]) -> None:
    least, most = int(steps.min()), int(steps.max())
    first = panels[0, 0]
    first.set_xlim((least, most) if most > least else (least - 1, least + 1))
    if state.get("scale") != "log":
        first.xaxis.get_major_locator().set_params(nbins=4, integer=True)
        return
    first.set_xlim(left=max(first.get_xlim()[0], 0))
    powers = [0, *(10**power for power in range(16))]
    for axes in panels.flat:
        axes.set_xscale("function", functions=LOGARITHM)
        axes.set_xticks([power for power in powers if least <= power <= most] or [least])


def _refuse_what_is_unreadable(
    table: pd.DataFrame, quantities: Sequence[str], looks: Sequence[Mapping[str, Any]]
) -> None:
    if table.empty:
        raise BadInput("There are no rows to draw yet: add some, or select names that have some.")
    if len(quantities) > PANELS:
        raise BadInput(
            f"A figure holds {PANELS} panels readably, but there are {len(quantities)} quantities: choose some with "
            "quantities=, or save the view as .html."
        )
    if len(looks) > NAMED and not all(look["group"] for look in looks):
        raise BadInput(
            f"A figure tells {NAMED} names apart, but {len(looks)} are shown: give them groups, select some with "
            "view.selecting(names=[…]), or save the view as .html."
        )


def _caption(
    table: pd.DataFrame,
    payload: Mapping[str, Any],
    state: Mapping[str, Any],
    quantities: Sequence[str],
    looks: Sequence[Mapping[str, Any]],
) -> str:
    gaps = int((~np.isfinite(table["value"])).sum())
    hidden = len(payload["names"]) - len(looks)
    said = [
        f"{payload['title']}." if payload["title"] else "",
        f"{', '.join(quantities)} over steps {table['step'].min():,} to {table['step'].max():,}; one curve a name.",
        "The shade runs from low to high." if "low" in table else "",
        f"The line across marks step {state['step']:,}." if state.get("step") is not None else "",
        f"Gaps: {counted(gaps, 'value')} not measured or not finite." if gaps else "",
        f"Hidden: {counted(hidden, 'name')}." if hidden else "",
    ]
    return " ".join(filter(None, said))


def _colour(look: Mapping[str, Any]) -> str:
    return INK if look["colour"] is None else CATEGORICAL[look["colour"]]


def _line(look: Mapping[str, Any]) -> dict[str, Any]:
    return {"color": _colour(look), "linestyle": PATTERNS[look["dash"]], "linewidth": 1.0}


# The curves of a training: rows that keep coming, by quantity and name, and the bytes that a script draws.


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
