"""The printed head view: one layer, tokens left and right, a line for each weight."""

from collections.abc import Mapping
from typing import Any

from ..record import AttentionRecord
from .palette import CATEGORICAL
from .printing import COLUMN, INK, Plot, draw_lines, drawn_figure, fitting, text_width
from .selection import check_fits, selected

ROW = 0.16
"""Inches between two tokens of a column."""
LEGEND_ROW = 0.17
FAINTEST = 1 / 255
"""Lines fainter than this are not drawn."""
WIDEST = 0.38
"""The share of the width that the tokens of one column take at most."""


def head_figure(
    record: AttentionRecord, sides: Mapping[str, Any], state: Mapping[str, Any], width: int | float | None = None
) -> Plot:
    """The lines of the selected layer and heads, each as opaque as its weight."""
    shown = selected(record, sides, state)
    check_fits(max(len(shown.queries), len(shown.keys)), "tokens in a column")
    number = state.get("layer")
    layer = record.layers.index(number) if number in record.layers else 0
    threshold, root = float(state.get("threshold") or 0.0), bool(state.get("root"))
    width = width or COLUMN
    queries, keys = ([fitting(unit.text, WIDEST * width) for unit in units] for units in (shown.queries, shown.keys))
    left, right = (max(text_width(text) for text in texts) + 0.06 for texts in (queries, keys))
    rows = max(len(queries), len(keys))
    several = len(shown.heads) > 1
    with drawn_figure(width, rows * ROW + LEGEND_ROW * several + 0.1) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set(xlim=(0, width), ylim=(rows - 0.5, -0.6 - several * LEGEND_ROW / ROW))
        for row, text in enumerate(queries):
            axes.text(left - 0.05, row, text, ha="right", va="center", color=INK)
        for row, text in enumerate(keys):
            axes.text(width - right + 0.05, row, text, ha="left", va="center", color=INK)
        for place, head in enumerate(shown.heads):
            weights = shown.weights[layer, place]
            opacity = (weights.sqrt() if root else weights).clamp(max=1.0)
            drawn = (shown.looked_at & (weights >= threshold) & (opacity >= FAINTEST)).nonzero().tolist()
            draw_lines(
                axes,
                [((left, float(query)), (width - right, float(key))) for query, key in drawn],
                [_colour(record, head)] * len(drawn),
                [float(opacity[query, key]) for query, key in drawn],
                dash=_dash(record, head),
            )
        if several:
            _legend(axes, record, shown.heads, width)
    below = f" Weights below {threshold:g} are not drawn." if threshold > FAINTEST else ""
    return Plot(
        figure,
        f"Attention in layer {record.layers[layer]}, {_heads_in_words(record, shown.heads)}: lines run from the token"
        f" that attends (left) to the token attended to (right), as opaque as {'the square root of ' * root}the weight."
        f"{below}{shown.said(layer) if shown.heads else shown.choice}",
    )


def _heads_in_words(record: AttentionRecord, heads: tuple[int, ...]) -> str:
    if not heads:
        return "no head chosen"
    if record.pooled:
        return "mean of all heads"
    if len(heads) == 1:
        return f"head {heads[0]}"
    some = f" ({', '.join(map(str, heads))})" if len(heads) < len(record.heads) else ""
    return f"{len(heads)} heads{some}"


def _colour(record: AttentionRecord, head: int) -> str:
    return CATEGORICAL[record.heads.index(head) % len(CATEGORICAL)]


def _dash(record: AttentionRecord, head: int) -> str:
    return "solid" if record.heads.index(head) % 16 < 8 else "dashed"


def _legend(axes: Any, record: AttentionRecord, heads: tuple[int, ...], width: int | float) -> None:
    """The colour of each head, in a line above."""
    step = min(0.24, (width - 0.45) / len(heads))
    axes.text(0, -0.6 - 0.5, "heads", ha="left", va="center", fontsize=7, color=INK)
    for place, head in enumerate(heads):
        axes.text(0.45 + place * step, -1.1, str(head), ha="left", va="center", fontsize=7, color=INK)
        points = [((0.45 + place * step, -0.7), (0.45 + place * step + 0.1, -0.7))]
        draw_lines(axes, points, [_colour(record, head)], [1.0], width=1.6, dash=_dash(record, head))
