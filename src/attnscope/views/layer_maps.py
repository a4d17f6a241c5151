"""Printed maps of layers and tokens, such as where [CLS] looks in every layer: side by side, in named rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ..errors import BadInput
from .printing import INK, PAGE, QUIET, Plot, colour_map, draw_in_inches, drawn_figure, fit_text, shorten, text_width

NUMBERS, BESIDE = 0.32, 0.2
"""Inches at the left for the numbers of the layers, and right of each map for the end of its scale."""
LINE, BETWEEN = 0.17, 0.1
"""Inches of a line of words, and between two rows."""
STEP = 0.105
"""Inches between two tokens or two numbers, at least: upright text of 7 points stays apart."""
WIDEST = 0.4
HIGHEST, LOWEST = 0.13, 0.03
"""Inches of a layer, at most and at least."""
BAR, BAR_STEPS = 1.2, 64
TALLEST = 9.2
LONGEST = 14
"""Letters of a token that are printed."""
SMALL = 7


@dataclass(frozen=True)
class LayerMap:
    """One map: what it is called, its tokens, and the figure of each token in each layer, the first layer first."""

    title: str
    tokens: Sequence[str]
    grid: Float[np.ndarray, "layer token"]

    @property
    def largest(self) -> float:
        """The end of its scale."""
        return float(self.grid.max(initial=0.0))


@dataclass(frozen=True)
class Sizes:
    """Inches: of one map with the room beside it, of a layer, and of the longest token in each row."""

    each: float
    layer: float
    labels: Sequence[float]


def layer_maps(
    rows: Mapping[str, Sequence[LayerMap]],
    layers: Sequence[int],
    label: str,
    caption: str,
    width: int | float = PAGE,
) -> Plot:
    """Heat maps with tokens across and `layers` upwards, in named rows, each on its own scale from 0 to its largest.

    Titles stand above a row where they are not those of the row before it.
    """
    if not rows or not all(rows.values()):
        raise BadInput("There is no map to draw: give every row at least one.")
    titled = [place for place, titles in enumerate(_titles(rows)) if place == 0 or titles != _titles(rows)[place - 1]]
    sizes = _sizes(rows, len(layers), len(titled), float(width))
    height = _around(len(titled), sizes.labels) + len(rows) * len(layers) * sizes.layer
    with drawn_figure(width, height) as figure:
        figure.set_layout_engine("none")
        axes = draw_in_inches(figure.add_axes((0, 0, 1, 1)), width, height)
        top = 0.0
        for place, (name, maps) in enumerate(rows.items()):
            axes.text(0.02, top + LINE / 2, fit_text(name, width - 0.1), va="center", color=INK, fontweight="bold")
            top += LINE + LINE * (place in titled)
            for column, one in enumerate(maps):
                left = NUMBERS + column * sizes.each
                if place in titled:
                    title = fit_text(one.title, sizes.each - BESIDE)
                    axes.text(left, top - LINE / 2, title, va="center", color=INK)
                _draw_map(axes, one, left, top, sizes)
            _draw_numbers(axes, layers, top, sizes.layer)
            top += len(layers) * sizes.layer + sizes.labels[place] + BETWEEN
        _draw_scale(axes, label, top + LINE / 2)
    return Plot(figure, caption)


def _titles(rows: Mapping[str, Sequence[LayerMap]]) -> list[list[str]]:
    return [[one.title for one in maps] for maps in rows.values()]


def _sizes(rows: Mapping[str, Sequence[LayerMap]], layers: int, titled: int, width: float) -> Sizes:
    """How large everything is; what would not be readable on a page is refused."""
    every = [one for maps in rows.values() for one in maps]
    each = (width - NUMBERS) / max(map(len, rows.values()))
    most = max(len(one.tokens) for one in every)
    if (each - BESIDE) / most < STEP:
        raise BadInput(
            f"A map {each - BESIDE:.1f} inches wide holds {int((each - BESIDE) / STEP)} tokens readably, and this text"
            f" has {most}: take a shorter text."
        )
    labels = [
        max(text_width(shorten(token, LONGEST), SMALL) for one in maps for token in one.tokens) + 0.06
        for maps in rows.values()
    ]
    layer = min(HIGHEST, (TALLEST - _around(titled, labels)) / (len(rows) * layers))
    if layer < LOWEST:
        raise BadInput(f"{len(rows)} rows of maps of {layers} layers do not fit on a page: take fewer.")
    return Sizes(each, layer, labels)


def _around(titled: int, labels: Sequence[float]) -> float:
    """Inches down the figure that are no map: names, titles, tokens, what lies between rows, and the scale."""
    return sum(labels) + len(labels) * (LINE + BETWEEN) + (titled + 1) * LINE


def _draw_map(axes: Any, one: LayerMap, left: float, top: float, sizes: Sizes) -> None:
    """The cells with the first layer lowest, the tokens below, and the end of the scale at the right."""
    layers, tokens = one.grid.shape
    step = min((sizes.each - BESIDE) / tokens, WIDEST)
    across = left + step * np.arange(tokens + 1)
    down = top + sizes.layer * np.arange(layers, -1, -1)
    style = {"cmap": colour_map(), "vmin": 0.0, "vmax": one.largest or 1.0}
    axes.pcolormesh(across, down, one.grid, edgecolors="white", linewidth=0.4, **style)
    middle = top + layers * sizes.layer / 2
    where = {"rotation": 90, "color": QUIET, "fontsize": SMALL}
    axes.text(across[-1] + 0.04, middle, f"0–{one.largest:.2g}", ha="left", va="center", **where)
    for token, start in zip(one.tokens, across, strict=False):
        text = shorten(token, LONGEST)
        axes.text(start + step / 2, down[0] + 0.03, text, rotation=90, ha="center", va="top", color=INK, fontsize=SMALL)


def _draw_numbers(axes: Any, layers: Sequence[int], top: float, layer: float) -> None:
    """The numbers of the layers left of a row, as many as have room, and what they are."""
    every = math.ceil(STEP / layer)
    for place in range(0, len(layers), every):
        middle = top + (len(layers) - place - 0.5) * layer
        number = str(layers[place])
        axes.text(NUMBERS - 0.05, middle, number, ha="right", va="center", color=QUIET, fontsize=SMALL)
    middle = top + len(layers) * layer / 2
    axes.text(0.02, middle, "layer", rotation=90, ha="left", va="center", color=QUIET, fontsize=SMALL)


def _draw_scale(axes: Any, label: str, middle: float) -> None:
    """The scale of colours, whose end is another for each map."""
    left = NUMBERS + text_width("0", SMALL) + 0.05
    across = left + BAR * np.linspace(0, 1, BAR_STEPS + 1)
    steps = np.linspace(0, 1, BAR_STEPS)[None]
    axes.pcolormesh(
        across, [middle - 0.045, middle + 0.045], steps, cmap=colour_map(), edgecolors="face", linewidth=0.1
    )
    where = {"va": "center", "fontsize": SMALL, "color": QUIET}
    axes.text(left - 0.05, middle, "0", ha="right", **where)
    axes.text(left + BAR + 0.05, middle, f"the number beside each map: {label}", ha="left", **where)
