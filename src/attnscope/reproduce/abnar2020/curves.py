"""Tables 1 to 3 as curves: how each method agrees with what the model uses, layer by layer, the paper's beside it."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ...views.palette import CATEGORICAL
from ...views.printing import COLUMN, PAGE, QUIET, Plot, drawn_figure, legend_below, whole_numbers
from .paper import Row
from .scoring import BASELINES, METHODS

COLOURS = dict(zip(METHODS, (CATEGORICAL[5], CATEGORICAL[0], CATEGORICAL[2]), strict=True))
MARKS = dict(zip(METHODS, "so^", strict=True))
"""Told apart by more than colour."""


def agreement_curves(
    panels: Mapping[str, pd.DataFrame],
    paper: Mapping[str, Mapping[str, Row]],
    caption: str,
    label: str = "rank correlation",
) -> Plot:
    """One panel for each table with seed, method, layer and mean: a line for each seed, the paper's dashed.

    Baselines, which have no layer, are dotted lines.
    """
    wide = PAGE if len(panels) > 1 else COLUMN
    with drawn_figure(wide, 2.5) as figure:
        every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (name, table) in zip(every, panels.items(), strict=True):
            for method in METHODS:
                _draw_method(axes, table[table["method"] == method], method, paper.get(name, {}).get(method, {}))
            # one name at the left and one at the right, or they would meet
            for baseline, (where, side) in zip(BASELINES, ((1, "left"), (table["layer"].max(), "right")), strict=True):
                mean = table.loc[table["method"] == baseline, "mean"].mean()
                axes.axhline(mean, color=QUIET, linewidth=0.6, linestyle=":")
                style = {"textcoords": "offset points", "ha": side, "color": QUIET, "fontsize": 7, "zorder": 5}
                # on a ground of its own, so that no curve strikes it through
                style["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85}
                axes.annotate(baseline, (where, mean), (0, 1), **style)
            axes.set(title=name, xlabel="layer")
            axes.xaxis.set_major_locator(whole_numbers(12))
        every[0].set(ylabel=label)
        legend_below(figure, every[-1])
    return Plot(figure, caption)


def _draw_method(axes: Any, table: pd.DataFrame, method: str, paper: Row) -> None:
    style = {"color": COLOURS[method], "linewidth": 1, "marker": MARKS[method], "markersize": 3}
    for number, (_, rows) in enumerate(table.groupby("seed", dropna=False)):
        axes.plot(rows["layer"], rows["mean"], label=method if number == 0 else None, **style)
    if paper:
        axes.plot(
            list(paper), [mean for mean, _ in paper.values()], color=COLOURS[method], linewidth=0.8, linestyle="--"
        )
