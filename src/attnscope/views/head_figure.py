"""The printed head view: one layer, tokens left and right, a line for each weight."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..record import AttentionRecord
from .choices import Selection, check_fits, selected
from .palette import CATEGORICAL
from .printing import COLUMN, INK, Plot, draw_lines, drawn_figure, fitting, text_width

ROW = 0.16
"""Inches between two tokens of a column."""
LEGEND_ROW = 0.17
SAMPLE, NUMBER = 0.16, 0.18
"""Inches of the line that stands for a head, long enough for a dash and its gap, and of its number."""
SCALE, SCALE_STEPS = 0.8, 48
"""Inches and steps of the scale of opacity."""
FADED = 0.1
"""The share of their ink that lines of special tokens and sinks have where nothing is pinned; as on the screen."""
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
    title = f"layer {record.layers[layer]}, {_heads_in_words(record, shown.heads)}"
    start = text_width(title, 7) + 0.15
    each = max(int((width - start) / (SAMPLE + NUMBER)), 1)
    named = shown.heads if len(shown.heads) > 1 else ()
    legend = max(-(-len(named) // each), 1) * LEGEND_ROW / ROW
    with drawn_figure(width, rows * ROW + LEGEND_ROW + legend * ROW + 0.1) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set(xlim=(0, width), ylim=(rows - 0.5 + LEGEND_ROW / ROW, -0.6 - legend))
        for row, text in enumerate(queries):
            axes.text(left - 0.05, row, text, ha="right", va="center", color=INK)
        for row, text in enumerate(keys):
            axes.text(width - right + 0.05, row, text, ha="left", va="center", color=INK)
        ink = _ink(shown)
        for place, head in enumerate(shown.heads):
            weights = shown.weights[layer, place]
            opacity = (weights.sqrt() if root else weights).clamp(max=1.0)
            drawn = (shown.looked_at & (weights >= threshold) & (opacity >= FAINTEST)).nonzero().tolist()
            opacity = opacity * ink
            draw_lines(
                axes,
                [((left, float(query)), (width - right, float(key))) for query, key in drawn],
                [_colour(record, head)] * len(drawn),
                [float(opacity[query, key]) for query, key in drawn],
                dash=_dash(record, head),
            )
        axes.text(0, -0.6 - legend + 0.5, title, ha="left", va="center", fontsize=7, color=INK)
        for place, head in enumerate(named):
            begin, level = start + place % each * (SAMPLE + NUMBER), -0.1 - legend + place // each * LEGEND_ROW / ROW
            points = [((begin, level), (begin + SAMPLE, level))]
            draw_lines(axes, points, [_colour(record, head)], [1.0], width=1.6, dash=_dash(record, head))
            axes.text(begin + SAMPLE + 0.03, level, str(head), ha="left", va="center", fontsize=7, color=INK)
        _scale(axes, rows - 0.5 + LEGEND_ROW / ROW / 2, threshold, root=root)
    below = f" Weights below {threshold:g} are not drawn." if threshold > FAINTEST else ""
    if float(ink.min()) < 1:
        below += " Lines of special tokens and sinks are faded."
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


def _ink(shown: Selection) -> Float[Tensor, "query key"]:
    """What of its ink each line has: lines of special tokens and sinks step back where nothing is pinned."""
    asking, asked = (torch.tensor([unit.quiet for unit in units]) for units in (shown.queries, shown.keys))
    faded = (asking.unsqueeze(-1) | asked) & bool(shown.looked_at.all())
    return torch.where(faded, FADED, 1.0)


def _scale(axes: Any, row: float, threshold: float, *, root: bool) -> None:
    """The scale of opacity, from the threshold to 1."""
    left = text_width(f"weight {threshold:g}", 7) + 0.06
    shares = [(step + 0.5) / SCALE_STEPS for step in range(SCALE_STEPS)]
    weights = [threshold + (1 - threshold) * share for share in shares]
    points = [
        ((left + SCALE * step / SCALE_STEPS, row), (left + SCALE * (step + 1) / SCALE_STEPS, row))
        for step in range(SCALE_STEPS)
    ]
    opacities = [math.sqrt(weight) if root else weight for weight in weights]
    draw_lines(axes, points, [INK] * SCALE_STEPS, opacities, width=3)
    where = {"va": "center", "fontsize": 7, "color": INK}
    axes.text(0, row, f"weight {threshold:g}", ha="left", **where)
    axes.text(left + SCALE + 0.06, row, "1" + ", opacity by the square root" * root, ha="left", **where)
