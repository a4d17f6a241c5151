"""The tracing view: attention handed down from the read-out to the input, a dot for each head, layer and token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import paint
from ..attribution import layerwise_tracing
from ..errors import BadInput
from ..record import AttentionRecord, TokenScores
from ..record.schema import checked
from .choices import check_fits, known
from .printing import INK, PAGE, QUIET, Plot, draw_lines, draw_outlines, drawn_figure, fitting, text_width
from .sides import Unit, named, shown_units, side_of, sides_of, title_of
from .tables import token_column
from .view import View
from .weights import deflated

if TYPE_CHECKING:
    import pandas as pd


# What layer-wise tracing has gathered, by layer, head and token: what the page and the printed figure both draw.


FAINTEST_LINE = 0.01
"""Lines that hand on less of a head's attention are not drawn: each head has at most a hundred a layer."""


@dataclass(frozen=True)
class Lines:
    """What tokens hand on to tokens below, layer by layer: alpha x A of the layer above (wu2020, Fig. 3)."""

    places: Int[Tensor, "line 4"]
    """Layer, head, the token that hands on, the token that gets it."""
    values: Float[Tensor, " line"]
    left_out: float
    """The share of the attention of a layer that runs along lines too faint to draw."""


@dataclass(frozen=True)
class Trace:
    """What each head holds on each token at each layer, and the tokens."""

    values: Float[Tensor, "layer head token"]
    readout: Float[Tensor, " token"] | None
    """Where tracing begins, if it is known."""
    lines: Lines | None
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    side: Mapping[str, Any]
    warnings: tuple[str, ...]


def trace_of(given: TokenScores | AttentionRecord) -> Trace:
    """The trace of a record, with its lines, or what scores of layer-wise tracing hold of it."""
    if isinstance(given, AttentionRecord):
        scores = layerwise_tracing(given)
        held = torch.cat([scores.per_head[1:], given.readout.expand(1, len(given.heads), -1)])
        lines = _lines(held, given.weights)
        side = sides_of(given)["keys"]
        return Trace(scores.per_head, given.readout, lines, given.layers, given.heads, side, scores.warnings)
    if given.method != "layerwise_tracing":
        raise BadInput(
            f"The tracing view shows layer-wise tracing, and these are scores of {given.method}: give a record, or what"
            " attnscope.layerwise_tracing(record) returns."
        )
    if given.compute_per_head is None:
        raise BadInput(
            "These scores have been merged or cut and no longer tell heads apart: give what"
            " attnscope.layerwise_tracing(record) returns; the view itself can show words and hide special tokens."
        )
    side = {**side_of(given.tokens, given.word_ids, given.special, None), "sinks": []}
    layers, heads = given.per_head.shape[:2]
    return Trace(given.per_head, None, None, tuple(range(layers)), tuple(range(heads)), side, given.warnings)


def trace_frame(trace: Trace) -> "pd.DataFrame":
    """Every dot as a row: layer, head, position, token, value."""
    import pandas as pd

    places = np.indices(trace.values.shape).reshape(3, -1)
    return pd.DataFrame(
        {
            "layer": np.array(trace.layers)[places[0]],
            "head": np.array(trace.heads)[places[1]],
            "position": places[2],
            "token": token_column(trace.side["texts"], places[2]),
            "value": trace.values.numpy().reshape(-1),
        }
    )


def of_units(values: Float[Tensor, "*axes token"], units: Sequence[Unit]) -> Float[Tensor, "*axes unit"]:
    """The values of words: the sums of their tokens."""
    return torch.stack([values[..., list(unit.places)].sum(-1) for unit in units], dim=-1)


def _lines(held: Float[Tensor, "layer head token"], weights: Float[Tensor, "layer head token token"]) -> Lines:
    handed = held.unsqueeze(-1) * weights
    places = (handed >= FAINTEST_LINE).nonzero()
    values = handed[places.unbind(1)]
    mass = float(handed.sum())
    # where no token attends to anything, nothing is handed on and nothing is left out
    return Lines(places, values, max(1 - float(values.sum()) / mass, 0.0) if mass > 0 else 0.0)


# The view.


LONG = 40
"""Tokens beyond which the view opens on a square-root scale."""


@checked
def tracing(
    scores: TokenScores | AttentionRecord,
    layer: int | None = None,
    head: int | None = None,
) -> View:
    """Where the attention of the read-out goes, layer by layer: the darker a dot, the more has gathered there.

    Wu, Nguyen & Ong 2020, Fig. 3: heads side by side, layers from the read-out at the top down to the input, whose
    text stands below. Of a record the lines between layers are drawn too; scores hold the dots alone.

    Args:
        scores: What `attnscope.layerwise_tracing(record)` returns, or a record to trace.
        layer: The layer that the text shows, by its number or from the end; the first, on the input, by default.
        head: The head to open enlarged; by default all are side by side.
    """
    trace = trace_of(scores)
    payload = {
        "keys": trace.side,
        "trace": {
            "layers": list(trace.layers),
            "heads": list(trace.heads),
            "readout": trace.readout is not None,
            "lines": _line_counts(trace),
            "faintest_line": FAINTEST_LINE,
            "lines_left_out": 0.0 if trace.lines is None else trace.lines.left_out,
            "warnings": list(trace.warnings),
        },
    }
    state: dict[str, Any] = {
        "layer": known(layer, trace.layers, "layer"),
        "head": None if head is None else known(head, trace.heads, "head"),
        "words": False,
        "special": True,
        "threshold": 0.0,
        # in a long text each token holds little: on a linear scale it would be all but blank
        "root": len(trace.side["texts"]) > LONG,
        "lines": True,
        "keys": [],
    }
    return View(
        "tracing",
        payload,
        state,
        _blobs(trace),
        table=lambda: trace_frame(trace),
        draw=lambda selected, width: tracing_figure(trace, selected, width),
        choices={"layer": trace.layers, "head": (None, *trace.heads), "keys": range(len(trace.side["texts"]))},
        title=title_of("tracing", trace.side, scores if isinstance(scores, AttentionRecord) else None),
    )


def _line_counts(trace: Trace) -> int | None:
    return None if trace.lines is None else len(trace.lines.values)


def _blobs(trace: Trace) -> dict[str, bytes]:
    """The dots as 32-bit floats `[layer, head, token]` after the read-out, and the lines by columns."""
    readout: list[Any] = [] if trace.readout is None else [trace.readout.numpy().astype(np.float32)]
    blobs = {"trace": deflated(*readout, trace.values.numpy().astype(np.float32))}
    if trace.lines is not None:
        places = trace.lines.places.numpy().astype(np.uint16)
        blobs["lines"] = deflated(trace.lines.values.numpy().astype(np.float32), np.ascontiguousarray(places.T))
    return blobs


# The printed view: dots for every head, layer and token, and the text below on the colour of its scores.


LEAST_PITCH, MOST_PITCH = 0.07, 0.16
"""Inches between two tokens of a panel."""
GAP, GUTTER, TITLE = 0.14, 0.16, 0.17
LINE = 0.17
"""Inches between two lines of the text."""
FAINT_DOT = 0.1
"""Dots fainter than this only mark a place, and lines may cross them."""
SMALLEST_SCALE = 1e-4
"""A scale never ends below this: what holds nothing is not drawn as if it held all."""
BOLD = 1.15
"""How much wider bold text runs."""
LARGE_ROW, LARGE = 0.26, 3.4
"""Inches between two layers of one head alone, and all of them at most."""
LONGEST = 1.2
"""Inches of an upright token, at most."""


def tracing_figure(trace: Trace, state: Mapping[str, Any], width: int | float | None = None) -> Plot:
    """All heads side by side, or the one that is chosen, with the input text below."""
    every, visible = shown_units(trace.side, state)
    units = [every[place] for place in visible]
    check_fits(len(units), "tokens in a row")
    width = width or PAGE
    values = of_units(trace.values, units)
    # one head alone is large, as on the screen
    chosen = trace.heads[0] if len(trace.heads) == 1 else _one_of(trace.heads, state.get("head"))
    asked = _one_of(trace.layers, state.get("layer"))
    layer = trace.layers[0] if asked is None else asked
    panels = _panels(trace, values, chosen)
    begin = None if trace.readout is None else of_units(trace.readout, units)
    # layers from the read-out down to the input, which is the last row
    grids = [
        panel.flip(0) if begin is None else torch.cat([begin.unsqueeze(0), panel.flip(0)]) for _, _, panel in panels
    ]
    most = float(values.max()) if begin is None else max(float(values.max()), float(begin.max()))
    largest = max(most, SMALLEST_SCALE)
    columns, pitch = _columns(len(panels), len(units), width)
    rows = grids[0].shape[0]
    row = min(LARGE_ROW, LARGE / rows) if chosen is not None else min(max(pitch, 0.08), 0.13)
    names = [fitting(unit.text, LONGEST, 7) for unit in units]
    labels = max(text_width(name, 7) for name in names) + 0.05 if chosen is not None else 0.0
    tall = TITLE + rows * row + labels + GAP / 2
    heads = slice(None) if chosen is None else [trace.heads.index(chosen)]
    scores = values[trace.layers.index(layer), heads].mean(0)
    pinned = [place for place, unit in enumerate(units) if unit.holds(state.get("keys") or ())]
    ink = _Ink(largest, bool(state.get("root")), float(state.get("threshold") or 0.0))
    text_lines = _wrapped([unit.text for unit in units], ink.of_text(scores), width)
    panel_rows = -(-len(panels) // columns)
    height = panel_rows * tall + (len(text_lines) + 2) * LINE
    with drawn_figure(width, height) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set(xlim=(0, width), ylim=(height, 0))
        for place, ((title, head, _), grid) in enumerate(zip(panels, grids, strict=True)):
            left = GUTTER + (place % columns) * (width / columns)
            top = (place // columns) * tall + TITLE
            axes.text(left, top - TITLE / 2, title, ha="left", va="center", fontsize=7, color=INK)
            x = [left + (token + 0.5) * pitch for token in range(len(units))]
            y = [top + (level + 0.5) * row for level in range(rows)]
            if head is not None and state.get("lines", True):
                _draw_handed(axes, trace, units, head, x, y, ink)
            _draw_dots(axes, grid, x, y, min(pitch, row), ink)
            first = 0 if begin is None else 1
            for level, number in ((first, trace.layers[-1]), (rows - 1, trace.layers[0])):
                axes.text(left - 0.03, y[level], str(number), ha="right", va="center", fontsize=6, color=QUIET)
            boxes = [(x[unit] - pitch / 2, x[unit] + pitch / 2, top, top + rows * row) for unit in pinned]
            draw_outlines(axes, boxes, INK)
            if labels:
                for across, name in zip(x, names, strict=True):
                    axes.text(across, y[-1] + row / 2, name, ha="center", va="top", rotation=90, fontsize=7)
        _draw_text(axes, text_lines, pinned, panel_rows * tall + LINE / 4)
        _draw_scale(axes, ink, height - LINE * 0.6)
    hidden = float(trace.values[trace.layers.index(layer), heads].sum(-1).mean() - scores.sum())
    outlined = f" Outlined: {named(units[place] for place in pinned)}." if pinned else ""
    above = "the read-out, then the layers from the last" if begin is not None else "the layers from the last"
    return Plot(
        figure,
        f"Layer-wise attention tracing (Wu et al. 2020), {'all heads' if chosen is None else f'head {chosen}'}: rows"
        f" are {above} down to the input, columns are tokens; the darker a dot, the more attention has gathered there"
        f" (0 to {largest:.3g}, on a {'square-root' if ink.root else 'linear'} scale). The text has"
        f" {'the mean over heads' if chosen is None else 'the values'} of layer {layer} as its background and weight."
        f"{_left_out(trace, state, hidden)}{outlined}",
    )


def _one_of(numbers: Sequence[int], number: int | None) -> int | None:
    return number if number in numbers else None


def _left_out(trace: Trace, state: Mapping[str, Any], hidden: float) -> str:
    """What is not drawn, in words."""
    said = f" Tokens left out hold {100 * hidden:.1f} %." if hidden > 1e-6 else ""
    if state.get("threshold"):
        said += f" Dots and lines below {float(state['threshold']):g} are not drawn."
    if trace.lines is not None and state.get("lines", True):
        share = f"{100 * trace.lines.left_out:.1f} %"
        said += (
            f" Lines hand on at least {FAINTEST_LINE:g} of a head’s attention; fainter ones, {share}, are not drawn."
        )
    return said


class _Ink:
    """How dark a value is drawn."""

    def __init__(self, largest: float, root: bool, threshold: float) -> None:
        self.largest, self.root, self.threshold = largest, root, threshold

    def share(self, value: float) -> float:
        share = min(max(value / self.largest, 0.0), 1.0)
        return sqrt(share) if self.root else share

    def of_text(self, scores: Float[Tensor, " unit"]) -> list[float]:
        """The shares of the text, which has a scale of its own."""
        own = _Ink(max(float(scores.max()), SMALLEST_SCALE), self.root, 0.0)
        return [own.share(score) for score in scores.tolist()]

    def colour(self, value: float) -> str:
        return paint.sequential()[round(self.share(value) * (paint.STEPS - 1))]


def _panels(
    trace: Trace, values: Float[Tensor, "layer head unit"], chosen: int | None
) -> list[tuple[str, int | None, Float[Tensor, "layer unit"]]]:
    """A title, the place of the head (none for the mean) and the values of each panel."""
    if chosen is not None:
        place = trace.heads.index(chosen)
        return [(f"Head {chosen}", place, values[:, place])]
    panels: list[tuple[str, int | None, Any]] = [
        (f"Head {head}", place, values[:, place]) for place, head in enumerate(trace.heads)
    ]
    return panels if len(panels) == 1 else [("Mean of heads", None, values.mean(1)), *panels]


def _columns(panels: int, units: int, width: int | float) -> tuple[int, float]:
    """How many panels fit side by side with dots that can be told apart, and how far apart the dots are."""
    for columns in range(panels, 0, -1):
        pitch = (width / columns - GAP - GUTTER) / units
        if pitch >= LEAST_PITCH or columns == 1:
            return columns, min(pitch, MOST_PITCH if panels > 1 else pitch)
    raise AssertionError("one column always fits")


def _draw_dots(axes: Any, grid: Tensor, x: Sequence[float], y: Sequence[float], pitch: float, ink: _Ink) -> None:
    """The dots that are dark enough; those that only mark a place lie under the lines."""
    size = (min(pitch * 0.8, 0.12) * 72) ** 2
    dots = [(x[token], y[level], value) for level, row in enumerate(grid.tolist()) for token, value in enumerate(row)]
    for faint in (True, False):
        some = [dot for dot in dots if dot[2] >= ink.threshold and (ink.share(dot[2]) < FAINT_DOT) == faint]
        if some:
            across, down, values = zip(*some, strict=True)
            colours = [ink.colour(value) for value in values]
            axes.scatter(across, down, s=size, c=colours, linewidths=0, zorder=0 if faint else 3)


def _draw_handed(
    axes: Any,
    trace: Trace,
    units: Sequence[Unit],
    head: int,
    x: Sequence[float],
    y: Sequence[float],
    ink: _Ink,
) -> None:
    """The lines of one head, from the token that hands attention on to the token below that gets it."""
    if trace.lines is None:
        return
    column = {place: number for number, unit in enumerate(units) for place in unit.places}
    sums: dict[tuple[int, int, int], float] = {}
    of_head = trace.lines.places[:, 1] == head
    for (layer, _, query, key), value in zip(
        trace.lines.places[of_head].tolist(), trace.lines.values[of_head].tolist(), strict=True
    ):
        if query in column and key in column:
            line = (len(trace.layers) - 1 - layer, column[query], column[key])
            sums[line] = sums.get(line, 0.0) + value
    drawn = {line: value for line, value in sums.items() if value >= ink.threshold}
    points = [((x[query], y[level]), (x[key], y[level + 1])) for level, query, key in drawn]
    inks = [paint.sequential()[-1]] * len(points)
    draw_lines(axes, points, inks, [ink.share(value) for value in drawn.values()], width=0.6)


Word = tuple[int, str, float, float, float]
"""The place of a unit, its text, the left edge and the width it takes, and its share of the largest score."""


def _wrapped(texts: Sequence[str], shares: Sequence[float], width: int | float) -> list[list[Word]]:
    """The text in lines that fit."""
    lines: list[list[Word]] = [[]]
    left = 0.06
    for unit, (whole, share) in enumerate(zip(texts, shares, strict=True)):
        text = fitting(whole, (width - 0.2) / BOLD)
        wide = text_width(text) * (BOLD if share > 0.5 else 1.0) + 0.08
        if left + wide > width - 0.06 and lines[-1]:
            lines.append([])
            left = 0.06
        lines[-1].append((unit, text, left, wide, share))
        left += wide + 0.04
    return lines


def _draw_text(axes: Any, lines: Sequence[Sequence[Word]], pinned: Sequence[int], top: float) -> None:
    for number, words in enumerate(lines):
        y = top + (number + 0.5) * LINE
        held = [(left, left + wide) for unit, _, left, wide, _ in words if unit in pinned]
        draw_outlines(axes, [(*ends, y - LINE / 2, y + LINE / 2) for ends in held], INK)
        for _, text, left, wide, share in words:
            colour = paint.sequential()[round(share * (paint.STEPS - 1))]
            axes.barh(y, wide, height=LINE - 0.02, left=left, color=colour, zorder=1)
            weight = "bold" if share > 0.5 else "normal"
            axes.text(left + wide / 2, y, text, ha="center", va="center", weight=weight, color=paint.ink(colour))


def _draw_scale(axes: Any, ink: _Ink, y: float) -> None:
    """The scale of the dots, from 0 to the largest."""
    steps, wide, left = 48, 0.9, 0.2
    axes.text(left - 0.05, y, "0", ha="right", va="center", fontsize=7, color=QUIET)
    for step in range(steps):
        colour = ink.colour(ink.largest * step / (steps - 1))
        axes.barh(y, wide / steps, height=0.07, left=left + step * wide / steps, color=colour)
    how = ", square root" if ink.root else ""
    words = f"{ink.largest:.3g} of a head’s attention{how}"
    axes.text(left + wide + 0.05, y, words, ha="left", va="center", fontsize=7, color=QUIET)
