"""The model view: every layer and head at once as a small picture of its map, sorted by a statistic, one enlarged."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, VectorRecord
from ..record.schema import checked
from .choices import pick_one
from .head import head_figure
from .head_statistics import TITLES, Maps, ModelScene
from .printing import (
    BAR,
    COLUMN,
    INK,
    PAGE,
    QUIET,
    Box,
    Plot,
    colour_map,
    draw_in_inches,
    draw_lines,
    draw_outlines,
    drawn_figure,
    fit_text,
    text_width,
)
from .record_view import record_view, with_few_weights
from .sides import check_in_sight, sides_of
from .view import View
from .weights import LONG_BYTES, WORST, OnDemand

LONG = 40
"""Tokens beyond which the maps open on a square-root scale."""


@checked
def model(
    record: AttentionRecord,
    layer: int | None = None,
    head: int | None = None,
    *,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    sentence_b_start: int | None = None,
    size_budget: int | None = None,
    keys_per_query: int | None = None,
) -> View:
    """All heads of a model on one text: layers down, heads across, each a picture of its attention map.

    A pixel is a weight, or in a long text the largest weight of a block of tokens; of a record of vectors, in blocks of
    more than 16 tokens, what each of them gives to the other block in the mean. Layers and heads can be sorted by
    what each head does on this text; a click shows the head with its tokens, in place.

    Args:
        record: What to show; `AttentionRecord.from_weights` makes one of any weights.
        layer: The layer of a head to open with, enlarged; by default all heads are shown.
        head: That head.
        include_layers: The layers to put into the view; all by default.
        include_heads: The heads to put into the view; all by default.
        sentence_b_start: The first token of the second sentence of a pair, where the record does not tell.
        size_budget: Bytes that the saved page may take; where all weights are more, the largest of each row stay for
            the enlarged heads. The pictures are of all weights in any case. For a record of vectors it is 12 MB
            by default, and where that is too little for all layers, the heads of some cannot be enlarged.
        keys_per_query: How many of the largest weights of each row stay, whatever the budget.
    """
    if (layer is None) != (head is None):
        raise BadInput("A head is opened by its layer and its head: give both, or neither to see all heads.")
    chosen = with_few_weights(record).select(include_layers, include_heads)
    if isinstance(chosen, VectorRecord):
        size_budget = LONG_BYTES if size_budget is None else size_budget
    scene = ModelScene.of(chosen, sides_of(chosen, sentence_b_start))
    blobs = scene.blobs()
    room = int(sum(map(len, blobs.values())) * WORST) + 1
    view = record_view(
        "model",
        chosen,
        scene.sides,
        layer=layer,
        heads=None if head is None else [head],
        size_budget=None if size_budget is None else size_budget - room,
        keys_per_query=keys_per_query,
        draw=partial(model_figure, scene),
        opening={
            "head": pick_one(head, chosen.heads, "head"),
            "enlarged": head is not None,
            "statistic": "entropy",
            # weights of a long text are small: on a linear scale its maps would be all but blank
            "root": len(chosen.key_tokens) > LONG,
            "sort_layers": None,
            "sort_heads": None,
        },
        more=scene.payload(),
    )
    return replace(
        view,
        blobs=OnDemand({}) | blobs | view.blobs,
        table=scene.to_frame,
        choices={**view.choices, "head": chosen.heads, "statistic": list(scene.statistics.figures)},
    )


# The printed model view: the maps of all heads, layers down and heads across, or the head that is enlarged.


HIGHEST = 8.8
"""Inches that all layers may take: the height of a page's text."""
LARGEST = 1.4
SHARP = 60
"""Pixels of a map's side, at least, so that the gaps between maps have their width."""
ABOVE, BELOW, GAP = 0.32, 0.42, 0.06
"""Inches for the heads' numbers, for the scale, and of a step between two maps (as a share of it)."""


def model_figure(scene: ModelScene, state: Mapping[str, Any], width: int | float | None = None) -> Plot:
    """All maps on one scale, sorted as selected; the lines of the enlarged head where one is."""
    record = scene.record
    if state.get("enlarged"):
        return head_figure(record, scene.sides, state, width)
    special = bool(state.get("special", True))
    maps = scene.maps_for(state)
    for texts in (maps.queries, maps.keys):
        check_in_sight(range(len(texts)), special=special)
    figures = scene.statistics.figures
    asked = str(state.get("statistic"))
    name = asked if asked in figures else "entropy"
    values = figures[name]
    most = largest_of(name, values)
    rows = order(values, record.layers, record.heads, state.get("sort_layers"))
    columns = order(values.T, record.heads, record.layers, state.get("sort_heads"))
    root = bool(state.get("root"))
    left = text_width("layer", 7) + 0.12
    narrow = len(columns) <= 8 or left + len(columns) * HIGHEST / len(rows) <= COLUMN
    width = width or (COLUMN if narrow else PAGE)
    step = min((width - left) / len(columns), HIGHEST / len(rows), LARGEST)
    with drawn_figure(width, len(rows) * step + ABOVE + BELOW) as figure:
        axes = draw_in_inches(figure.add_subplot(), width, len(rows) * step + ABOVE + BELOW)
        start = max((width - left - len(columns) * step) / 2, 0) + left
        sheet = _sheet(maps.pixels[rows][:, columns].numpy())
        whole = (start, start + len(columns) * step, ABOVE + len(rows) * step, ABOVE)
        _picture(axes, np.sqrt(sheet) if root else sheet, whole)
        _outline(axes, [_box(start, step, down, across) for down in range(len(rows)) for across in range(len(columns))])
        _bars(axes, values[rows][:, columns] / most, start, step)
        _numbers(axes, record, rows, columns, start, step)
        bars = _bar_words(name, most)
        _scale(axes, start, ABOVE + len(rows) * step + 0.1, bars, root=root, room=width - start)
    return Plot(figure, _caption(record, maps, state, name, most))


def largest_of(name: str, values: Float[Tensor, "layer head"]) -> float:
    """Where the bars of a statistic end: at 1 for a share or a weight, else at the largest value."""
    if TITLES[name][1] in ("share", "weight"):
        return 1.0
    return max(float(values.nan_to_num(0.0).max()), 1e-9)


def order(
    values: Float[Tensor, "line other"], own: Sequence[int], others: Sequence[int], sort: Sequence[Any] | None
) -> list[int]:
    """Lines in the order that is asked for: by their mean or by one of the others, the highest first or last.

    What was not measured comes last, and lines that are equal stay in the model's order.
    """
    places = list(range(len(own)))
    if not sort:
        return places
    by, falling = sort
    if by != "mean" and by not in others:
        return places
    key = torch.nanmean(values, -1) if by == "mean" else values[:, list(others).index(by)]
    figures = [float(value) for value in key]
    return sorted(places, key=lambda place: _rank(figures[place], falling=bool(falling)))


def _rank(value: float, *, falling: bool) -> tuple[bool, float]:
    return (True, 0.0) if np.isnan(value) else (False, -value if falling else value)


def _sheet(pixels: Float[np.ndarray, "layer head row column"]) -> Float[np.ndarray, "y x"]:
    """All maps in one picture, with nothing between them: hundreds of pictures would take a figure many seconds."""
    layers, heads, rows, columns = pixels.shape
    times = [math.ceil(SHARP / count) for count in (rows, columns)]
    high, wide = rows * times[0], columns * times[1]
    gaps = [round(size * GAP / (1 - GAP)) for size in (high, wide)]
    sheet = np.full((layers, high + gaps[0], heads, wide + gaps[1]), np.nan, dtype=np.float32)
    sheet[:, :high, :, :wide] = pixels.repeat(times[0], 2).repeat(times[1], 3).transpose(0, 2, 1, 3)
    return sheet.reshape(layers * (high + gaps[0]), heads * (wide + gaps[1]))


def _box(start: float, step: float, down: int, across: int) -> Box:
    left, top, side = start + across * step, ABOVE + down * step, step * (1 - GAP)
    return left, left + side, top + side, top


def _picture(axes: Any, pixels: Float[np.ndarray, "y x"], box: Box) -> None:
    axes.imshow(pixels, cmap=colour_map(), vmin=0, vmax=1, extent=box, interpolation="none", aspect="auto")


def _outline(axes: Any, boxes: Sequence[Box]) -> None:
    """A hairline around each map, so that faint ones have their limits."""
    draw_outlines(axes, boxes, QUIET, 0.4, 0.3)


def _bars(axes: Any, shares: Float[Tensor, "row column"], start: float, step: float) -> None:
    """A bar below each map, as long as its share of the scale; none where nothing was measured."""
    bars = []
    for down, row in enumerate(shares.nan_to_num(0.0).clamp(0, 1).tolist()):
        for across, share in enumerate(row):
            left, right, bottom, _ = _box(start, step, down, across)
            below = bottom + step * GAP / 2
            bars.append(((left, below), (left + share * (right - left), below)))
    draw_lines(axes, bars, [BAR] * len(bars), [1.0] * len(bars), width=min(1.0, step * GAP * 72 / 2))


def _numbers(
    axes: Any, record: AttentionRecord, rows: Sequence[int], columns: Sequence[int], start: float, step: float
) -> None:
    """The numbers of layers and heads, as many as can be read."""
    side = step * (1 - GAP)
    every = next(many for many in (1, 2, 4, 8, 16, 32, 64) if many * step >= 0.14 or many == 64)
    for down, row in enumerate(rows):
        if down % every == 0:
            at = ABOVE + down * step + side / 2
            axes.text(start - 0.06, at, str(record.layers[row]), ha="right", va="center", color=INK, fontsize=7)
    for across, column in enumerate(columns):
        if across % every == 0:
            words = "mean" if record.pooled else str(record.heads[column])
            at = start + across * step + side / 2
            axes.text(at, ABOVE - 0.05, words, ha="center", va="bottom", color=INK, fontsize=7)
    axes.text(start, 0.02, "all heads" if record.pooled else "head", ha="left", va="top", color=QUIET, fontsize=7)
    axes.text(start - 0.06, ABOVE - 0.05, "layer", ha="right", va="bottom", color=QUIET, fontsize=7)


def _scale(axes: Any, left: float, top: float, bars: str, *, root: bool, room: float) -> None:
    """The colours of weights from 0 to 1, with figures, and what the bars are."""
    length, high = 1.2, 0.08
    box = (left, left + length, top + high, top)
    _picture(axes, np.linspace(0, 1, 256)[None], box)
    _outline(axes, [box])
    for share in (0.0, 0.5, 1.0):
        words = f"{share**2 if root else share:g}"
        axes.text(left + share * length, top + high + 0.03, words, ha="center", va="top", color=QUIET, fontsize=7)
    words = "weight, square-root scale" if root else "weight"
    beside = {"ha": "left", "va": "center", "fontsize": 7}
    axes.text(left + length + 0.1, top + high / 2, words, color=INK, **beside)
    axes.text(left + length + 0.1, top + high / 2 + 0.14, fit_text(bars, room - length - 0.1, 7), color=QUIET, **beside)


def _bar_words(name: str, most: float) -> str:
    """What the bars are, and where they end.

    >>> _bar_words("entropy", 3.214), _bar_words("previous", 1.0)
    ('bars, to 3.21 nats: mean entropy', 'bars, to 1: attention to the previous token')
    """
    title, unit, _ = TITLES[name]
    # the end of the bars comes first: a long title may be cut, and the caption has it whole
    return f"bars, to {most:.3g}{f' {unit}' if most != 1 else ''}: {title.lower()}"


def _caption(record: AttentionRecord, maps: Maps, state: Mapping[str, Any], name: str, most: float) -> str:
    across, down = maps.block[1], maps.block[0]
    units = "words" if state.get("words") else "tokens"
    pixel = (
        f"one pixel is the weight from one of the {units} (row) to another (column)"
        if across == down == 1
        else f"one pixel is what each of {down} {units} (rows) gives to {across} (columns) together, in the mean"
        if maps.is_mean
        else f"one pixel is the largest weight from {down} {units} (rows) to {across} (columns)"
    )
    parts = [f"Attention maps of {len(record.layers)} layers (down) and {len(record.heads)} heads (across): {pixel},"]
    parts.append(f"on a {'square-root' if state.get('root') else 'linear'} scale from 0 to 1.")
    title, unit = TITLES[name][0].lower(), TITLES[name][1]
    parts.append(f"The bar below each map is its {title}, from 0 to {most:.3g}{f' {unit}' if most != 1 else ''}.")
    for what, sort in (("Layers", state.get("sort_layers")), ("Heads", state.get("sort_heads"))):
        if sort:
            parts.append(f"{what} are sorted by {title}, the {'highest' if sort[1] else 'lowest'} first.")
    if maps.hidden > 1e-6:
        parts.append(f"Tokens left out take {100 * maps.hidden:.1f} % of the attention.")
    return " ".join(parts)
