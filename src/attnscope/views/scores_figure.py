"""The printed scores: the text on the colour of each method's scores, its scale and agreement at the right edge.

Methods stand below each line of the text where that fits, else one after the other as running text. Of a text that is
too long even for that, the tokens stay that some method scores high, and an ellipsis stands for those between.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import paint
from ..errors import BadInput
from ..paint import diverging
from .printing import (
    INK,
    NARROWEST,
    PAGE,
    QUIET,
    Ink,
    Plot,
    draw_in_inches,
    draw_outlines,
    drawn_figure,
    shorten,
    text_width,
    wrap,
)
from .scales import loudest
from .scores_rows import Row, Rows
from .sides import quoted_texts

ROW, BETWEEN = 0.19, 0.14
"""Inches that a row takes, and that lie between two lines of the text or two methods."""
TOP = 0.2
"""Inches above the text, for the names of the columns."""
PAD, GAP, SIDE = 0.035, 0.03, 0.08
"""Inches beside a token's letters, between two words, and between the text and what stands beside it."""
NUMBER = 0.62
"""Inches of a column of numbers, and of its name."""
LONGEST = 28
"""Letters of a token that are printed."""
TALLEST = 9.0
"""Inches of a page."""
LEAST_ROOM = 2.0
"""Inches of a line of text, at least, beside the names of methods: in less the text runs on below them."""
BEYOND = "#b34700"
"""The bar above a token whose score lies outside the scale."""
SMALL = 7
FOLD = "…"
"""What stands for tokens that are left out."""


@dataclass(frozen=True)
class Cell:
    """A token where it stands: its line, its place in the text (none for a fold), where it begins, how wide it is."""

    line: int
    place: int | None
    left: float
    width: float


@dataclass(frozen=True)
class Sheet:
    """Where everything stands: methods below each line of the text, or one after the other."""

    cells: Sequence[Cell]
    methods: int
    aligned: bool

    @property
    def lines(self) -> int:
        """Of the text."""
        return self.cells[-1].line + 1

    @property
    def height(self) -> float:
        """In inches."""
        return _height(self.lines, self.methods, aligned=self.aligned)

    def top(self, method: int, line: int) -> float:
        """Where a line of a method begins."""
        if self.aligned:
            return TOP + line * (self.methods * ROW + BETWEEN) + method * ROW
        return self.name_top(method) + (line + 1) * ROW

    def name_top(self, method: int) -> float:
        """Where the line begins that names a method and says its scale and agreement."""
        return TOP + method * (ROW if self.aligned else (self.lines + 1) * ROW + BETWEEN)


def scores_figure(rows: Rows, state: Mapping[str, Any], width: int | float | None = None) -> Plot:
    """Each token on the colour of its score, in the layout that is chosen if that fits on a page."""
    width = width or PAGE
    texts = [shorten(unit.text, LONGEST) for unit in rows.units]
    sheet = _arrange(rows, texts, state, width)
    pinned = {place for place, unit in enumerate(rows.units) if unit in rows.pinned}
    with drawn_figure(width, sheet.height) as figure:
        figure.set_layout_engine("none")
        axes = draw_in_inches(figure.add_axes((0, 0, 1, 1)), width, sheet.height)
        _name_columns(axes, rows, width)
        for method, row in enumerate(rows.rows):
            middle = sheet.name_top(method) + ROW / 2
            _draw_edge(axes, row, rows, middle, width)
            if not sheet.aligned:
                axes.text(0, middle, row.name, ha="left", va="center", color=INK, weight="bold")
        for line in range(sheet.lines):
            of_line = [cell for cell in sheet.cells if cell.line == line]
            for method, row in enumerate(rows.rows):
                top = sheet.top(method, line)
                _draw_row(axes, row, of_line, texts, top, state)
                held = [cell for cell in of_line if cell.place in pinned]
                boxes = [(cell.left, cell.left + cell.width, top + 0.01, top + ROW - 0.01) for cell in held]
                draw_outlines(axes, boxes, INK, width=0.8)
                if sheet.aligned:
                    axes.text(0, top + ROW / 2, row.name, ha="left", va="center", color=INK)
    return Plot(figure, _caption(rows, state, sheet))


# ---- where tokens stand


def _height(lines: int | float, methods: int, *, aligned: bool) -> float:
    return TOP + (lines * (methods * ROW + BETWEEN) if aligned else methods * ((lines + 1) * ROW + BETWEEN))


def _arrange(rows: Rows, texts: Sequence[str], state: Mapping[str, Any], width: int | float) -> Sheet:
    """The layout that is chosen where it fits, else running text, else that of the tokens that score high."""
    joins, methods = [unit.join for unit in rows.units], len(rows.rows)
    every = range(len(texts))
    if state.get("layout", "aligned") == "aligned":
        left = max(text_width(row.name) for row in rows.rows) + SIDE
        room = width - left - SIDE - (2 * NUMBER if methods > 1 else NUMBER)
        # to measure letters takes its time: what cannot fit even in the narrowest ones is not measured
        least = sum(len(text) * NARROWEST + 2 * PAD for text in texts) / room if room > 0 else math.inf
        if room >= LEAST_ROOM and _height(least, methods, aligned=True) <= TALLEST:
            sheet = Sheet(_laid_out(every, texts, joins, left, room), methods, aligned=True)
            if sheet.height <= TALLEST:
                return sheet

    def running(most: int) -> Sheet:
        return Sheet(_laid_out(loudest(loudness, most, asked), texts, joins, 0.0, width), methods, aligned=False)

    loudness = _loudness(rows)
    asked = [place for place, unit in enumerate(rows.units) if unit in rows.pinned]
    lines = math.floor(((TALLEST - TOP) / methods - BETWEEN) / ROW) - 1
    if lines < 1:
        fits = math.floor((TALLEST - TOP) / (2 * ROW + BETWEEN))
        raise BadInput(
            f"A printed figure is at most {TALLEST:g} inches high, which is room for {fits} methods, and these are"
            f" {methods}: choose some with view.selecting(methods=[…]), or save as .html."
        )
    # the most tokens that fit lie between one and what would fit if all were as narrow as can be
    few, many = 1, min(len(texts), max(int(lines * width / (NARROWEST + 2 * PAD)), 1)) + 1
    while many - few > 1:
        some = (few + many) // 2
        few, many = (some, many) if running(some).lines <= lines else (few, some)
    return running(few)


def _loudness(rows: Rows) -> np.ndarray:
    """How high each token stands on the scale of any method, from 0 to 1."""
    shares = [[abs(row.scale.share(float(score))) for score in row.scores] for row in rows.rows]
    loudest: np.ndarray = np.nan_to_num(np.array(shares, dtype=np.float64)).max(0)
    return loudest


def _laid_out(
    places: Sequence[int], texts: Sequence[str], joins: Sequence[bool], left: float, room: int | float
) -> list[Cell]:
    """Tokens one after the other, as wide as their letters, on as many lines as they need; pieces of a word touch.

    A fold stands wherever tokens of the text are left out.
    """
    marked: list[int | None] = []
    for before, place in zip([-1, *places], [*places, len(texts)], strict=True):
        marked += [None] if place > before + 1 else []
        marked += [place] if place < len(texts) else []
    widths = [
        text_width(FOLD) if place is None else min(text_width(texts[place]) + 2 * PAD, float(room)) for place in marked
    ]
    # a piece of a word touches only the piece before it
    touch = [place is not None and joins[place] and place - 1 == before for before, place in _pairs(marked)]
    found = wrap(widths, [0.0 if join else GAP for join in touch], room)
    return [Cell(line, place, left + at, wide) for place, wide, (line, at) in zip(marked, widths, found, strict=True)]


def _pairs(marked: Sequence[int | None]) -> list[tuple[int | None, int | None]]:
    return list(zip([None, *marked[:-1]], marked, strict=True))


# ---- drawing


def _draw_row(
    axes: Any, row: Row, cells: Sequence[Cell], texts: Sequence[str], top: float, state: Mapping[str, Any]
) -> None:
    """The tokens of a line on their grounds, and what is folded between them."""
    shown = [(cell, cell.place) for cell in cells if cell.place is not None]
    grounds = [_ground(row, float(row.scores[place]), state) for _, place in shown]
    boxes = [(cell.left, cell.width) for cell, _ in shown]
    axes.broken_barh(boxes, (top + 0.01, ROW - 0.02), facecolors=grounds, linewidth=0)
    beyond = [
        box for box, (_, place) in zip(boxes, shown, strict=True) if row.scale.is_beyond(float(row.scores[place]))
    ]
    axes.broken_barh(beyond, (top + 0.01, 0.02), facecolors=BEYOND, linewidth=0)
    for (cell, place), ground in zip(shown, grounds, strict=True):
        middle = (cell.left + cell.width / 2, top + ROW / 2)
        axes.text(*middle, texts[place], ha="center", va="center", color=paint.ink(ground))
    for cell in cells:
        if cell.place is None:
            axes.text(cell.left + cell.width / 2, top + ROW / 2, FOLD, ha="center", va="center", color=QUIET)


def _ground(row: Row, score: float, state: Mapping[str, Any]) -> str:
    """The colour of a score on the scale of its row."""
    along = row.scale.share(score)
    hidden = abs(along) < float(state.get("threshold") or 0.0)
    share = 0.0 if hidden else Ink(1.0, bool(state.get("root"))).share(along)
    return diverging()[paint.step(1 + share, 2.0)] if row.signed else paint.colour(share, 1.0)


def _name_columns(axes: Any, rows: Rows, width: int | float) -> None:
    """What the numbers at the right edge are."""
    where = {"va": "center", "ha": "right", "fontsize": SMALL, "color": QUIET}
    edge = width - NUMBER if len(rows.rows) > 1 else width
    axes.text(edge, BETWEEN / 2, "scale ends", **where)
    if len(rows.rows) > 1:
        axes.text(width, BETWEEN / 2, "agreement", **where)


def _draw_edge(axes: Any, row: Row, rows: Rows, middle: float, width: int | float) -> None:
    where = {"va": "center", "ha": "right"}
    edge = width - NUMBER if len(rows.rows) > 1 else width
    end = ("±" if row.signed and not row.scale.start else "") + str(row.scale)
    axes.text(edge, middle, end, color=QUIET, **where)
    if len(rows.rows) > 1:
        agreement = "–" if math.isnan(row.agreement) else f"{row.agreement:.2f}".replace("-", "−")
        axes.text(width, middle, "ref." if row.name == rows.reference else agreement, color=INK, **where)


def _caption(rows: Rows, state: Mapping[str, Any], sheet: Sheet) -> str:
    """How to read the figure, and what is not in it."""
    asked = "mean of the queries" if len(rows.queries) > 1 else "query"
    who = f"for the {asked} {quoted_texts(rows.queries)}" if rows.queries else "for the read-out"
    layer = state.get("layer")
    where = "" if layer is None else f" at layer {layer}"
    scale = "square-root" if state.get("root") else "linear"
    said = [f"Token scores {who}{where}: the ground of a token is its score, on a {scale} scale from 0 to the number"]
    said[0] += " at the right of the row, special tokens and sinks set aside."
    if any(row.scale.is_beyond(float(score)) for row in rows.rows for score in row.scores):
        said.append("Those beyond the scale have an orange bar above.")
    if late := [row.name for row in rows.rows if row.scale.start]:
        said.append(f"All scores of {', '.join(late)} are near to each other, so that colours begin at the smallest.")
    if state.get("scale") == "shared":
        said.append("Scores that are shares of one whole have one scale.")
    if any(row.signed for row in rows.rows):
        said.append("Where scores have signs, blue is above zero and orange below.")
    if len(rows.rows) > 1:
        said.append(f"At the right edge the rank agreement (Spearman) with {rows.reference}.")
    only = [row.name for row in rows.rows if row.is_own]
    if only:
        said.append(f"What {', '.join(only)} say{'s' * (len(only) == 1)} is of the read-out.")
    if rows.pinned:
        sums = ", ".join(f"{row.name} {row.pinned:.4g}" for row in rows.rows)
        said.append(f"Outlined: {quoted_texts(rows.pinned)}, in sum {sums}.")
    return " ".join([*said, *_left_out(rows, state, sheet)])


def _left_out(rows: Rows, state: Mapping[str, Any], sheet: Sheet) -> list[str]:
    """What is not in the figure, a sentence for each."""
    said = []
    if state.get("threshold"):
        said.append(f"Scores below {float(state['threshold']):g} of the end of the scale have no ink.")
    if folded := sorted(set(range(len(rows.units))) - {cell.place for cell in sheet.cells}):
        said.append(
            f"{FOLD} stands for {len(folded)} of the {len(rows.units)} tokens, which reach at most"
            f" {_loudness(rows)[folded].max():.2g} of the scale of any method."
        )
    hidden = [f"{row.name} {100 * row.hidden:.1f} %" for row in rows.rows if row.hidden > 1e-6]
    if hidden:
        said.append(f"Tokens that are left out take: {', '.join(hidden)}.")
    return said
