"""The tracing view: attention handed down from the read-out to the input, a dot for each head, layer and token."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import paint
from ..attribution import layerwise_tracing
from ..attribution.heads import refuse_cross
from ..errors import BadInput
from ..record import AttentionRecord, TokenScores
from ..record.schema import checked
from .choices import pick_one
from .printing import (
    INK,
    PAGE,
    QUIET,
    Ink,
    Plot,
    draw_in_inches,
    draw_lines,
    draw_outlines,
    drawn_figure,
    fit_text,
    text_width,
    wrap,
)
from .scales import Scale, loudest
from .sides import MOST_UNITS, UNFOLDED, Unit, check_fits, quoted_texts, shown_units, side_of, sides_of, title_of
from .tables import tidy_table, token_column
from .view import View
from .weights import deflate

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

    def between(self, units: Sequence[Unit], head: int | None, heads: int) -> dict[tuple[int, int, int], float]:
        """What units hand on to units in one head, by layer and both their places: the sums over their tokens.

        Without a head it is the mean over all of them.
        """
        unit_of = {place: number for number, unit in enumerate(units) for place in unit.places}
        sums: dict[tuple[int, int, int], float] = {}
        for (layer, of_head, query, key), value in zip(self.places.tolist(), self.values.tolist(), strict=True):
            if head in (None, of_head) and query in unit_of and key in unit_of:
                line = (layer, unit_of[query], unit_of[key])
                sums[line] = sums.get(line, 0.0) + value / (heads if head is None else 1)
        return sums


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

    @property
    def rows(self) -> Float[Tensor, "row head token"]:
        """From the top: the read-out where it is known, then the layers from the last down to the input."""
        begin = [] if self.readout is None else [self.readout.expand(1, len(self.heads), -1)]
        return torch.cat([*begin, self.values.flip(0)])

    def payload(self) -> dict[str, Any]:
        """What a script must know of it."""
        return {
            "keys": self.side,
            "trace": {
                "layers": list(self.layers),
                "heads": list(self.heads),
                "readout": self.readout is not None,
                "lines": None if self.lines is None else len(self.lines.values),
                "faintest_line": FAINTEST_LINE,
                "lines_left_out": 0.0 if self.lines is None else self.lines.left_out,
                "warnings": list(self.warnings),
            },
        }

    def blobs(self) -> dict[str, bytes]:
        """The dots as 32-bit floats `[layer, head, token]` after the read-out, and the lines by columns."""
        readout = [] if self.readout is None else [self.readout.numpy().astype(np.float32)]
        blobs = {"trace": deflate(*readout, self.values.numpy().astype(np.float32))}
        if self.lines is not None:
            places = self.lines.places.numpy().astype(np.uint16)
            blobs["lines"] = deflate(self.lines.values.numpy().astype(np.float32), np.ascontiguousarray(places.T))
        return blobs

    def to_frame(self) -> pd.DataFrame:
        """Every dot as a row: layer, head, position, token, value."""
        texts = self.side["texts"]
        return tidy_table(
            {
                "layer": (0, self.layers),
                "head": (1, self.heads),
                "position": (2, range(len(texts))),
                "token": (2, token_column(texts)),
            },
            value=self.values.numpy(),
        )


def trace_of(given: TokenScores | AttentionRecord) -> Trace:
    """The trace of a record, with its lines, or what scores of layer-wise tracing hold of it."""
    if isinstance(given, AttentionRecord):
        refuse_cross(given)
        scores = layerwise_tracing(given)
        alpha = torch.cat([scores.per_head[1:], given.readout.expand(1, len(given.heads), -1)])
        lines = _lines(alpha, given.weights)
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


def _lines(alpha: Float[Tensor, "layer head token"], weights: Float[Tensor, "layer head token token"]) -> Lines:
    places, values, mass = [], [], 0.0
    for layer, (held, attention) in enumerate(zip(alpha, weights, strict=True)):
        # by layer: all at once would be as large as the weights again
        handed_on = held.unsqueeze(-1) * attention
        drawn = (handed_on >= FAINTEST_LINE).nonzero()
        places.append(torch.cat([torch.full((len(drawn), 1), layer), drawn], dim=1))
        values.append(handed_on[drawn.unbind(1)])
        mass += float(handed_on.sum())
    found = torch.cat(values)
    # where no token attends to anything, nothing is handed on and nothing is left out
    return Lines(torch.cat(places), found, max(1 - float(found.sum()) / mass, 0.0) if mass > 0 else 0.0)


# The view.


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
    state: dict[str, Any] = {
        "layer": pick_one(layer, trace.layers, "layer"),
        "head": None if head is None else pick_one(head, trace.heads, "head"),
        "words": False,
        "special": True,
        "threshold": 0.0,
        "root": False,
        "lines": True,
        "folded": True,
        "keys": [],
    }
    return View(
        "tracing",
        trace.payload(),
        state,
        trace.blobs(),
        table=trace.to_frame,
        draw=lambda selected, width: tracing_figure(trace, selected, width),
        choices={"layer": trace.layers, "head": (None, *trace.heads), "keys": range(len(trace.side["texts"]))},
        title=title_of("tracing", trace.side, scores if isinstance(scores, AttentionRecord) else None),
    )


# The printed view: dots for every head, layer and token, and the text below on the colour of its scores.


LEAST_PITCH, MOST_PITCH = 0.085, 0.16
"""Inches between two tokens of a panel: upright names of 6 points stay apart."""
FEWEST, TALLEST = 12, 9.0
"""Tokens that stay at least, so that more panels stand side by side, and the inches of a page that these are to fit."""
READ = 0.5
"""A token that more of the answer is read from is set aside where a scale ends: it holds most of the last layer."""
RESTING = 0.3
"""How much fainter lines are that rest on a special token or a sink."""
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
LONGEST, SMALL_LONGEST = 1.2, 0.55
"""Inches of an upright token, at most, below one head and below one of many."""


def tracing_figure(trace: Trace, state: Mapping[str, Any], width: int | float | None = None) -> Plot:
    """All heads side by side, or the one that is chosen, with the input text below."""
    every, visible = shown_units(trace.side, state)
    width = width or PAGE
    text_units = [every[place] for place in visible]
    # one head alone is large, as on the screen
    number = trace.heads[0] if len(trace.heads) == 1 else state.get("head")
    chosen = trace.heads.index(number) if number in trace.heads else None
    layer = state["layer"] if state.get("layer") in trace.layers else trace.layers[0]
    rows = len(trace.rows)
    row_of_text = rows - 1 - trace.layers.index(layer)
    panels, heads = ([None, *range(len(trace.heads))], slice(None)) if chosen is None else ([chosen], [chosen])
    scores = _held(trace, text_units)[row_of_text, heads].mean(0)
    words = _words(text_units, scores, bool(state.get("root")), width)
    room = (len(panels), rows, TALLEST - (words[-1].line + 3) * LINE, width)
    units = _unfolded(trace, text_units, state, _room(*room))
    values = _held(trace, units)
    columns, pitch = _columns(len(panels), len(units), width)
    row = min(LARGE_ROW, LARGE / rows) if chosen is not None else min(max(pitch, 0.08), 0.13)
    size, longest = (6, SMALL_LONGEST) if chosen is None else (7, LONGEST)
    names = [fit_text(unit.text, longest, size) for unit in units]
    labels = max(text_width(name, size) for name in names) + 0.05
    tall = TITLE + rows * row + labels + GAP / 2
    pinned = _holding(units, state)
    threshold = float(state.get("threshold") or 0.0)
    ink = Ink(_largest(trace, values, units), bool(state.get("root")))
    text_top = -(-len(panels) // columns) * tall
    height = text_top + (words[-1].line + 3) * LINE
    with drawn_figure(width, height) as figure:
        axes = draw_in_inches(figure.add_subplot(), width, height)
        for place, head in enumerate(panels):
            left = GUTTER + (place % columns) * (width / columns)
            top = (place // columns) * tall + TITLE
            title = "Mean of heads" if head is None else f"Head {trace.heads[head]}"
            axes.text(left, top - TITLE / 2, title, ha="left", va="center", fontsize=7, color=INK)
            x = [left + (token + 0.5) * pitch for token in range(len(units))]
            y = [top + (level + 0.5) * row for level in range(rows)]
            if trace.lines is not None and state.get("lines", True):
                handed_on = trace.lines.between(units, head, len(trace.heads))
                _draw_handed_on(axes, handed_on, (x, y), ink, threshold, [unit.quiet for unit in units])
            grid = values.mean(1) if head is None else values[:, head]
            _draw_dots(axes, grid, (x, y), min(pitch, row), ink, threshold)
            for level, layer_number in ((rows - len(trace.layers), trace.layers[-1]), (rows - 1, trace.layers[0])):
                axes.text(left - 0.03, y[level], str(layer_number), ha="right", va="center", fontsize=6, color=QUIET)
            boxes = [(x[unit] - pitch / 2, x[unit] + pitch / 2, top, top + rows * row) for unit in pinned]
            draw_outlines(axes, boxes, INK)
            for across, name in zip(x, names, strict=True):
                axes.text(across, y[-1] + row / 2, name, ha="center", va="top", rotation=90, fontsize=size)
        _draw_text(axes, words, _holding(text_units, state), text_top + LINE / 4)
        _draw_scale(axes, ink, height - LINE * 0.6)
    hidden = float(trace.rows[row_of_text, heads].sum(-1).mean() - scores.sum())
    outlined = f" Outlined: {quoted_texts(units[place] for place in pinned)}." if pinned else ""
    if len(units) < len(text_units):
        outlined += f" {len(text_units) - len(units)} quiet tokens are folded away above the text."
    above = "the layers from the last" if trace.readout is None else "the read-out, then the layers from the last"
    return Plot(
        figure,
        f"Layer-wise attention tracing (Wu et al. 2020), {'all heads' if chosen is None else f'head {number}'}: rows"
        f" are {above} down to the input, columns are tokens; the darker a dot, the more attention has gathered there"
        f" (0 to {ink.largest:.3g}, on a {'square-root' if ink.root else 'linear'} scale, the read-out, special tokens"
        " and sinks set aside; lines to these are grey). The text has"
        f" {'the mean over heads' if chosen is None else 'the values'} of layer {layer} as its background and weight."
        f"{_left_out(trace, state, hidden)}{outlined}",
    )


def _holding(units: Sequence[Unit], state: Mapping[str, Any]) -> list[int]:
    """The places of the units that are pinned."""
    return [place for place, unit in enumerate(units) if unit.holds(state.get("keys") or ())]


def _held(trace: Trace, units: Sequence[Unit]) -> Float[Tensor, "row head unit"]:
    """What each row and head holds on each unit."""
    return torch.stack([trace.rows[..., list(unit.places)].sum(-1) for unit in units], dim=-1)


def _room(panels: int, rows: int, height: float, width: int | float) -> int:
    """How many tokens of a long text have a column: forty, or fewer where panels so fit side by side on a page."""
    tall = TITLE + rows * LEAST_PITCH + SMALL_LONGEST + 0.05 + GAP / 2
    fitting = [min(UNFOLDED, int((width / across - GAP - GUTTER) / LEAST_PITCH)) for across in range(1, panels + 1)]
    allowed = [units for units in fitting if units >= FEWEST] or fitting[:1]
    low = (units for across, units in enumerate(allowed, 1) if math.ceil(panels / across) * tall <= height)
    return next(low, allowed[-1])


def _unfolded(trace: Trace, units: Sequence[Unit], state: Mapping[str, Any], room: int) -> list[Unit]:
    """The units that have a column: of a long text those that are pinned and those that hold most anywhere."""
    if len(units) <= MOST_UNITS:
        return list(units)
    if not state.get("folded", True):
        check_fits(len(units), "tokens in a row", "fold quiet tokens, with view.selecting(folded=True)")
    held = _held(trace, units)
    # the mean over heads is a panel too, but never holds more than one of them
    most = held.amax((0, 1)).numpy()
    return [units[place] for place in loudest(most, room, _holding(units, state))]


def _largest(trace: Trace, values: Float[Tensor, "row head unit"], units: Sequence[Unit]) -> float:
    """Where the scale of the dots ends: with the largest besides the read-out, special tokens and sinks."""
    below = values[len(values) - len(trace.layers) :]
    read = [0.0 if trace.readout is None else float(trace.readout[list(unit.places)].sum()) for unit in units]
    loud = below[..., [not unit.quiet and share <= READ for unit, share in zip(units, read, strict=True)]]
    largest = float(loud.max()) if loud.numel() else 0.0
    return max(largest or float(below.max()), SMALLEST_SCALE)


def _left_out(trace: Trace, state: Mapping[str, Any], hidden: float) -> str:
    """What is not drawn, in words."""
    words = f" Tokens left out hold {100 * hidden:.1f} %." if hidden > 1e-6 else ""
    if state.get("threshold"):
        words += f" Dots and lines below {float(state['threshold']):g} are not drawn."
    if trace.lines is not None and state.get("lines", True):
        share = f"{100 * trace.lines.left_out:.1f} %"
        words += (
            f" Lines hand on at least {FAINTEST_LINE:g} of a head’s attention; fainter ones, {share}, are not drawn."
        )
    return words


def _columns(panels: int, units: int, width: int | float) -> tuple[int, float]:
    """How many panels fit side by side with dots that can be told apart, and how far apart the dots are."""
    pitches = {columns: (width / columns - GAP - GUTTER) / units for columns in range(panels, 0, -1)}
    columns = next((columns for columns, pitch in pitches.items() if pitch >= LEAST_PITCH), 1)
    return columns, min(pitches[columns], MOST_PITCH) if panels > 1 else pitches[columns]


Places = tuple[Sequence[float], Sequence[float]]
"""Where units stand across, and rows down."""


def _draw_handed_on(
    axes: Any,
    lines: Mapping[tuple[int, int, int], float],
    places: Places,
    ink: Ink,
    threshold: float,
    quiet: Sequence[bool],
) -> None:
    """Lines from the token that hands attention on to the token below that gets it; the lowest row is layer 0."""
    x, y = places
    for rests, colour, share in ((True, QUIET, RESTING), (False, paint.sequential()[-1], 1.0)):
        drawn = {line: value for line, value in lines.items() if value >= threshold and quiet[line[2]] == rests}
        points = [((x[query], y[-2 - layer]), (x[key], y[-1 - layer])) for layer, query, key in drawn]
        opacities = [share * ink.share(value) for value in drawn.values()]
        draw_lines(axes, points, [colour] * len(points), opacities, width=0.6)


def _draw_dots(
    axes: Any, grid: Float[Tensor, "row unit"], places: Places, pitch: float, ink: Ink, threshold: float
) -> None:
    """The dots that are dark enough; those that only mark a place lie under the lines."""
    size = (min(pitch * 0.8, 0.12) * 72) ** 2
    across, down = np.meshgrid(*places)
    dots = list(zip(across.flat, down.flat, grid.flatten().tolist(), strict=True))
    for faint in (True, False):
        some = [dot for dot in dots if dot[2] >= threshold and (ink.share(dot[2]) < FAINT_DOT) == faint]
        if some:
            x, y, values = zip(*some, strict=True)
            axes.scatter(x, y, s=size, c=list(map(ink.colour, values)), linewidths=0, zorder=0 if faint else 3)


@dataclass(frozen=True)
class Word:
    """A unit in the text: where it stands, how wide it is, and its share of the largest score."""

    text: str
    line: int
    left: float
    width: float
    share: float

    @property
    def weight(self) -> str:
        """Its font's."""
        return "bold" if self.share > 0.5 else "normal"


def _words(units: Sequence[Unit], scores: Float[Tensor, " unit"], root: bool, width: int | float) -> list[Word]:
    """The text in lines that fit; its shares have a scale of their own."""
    scale = Scale.of(scores.double().numpy(), [unit.quiet for unit in units])
    ink = Ink(max(scale.end, SMALLEST_SCALE), root)
    shares = [ink.share(score) for score in scores.tolist()]
    texts = [fit_text(unit.text, (width - 0.2) / BOLD) for unit in units]
    widths = [
        text_width(text) * (BOLD if share > 0.5 else 1.0) + 0.08 for text, share in zip(texts, shares, strict=True)
    ]
    places = wrap(widths, [0.04] * len(units), width - 0.12)
    return [
        Word(text, line, 0.06 + left, wide, share)
        for text, (line, left), wide, share in zip(texts, places, widths, shares, strict=True)
    ]


def _draw_text(axes: Any, words: Sequence[Word], pinned: Sequence[int], top: float) -> None:
    for place, word in enumerate(words):
        y = top + (word.line + 0.5) * LINE
        if place in pinned:
            draw_outlines(axes, [(word.left, word.left + word.width, y - LINE / 2, y + LINE / 2)], INK)
        colour = paint.colour(word.share, 1.0)
        axes.barh(y, word.width, height=LINE - 0.02, left=word.left, color=colour, zorder=1)
        middle = word.left + word.width / 2
        axes.text(middle, y, word.text, ha="center", va="center", weight=word.weight, color=paint.ink(colour))


def _draw_scale(axes: Any, ink: Ink, y: float) -> None:
    """The scale of the dots, from 0 to the largest."""
    steps, wide, left = 48, 0.9, 0.2
    axes.text(left - 0.05, y, "0", ha="right", va="center", fontsize=7, color=QUIET)
    for step in range(steps):
        colour = ink.colour(ink.largest * step / (steps - 1))
        axes.barh(y, wide / steps, height=0.07, left=left + step * wide / steps, color=colour)
    how = ", square root" if ink.root else ""
    words = f"{ink.largest:.3g} of a head’s attention{how}, and more"
    axes.text(left + wide + 0.05, y, words, ha="left", va="center", fontsize=7, color=QUIET)
