"""Figure 1: the attention graph of a sentence by raw attention, rollout and flow."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from ... import paint
from ...attribution import flow, raw, rollout
from ...errors import BadInput
from ...record import AttentionRecord
from ...views.printing import INK, PAGE, QUIET, Plot, draw_lines, drawn_figure, shortened, text_width
from ...views.sides import shown

Map = Float[np.ndarray, "layer query token"]
TITLES = {"raw": "raw attention", "rollout": "rollout", "flow": "flow"}
NUMBERS, GAP, TITLE = 0.3, 0.14, 0.36
"""Inches left of the first graph, between two of them, and above each."""
STEP, WIDEST, STACKED = 0.122, 0.32, 0.2
"""Inches between two tokens: at least, so that upright text of 8 points stays apart, at most, and in stacked graphs."""
LOWEST, ROW, GRAPH, TALLEST = 0.06, 0.36, 3.2, 9.0
"""Inches between two layers at least and at most, between the highest and the input, and of a figure, at most."""
LONGEST = 14
"""Letters of a token that are printed."""
FAINTEST = 1 / 255
EDGE = paint.sequential()[220]


def maps_by_method(record: AttentionRecord) -> dict[str, Map]:
    """What raw attention, rollout and flow give each token in each layer, heads averaged, all rows with the sum 1.

    Rows of flow are divided by their sum, as the paper does with the row of [CLS]; the others have it already.
    """
    maps = {
        name: scores.map.double().numpy()
        for name, scores in (("raw", raw(record)), ("rollout", rollout(record)), ("flow", flow(record)))
    }
    sums = maps["flow"].sum(-1, keepdims=True)
    return maps | {"flow": maps["flow"] / np.where(sums > 0, sums, 1.0)}


def attention_graph(record: AttentionRecord, width: int | float = PAGE) -> Plot:
    """Figure 1: from every token of a layer a line to every token one row below, as dark as the map's figure is large.

    The three methods stand side by side, or below each other where a text is too long for that.
    """
    texts = [shortened(text, LONGEST) for text in shown(record.tokens)]
    maps = maps_by_method(record)
    room = width - NUMBERS
    across = len(maps) if (room - (len(maps) - 1) * GAP) / len(maps) >= len(texts) * STEP else 1
    if room < len(texts) * STEP:
        raise BadInput(
            f"An attention graph holds {int(room / STEP)} tokens readably in {width:g} inches, and this text has"
            f" {len(texts)}: take a shorter text."
        )
    each = (room - (across - 1) * GAP) / across
    step, labels = min(each / len(texts), WIDEST if across > 1 else STACKED), max(map(text_width, texts)) + 0.12
    down = len(maps) // across
    graph = min(GRAPH, (TALLEST + GAP) / down - GAP - TITLE - 2 * labels)
    row = max(min(ROW, graph / len(record.layers)), LOWEST)
    high = TITLE + 2 * labels + len(record.layers) * row
    height = down * high + (down - 1) * GAP
    with drawn_figure(width, height) as figure:
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(xlim=(0, width), ylim=(height, 0))
        for place, (name, weights) in enumerate(maps.items()):
            column, line = place % across, place // across
            left, top = NUMBERS + column * (each + GAP), line * (high + GAP)
            axes.text(left, top + 0.09, f"({'abc'[place]}) {TITLES[name]}", va="center", color=INK, fontweight="bold")
            ends = f"lines from 0 to {weights.max():.2g}"
            axes.text(left, top + 0.24, ends, va="center", color=QUIET, fontsize=7)
            _draw_graph(axes, weights, texts, (left, top + TITLE + labels), (step, row))
            if column == 0:
                _draw_numbers(axes, [number + 1 for number in record.layers], top + TITLE + labels, row)
    return Plot(
        figure,
        f"Attention in every layer of “{' '.join(texts)}”: raw attention, rollout and flow, heads averaged. A line goes"
        " from each token of a layer to each token of the row below; its ink is proportional to the number, from 0 to"
        " the largest of each panel. Raw attention is between neighbouring layers; rollout and flow are what each"
        " token has from each token of the input, drawn one row down too, and rows of flow are divided by their sum.",
    )


def _draw_graph(
    axes: Any, weights: Map, texts: Sequence[str], corner: tuple[float, float], sizes: tuple[float, float]
) -> None:
    """The tokens above and below, a dot for each token in each layer, and the lines between, the darkest last."""
    (left, top), (step, row) = corner, sizes
    layers = len(weights)
    columns = left + step * (np.arange(len(texts)) + 0.5)
    levels = top + row * np.arange(layers, -1, -1)
    opacity = np.clip(weights / (weights.max() or 1.0), 0.0, 1.0)
    found = sorted(np.argwhere(opacity >= FAINTEST).tolist(), key=lambda edge: float(opacity[tuple(edge)]))
    lines = [((columns[i], levels[layer + 1]), (columns[j], levels[layer])) for layer, i, j in found]
    draw_lines(axes, lines, [EDGE] * len(lines), [float(opacity[tuple(edge)]) for edge in found])
    dots = {"marker": "o", "markersize": 1.6, "linestyle": "none", "color": QUIET, "markeredgewidth": 0}
    axes.plot(np.tile(columns, layers + 1), np.repeat(levels, len(texts)), **dots)
    for text, column in zip(texts, columns, strict=True):
        for height, edge in ((top - 0.06, "bottom"), (levels[0] + 0.06, "top")):
            axes.text(column, height, text, rotation=90, ha="center", va=edge, color=INK)


def _draw_numbers(axes: Any, numbers: Sequence[int], top: float, row: float) -> None:
    """The layers at the left, counted from 1, as many of their numbers as have room."""
    where = {"va": "center", "color": QUIET, "fontsize": 7}
    for place in range(0, len(numbers), int(np.ceil(0.11 / row))):
        height = top + (len(numbers) - 1 - place) * row
        axes.text(NUMBERS - 0.06, height, str(numbers[place]), ha="right", **where)
    axes.text(0.02, top + len(numbers) * row / 2, "layer", rotation=90, ha="left", **where)
