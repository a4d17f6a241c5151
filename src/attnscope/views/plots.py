"""Printed figures of tidy tables, with the scales of the screen: maps of heads, bars by layer, one against another."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from .. import paint
from ..errors import BadInput
from ..numerals import counted
from ..statistics import ROLE_KINDS, RoleSymbol, role_symbol
from .printing import (
    BAR,
    COLUMN,
    INK,
    MISSING,
    PAGE,
    QUIET,
    Plot,
    colour_map,
    colour_norm,
    colour_scale,
    drawn_figure,
    small_multiples,
    text_width,
    whole_numbers,
)
from .printing import save_figure as save_figure  # noqa: PLC0414 - part of what this file offers
from .tables import grid_of, need, only_one

VECTOR_CELLS = 20_000
"""Cells that a figure draws as shapes; more are one picture for each map, so that the file stays small."""
LARGEST_HEIGHT = 9.0
"""No figure is higher than the text of a page, in inches."""


@dataclass(frozen=True)
class Marks:
    """Heads of a map that are framed, and heads that step back, each by its layer and head."""

    framed: Sequence[tuple[int, int]] = ()
    pale: Sequence[tuple[int, int]] = ()
    why_pale: str = ""

    def in_words(self) -> str:
        """What is marked, in words for the caption."""
        framed = "; ".join(f"layer {layer}, head {head}" for layer, head in self.framed)
        return "".join([f" Framed: {framed}." if framed else "", f" {self.why_pale}" if self.pale else ""])


def head_map(
    table: pd.DataFrame,
    value: str = "value",
    label: str = "",
    caption: str = "",
    width: int | float = COLUMN,
    *,
    scale: str = "linear",
    marks: Marks | None = None,
) -> Plot:
    """A heat map of one figure per head: layers down, heads across, the scale beside it in real units.

    The `scale` is `linear` from 0, or `square root` where a few heads would leave all others pale.
    """
    layers, heads, grid = grid_of(table, value)
    # each cell a square if the page allows, but never so low that twelve layers could not be told apart
    drawn = width - 1.15
    height = min(max(drawn * len(layers) / len(heads), 0.3), drawn * 1.6, LARGEST_HEIGHT - 0.6)
    with drawn_figure(width, height + 0.55) as figure:
        axes, bar = figure.subplots(1, 2, width_ratios=[drawn, 0.09], squeeze=True)
        mesh = _draw_map(axes, grid, vector=grid.size <= VECTOR_CELLS, scale=scale)
        _draw_marks(axes, layers, heads, marks)
        _name_heads(axes, layers, heads)
        figure.colorbar(mesh, cax=bar, label=label or value)
        bar.yaxis.label.set_color(INK)
        notes = ["hatched: not measured"] * bool(np.isnan(grid).any()) + [f"{scale} scale"] * (scale != "linear")
        if notes:
            axes.set_xlabel(f"head   ({', '.join(notes)})")
    text = caption or f"{label or value} of each head; layers down, heads across."
    return Plot(figure, text + (marks.in_words() if marks else "") + _missing_note(grid))


def role_map(table: pd.DataFrame, caption: str = "", width: int | float = COLUMN, marks: Marks | None = None) -> Plot:
    """The role of each head: a colour and letters in its cell, the same in every map; the legend begins with syntax."""
    need(table, ["layer", "head", "role"])
    counts = table["role"].astype(str).value_counts()
    places = {name: place for place, name in enumerate(listed_roles(table["role"]))}
    symbols = [role_symbol(name) for name in places]
    layers, heads, grid = grid_of(table.assign(place=table["role"].astype(str).map(places)), "place")
    drawn = width - 0.5
    height = min(max(drawn * len(layers) / len(heads), 0.3), drawn * 1.6, LARGEST_HEIGHT - 2)
    # letters shrink with their cells, and are left out where a cell could not hold them
    widest = max(text_width(letters) for letters in ("M", *(symbol.letters for symbol in symbols)))
    size = 8.0 * min(1.0, 72 * 0.75 / 8.0 * height / len(layers), 0.9 * drawn / len(heads) / widest)
    room = width - 0.35
    columns = max(1, int(room / (max(text_width(f"{name}  {counts[name]}") for name in places) + 0.36)))
    below = 0.17 * math.ceil(len(places) / columns)
    with drawn_figure(width, height + 0.5 + below) as figure:
        axes, legend = figure.subplots(2, 1, height_ratios=[height, below])
        axes.set(xlim=(0, len(heads)), ylim=(len(layers), 0))
        for (down, across), place in np.ndenumerate(grid):
            symbol = symbols[int(place)] if np.isfinite(place) else None
            _draw_role(axes, across, down, 1.0, 1.0, symbol, size if size >= 4 else 0.0)
        _draw_marks(axes, layers, heads, marks)
        _name_heads(axes, layers, heads)
        legend.set_axis_off()
        legend.set(xlim=(0, room), ylim=(math.ceil(len(places) / columns), 0))
        for name, place in places.items():
            left, top = place % columns * room / columns, place // columns
            _draw_role(legend, left, top + 0.1, 0.2, 0.8, symbols[place], 8.0)
            legend.text(left + 0.28, top + 0.5, f"{name}  {counts[name]}", ha="left", va="center", color=INK)
    text = caption or "The role of each head, by colour and letter; layers down, heads across."
    return Plot(figure, text + (marks.in_words() if marks else "") + _missing_note(grid))


def head_maps(
    tables: Mapping[str, pd.DataFrame],
    value: str = "value",
    label: str = "",
    caption: str = "",
    width: int | float = PAGE,
    columns: int | None = None,
) -> Plot:
    """Small multiples of head maps, one for each name, each on its own scale from 0 to the number at its corner."""
    if not tables:
        raise BadInput("There is no table to draw: give at least one.")
    grids = {name: grid_of(table, value) for name, table in tables.items()}
    vector = sum(grid.size for _, _, grid in grids.values()) <= VECTOR_CELLS
    layers, heads, _ = next(iter(grids.values()))
    across = columns or _columns(len(grids), width)
    down = math.ceil(len(grids) / across)
    side = width / across - 0.28
    size = 7 if side < 1.2 else 8
    panel = min(max(side * len(layers) / len(heads), 0.25), side * 1.6, (LARGEST_HEIGHT - 0.7) / down - 0.36)
    with drawn_figure(width, down * (max(panel, 0.15) + 0.36) + 0.7) as figure:
        for place, (axes, name, _) in enumerate(small_multiples(figure, list(grids), across)):
            layers, heads, grid = grids[name]
            _draw_map(axes, grid, vector=vector)
            _name_heads(axes, layers, heads, most=4)
            axes.set(xlabel="head" if place // across == down - 1 else "", ylabel="")
            largest = _short(float(np.nanmax(grid))) if np.isfinite(grid).any() else "not measured"
            _panel_name(axes, name, largest, size)
        figure.supylabel("layer", fontsize=8)
        # as wide under one row of maps as under several, so that the words at its ends do not meet
        form = {"orientation": "horizontal", "fraction": 0.02, "aspect": max(60, 150 // down), "pad": 0.02}
        bar = figure.colorbar(colour_scale(), ax=figure.axes, **form)
        bar.set_ticks([0, 1], labels=["0", "the number above each map"])
        for corner, edge in zip(bar.ax.get_xticklabels(), ("left", "right"), strict=True):
            corner.set_horizontalalignment(edge)
        bar.set_label(label or value, labelpad=2)  # below the ticks, which are words and would be written over
    missing = any(np.isnan(grid).any() for _, _, grid in grids.values())
    text = caption or f"{label or value} of each head, one map for each of {', '.join(grids)}, each on its own scale."
    return Plot(figure, text + (" Hatched: not measured." if missing else ""))


def layer_bars(
    by_layer: pd.DataFrame,
    value: str = "value",
    label: str = "",
    baseline: int | float | None = None,
    baseline_label: str = "by chance",
    caption: str = "",
    width: int | float = COLUMN,
) -> Plot:
    """Bars by layer with their standard errors, and on request the line that chance or a baseline would give."""
    need(by_layer, ["layer", value])
    only_one(by_layer, ["layer"])
    with drawn_figure(width, width * 0.6) as figure:
        axes = figure.subplots()
        _draw_bars(axes, by_layer, value)
        axes.set(xlabel="layer", ylabel=label or value)
        if baseline is not None:
            axes.axhline(float(baseline), color=INK, linewidth=0.8, linestyle=(0, (4, 2)), label=baseline_label)
            axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    return Plot(figure, caption or f"{label or value} by layer, with standard errors.")


def layer_bars_by_label(
    by_layer: pd.DataFrame,
    by: str,
    value: str = "value",
    label: str = "",
    caption: str = "",
    width: int | float = PAGE,
    columns: int | None = None,
    *,
    shared: bool = False,
) -> Plot:
    """Small multiples of bars by layer, one for each relation or tag, each on its own scale or all on one."""
    need(by_layer, ["layer", by, value])
    only_one(by_layer, ["layer", by])
    names = list(dict.fromkeys(by_layer[by]))
    across = columns or _columns(len(names), width)
    down = math.ceil(len(names) / across)
    with drawn_figure(width, min(down * 0.85 + 0.4, LARGEST_HEIGHT)) as figure:
        for axes, name, _ in small_multiples(figure, names, across, sharey=shared):
            _draw_bars(axes, by_layer[by_layer[by] == name], value, most=4)
            _panel_name(axes, str(name), "", 8)
            axes.yaxis.get_major_locator().set_params(nbins=2)
        figure.supxlabel("layer", fontsize=8)
        figure.supylabel(label or value, fontsize=8)
    scale = "all on one scale" if shared else "each on its own scale"
    return Plot(
        figure, caption or f"{label or value} by layer, one panel for each {by}, {scale}, with standard errors."
    )


def heads_against(
    across: pd.DataFrame,
    up: pd.DataFrame,
    across_label: str,
    up_label: str,
    caption: str = "",
    width: int | float = COLUMN,
) -> Plot:
    """One dot for each head, one statistic against another, the layer as colour; the caption has Pearson's r."""
    for table in (across, up):
        need(table, ["layer", "head", "value"])
        only_one(table, ["layer", "head"])
    keys = ["layer", "head"]
    both = across[[*keys, "value"]].merge(up[[*keys, "value"]], on=keys, suffixes=("_across", "_up"))
    both = both.dropna().sort_values(keys)
    xs, ys = both["value_across"].to_numpy(dtype=float), both["value_up"].to_numpy(dtype=float)
    varied = len(xs) > 2 and xs.std() > 0 and ys.std() > 0
    correlation = f"r = {float(np.corrcoef(xs, ys)[0, 1]):.2f}" if varied else "r is not defined"
    with drawn_figure(width, width * 0.75) as figure:
        axes = figure.subplots()
        # the palest steps would vanish on paper
        dots = axes.scatter(
            xs, ys, c=both["layer"], s=14, cmap=colour_map(from_step=60), vmin=0, linewidths=0.3, edgecolors=INK
        )
        axes.set(xlabel=across_label, ylabel=up_label)
        axes.set_title(f"{correlation}, {counted(len(xs), 'head')}", loc="right", fontsize=8, color=QUIET)
        bar = figure.colorbar(dots, ax=axes, label="layer", aspect=30)
        bar.locator = whole_numbers(6)
        bar.update_ticks()
    text = caption or f"{up_label} against {across_label}, one dot for each head."
    return Plot(figure, f"{text} Pearson's {correlation} over {counted(len(xs), 'head')}.")


def distance_against_entropy(
    distance: pd.DataFrame, entropy: pd.DataFrame, caption: str = "", width: int | float = COLUMN
) -> Plot:
    """How far each head looks against how broadly: the mean distance up, the entropy across."""
    return heads_against(entropy, distance, "entropy of attention (nats)", "mean distance (tokens)", caption, width)


def curve(
    table: pd.DataFrame,
    x: str,
    y: str,
    x_label: str = "",
    y_label: str = "",
    error: str = "error",
    caption: str = "",
    width: int | float = COLUMN,
) -> Plot:
    """One figure along another, such as the share of linked pairs by distance, with a band of its standard error."""
    need(table, [x, y])
    only_one(table, [x])
    table = table.sort_values(x)
    xs, ys = table[x].to_numpy(dtype=float), table[y].to_numpy(dtype=float)
    with drawn_figure(width, width * 0.6) as figure:
        axes = figure.subplots()
        if error in table:
            spread = np.nan_to_num(table[error].to_numpy(dtype=float))
            axes.fill_between(xs, ys - spread, ys + spread, color=paint.sequential()[60], linewidth=0)
        axes.plot(xs, ys, color=BAR, marker="o", markersize=2.5, linewidth=1)
        axes.set(xlabel=x_label or x, ylabel=y_label or y)
        if not (ys < 0).any():
            axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(whole_numbers(8))
    return Plot(figure, caption or f"{y_label or y} by {x_label or x}.")


# ---- how it is drawn


def _draw_map(axes: Any, grid: Float64[np.ndarray, "layer head"], *, vector: bool, scale: str = "linear") -> Any:
    """Cells on a scale from 0, signed ones on a diverging scale; hatching shows where nothing was measured."""
    measured = grid[np.isfinite(grid)]
    largest = float(np.abs(measured).max(initial=0.0)) or 1.0
    signed = bool((measured < 0).any())
    least = -largest if signed else 0.0
    style = {"cmap": colour_map(signed=signed), "norm": colour_norm(scale, least, largest)}
    if np.isnan(grid).any():
        axes.set_facecolor(MISSING)
        axes.fill_between(
            [0, grid.shape[1]], 0, grid.shape[0], facecolor="none", edgecolor=QUIET, hatch="/////", linewidth=0
        )
    cells = np.ma.masked_invalid(grid)
    if vector:
        few = max(grid.shape) <= 24
        mesh = axes.pcolormesh(cells, edgecolors="white" if few else "face", linewidth=0.4 if few else 0.05, **style)
    else:
        extent = (0, grid.shape[1], grid.shape[0], 0)
        mesh = axes.imshow(cells, interpolation="none", aspect="auto", extent=extent, **style)
    axes.set(xlim=(0, grid.shape[1]), ylim=(grid.shape[0], 0))
    return mesh


def _draw_role(
    axes: Any,
    left: int | float,
    top: int | float,
    width: int | float,
    height: int | float,
    symbol: RoleSymbol | None,
    size: int | float,
) -> None:
    """One cell in the colour of a role with its letters."""
    box = [left, left + width], top, top + height
    if symbol is None:
        axes.fill_between(*box, facecolor=MISSING, edgecolor=QUIET, hatch="/////", linewidth=0)
        return
    axes.fill_between(*box, facecolor=symbol.colour, edgecolor="white", linewidth=0.4)
    if size:
        middle = left + width / 2, top + height / 2
        axes.text(*middle, symbol.letters, ha="center", va="center", fontsize=size, color=paint.ink(symbol.colour))


def listed_roles(column: pd.Series) -> list[str]:
    """The names of the roles there are, by kind, syntax first and what is grey last; of a kind the commonest first."""
    counts, kinds = column.astype(str).value_counts(), list(ROLE_KINDS)
    return sorted(counts.index, key=lambda name: (kinds.index(role_symbol(name).kind), -counts[name], name))


def _draw_marks(axes: Any, layers: Sequence[int], heads: Sequence[int], marks: Marks | None) -> None:
    """Frames around heads, and a veil over those that step back."""
    for pairs, style in (
        (marks.pale if marks else (), {"facecolor": "white", "alpha": 0.85, "linewidth": 0, "zorder": 4}),
        (marks.framed if marks else (), {"facecolor": "none", "edgecolor": INK, "linewidth": 1.2, "zorder": 5}),
    ):
        for layer, head in pairs:
            left, top = heads.index(head), layers.index(layer)
            axes.fill_between([left, left + 1], top, top + 1, **style)


def _name_heads(axes: Any, layers: Sequence[int], heads: Sequence[int], most: int = 12) -> None:
    for axis, numbers in ((axes.xaxis, heads), (axes.yaxis, layers)):
        every = next(every for every in (1, 2, 4, 5, 8, 10, 16, 20, 32, 64, 128, 1024) if len(numbers) <= most * every)
        axis.set_ticks([place + 0.5 for place in range(0, len(numbers), every)], labels=map(str, numbers[::every]))
    axes.tick_params(length=0)
    axes.set(xlabel="head", ylabel="layer")


def _draw_bars(axes: Any, table: pd.DataFrame, value: str, most: int = 12) -> None:
    table = table.sort_values("layer")
    errors = table["error"].to_numpy(dtype=float) if "error" in table else None
    style = {"ecolor": INK, "error_kw": {"elinewidth": 0.8, "capsize": 0}}
    axes.bar(table["layer"].to_numpy(), table[value].to_numpy(dtype=float), 0.8, yerr=errors, color=BAR, **style)
    axes.xaxis.set_major_locator(whole_numbers(most))
    axes.tick_params(axis="x", length=0)
    # one layer alone is a bar, not a wall
    middle, half = (table["layer"].min() + table["layer"].max()) / 2, max(table["layer"].nunique() / 2, 2)
    axes.set_xlim(middle - half - 0.1, middle + half + 0.1)


def _panel_name(axes: Any, name: str, largest: str, size: int) -> None:
    axes.set_title(name, loc="left", fontsize=size, pad=3)
    axes.set_title(largest, loc="right", fontsize=7, pad=3, color=QUIET)


def _columns(count: int, width: int | float) -> int:
    """Panels in a row: as many as stay readable, and no more than there are."""
    most = max(1, min(count, round(width / (1.1 if count > 24 else 1.6))))
    return math.ceil(count / math.ceil(count / most))


def _short(number: float) -> str:
    return f"{number:.2g}" if abs(number) < 1 else f"{number:.3g}"


def _missing_note(grid: Float64[np.ndarray, "layer head"]) -> str:
    return " Hatched: not measured." if np.isnan(grid).any() else ""
