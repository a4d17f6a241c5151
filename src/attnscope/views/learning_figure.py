"""The printed learning view: a small panel for each quantity, a curve for each name, on one axis of steps."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64

from ..errors import BadInput
from ..numerals import counted
from ..paint import CATEGORICAL
from .printing import INK, PAGE, QUIET, Plot, drawn_figure, fit_text, small_multiples, text_width

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
        for axes, quantity, lowest in small_multiples(figure, quantities, across, sharex=True):
            drawn = [(look, curves[quantity, look["name"]]) for look in looks if (quantity, look["name"]) in curves]
            _draw_panel(axes, drawn, state, int(width / across * DOTS_PER_INCH), labelled=most <= LABELLED)
            axes.set_title(fit_text(quantity, width / across - 0.5), loc="left", pad=3)
            axes.tick_params(labelbottom=lowest)
            axes.set_xlabel(label if lowest else "", labelpad=2)
        _set_steps(figure.axes, table["step"].to_numpy(), state)
        if legend:
            texts, samples = zip(*legend, strict=True)
            lines = [figure.axes[0].plot([], [], **sample)[0] for sample in samples]
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
            1.07, share, fit_text(look["name"], 0.9, 7), transform=axes.transAxes, fontsize=7, va="center", color=INK
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
    return [(fit_text(look["name"] or "no name", 1.4, 7), _line(look)) for look in together]


def _set_steps(panels: Any, steps: Any, state: Mapping[str, Any]) -> None:
    least, most = int(steps.min()), int(steps.max())
    first = panels[0]
    first.set_xlim((least, most) if most > least else (least - 1, least + 1))
    if state.get("scale") != "log":
        first.xaxis.get_major_locator().set_params(nbins=4, integer=True)
        return
    first.set_xlim(left=max(first.get_xlim()[0], 0))
    powers = [0, *(10**power for power in range(16))]
    for axes in panels:
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
