"""The head view: tokens left and right, a line for each weight, head by head and layer by layer."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..record import AttentionRecord
from ..record.schema import checked
from .choices import Selection, check_fits, known, selected
from .palette import CATEGORICAL
from .printing import COLUMN, INK, Plot, draw_lines, drawn_figure, fitting, text_width
from .record_view import record_view
from .sides import sinks_of
from .view import View

LINES = 4
"""Lines for each token with which the view opens: enough to see patterns, few enough to follow one."""
STEP, LARGEST = 0.005, 0.5
"""The steps and the end of the slider of the threshold."""


@checked
def head(
    record: AttentionRecord,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    *,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    sentence_b_start: int | None = None,
    size_budget: int | None = None,
    keys_per_query: int | None = None,
) -> View:
    """Where each token attends: a line from every query to every key, as opaque as the weight.

    It opens with the strongest lines, some for each token: the threshold is chosen from the weights. Lines of special
    tokens and sinks are faded until one of these tokens is looked at.

    Args:
        record: What to show; `AttentionRecord.from_weights` makes one of any weights.
        layer: The layer to show, by its number or from the end; without `include_layers` the page holds this one only.
            By default the page holds all and opens with the first.
        heads: The heads to open with; all by default.
        include_layers: The layers to put into the view; all by default, or `layer` alone.
        include_heads: The heads to put into the view; all by default.
        sentence_b_start: The first token of the second sentence of a pair, where the record does not tell.
        size_budget: Bytes that the saved page may take: the more, the more exact; where all weights do not fit, the
            largest of each row stay and the rest is one mass.
        keys_per_query: How many of the largest weights of each row stay, whatever the budget.
    """
    if layer is not None and include_layers is None:
        include_layers = [record.layers.index(known(layer, record.layers, "layer"))]
        layer = None
    shown = record.select(include_layers, include_heads)
    return record_view(
        "head",
        shown,
        layer=layer,
        heads=heads,
        sentence_b_start=sentence_b_start,
        size_budget=size_budget,
        keys_per_query=keys_per_query,
        draw=head_figure,
        opening={"threshold": opening_threshold(shown, layer)},
    )


def opening_threshold(record: AttentionRecord, layer: int | None) -> float:
    """The weight from which on a layer has about `LINES` lines for each token, special tokens and sinks aside."""
    place = record.layers.index(known(layer, record.layers, "layer"))
    quiet = {*sinks_of(record), *(position for position, special in enumerate(record.key_special) if special)}
    keys = [position for position in range(len(record.key_tokens)) if position not in quiet]
    weights = record.weights[place][..., keys].flatten()
    wanted = LINES * len(record.query_tokens)
    if wanted >= len(weights):
        return 0.0
    least = float(torch.topk(weights, wanted).values[-1])
    return round(min(int(least / STEP) * STEP, LARGEST), 3)


# The printed head view: one layer, tokens left and right, a line for each weight.


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
