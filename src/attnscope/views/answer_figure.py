"""The printed answer: its words on top, below them where the score goes, and the documents, the strongest first.

Of documents that do not fit on a page the strongest passages stay, and an ellipsis stands for those between.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import paint
from ..paint import diverging
from .answer_scene import SIDE, AnswerRows, AnswerScene, Kind
from .printing import (
    BAR,
    INK,
    NARROWEST,
    PAGE,
    QUIET,
    Box,
    Ink,
    Plot,
    draw_in_inches,
    draw_outlines,
    drawn_figure,
    fit_text,
    shorten,
    text_width,
    wrap,
)

ROW, BETWEEN = 0.18, 0.1
"""Inches of a line of text, and between two parts."""
PAD, SPACE = 0.012, 0.022
"""Inches beside the letters of a word, and of a space."""
TALLEST = 9.0
"""Inches of a page."""
METER, SAID = 0.16, 1.3
"""The width of a bar as a share of the figure's, and the inches of the figures behind it."""
SMALL = 7
FOLD = "…"
SEPARATED = 12
"""A printed text is cut into words; one without spaces is cut into pieces of so many letters."""
NAMED = 40
RESTING = 0.9
"""The share on markers and sinks from which on the rest is doubted, as on the screen."""
TITLES: Mapping[Kind, str] = {
    "document": "documents",
    "question": "question",
    "turn": "other turns",
    "answer": "own earlier words",
    "marker": "markers and sinks",
}


@dataclass(frozen=True)
class Piece:
    """Letters that stay together on a line, on one ground."""

    text: str
    ground: str | None
    outlined: bool = False
    gap: float = 0.0
    """The space before it, where it does not begin a line."""
    goes_on: bool = False
    """Whether it is of the same passage as the piece before it."""


@dataclass(frozen=True)
class Block:
    """Pieces set as running text, below a heading if there is one."""

    heading: tuple[str, tuple[str, str], float] | None
    """What it is called, its share and drop in words, and how long the bar is, from 0 to 1 or from -1."""
    pieces: Sequence[Piece]

    def places(self, width: float) -> list[tuple[int, float]]:
        """The line of each piece and where it begins."""
        widths = [text_width(piece.text) + 2 * PAD for piece in self.pieces]
        return wrap(widths, [piece.gap for piece in self.pieces], width)

    def height(self, width: float) -> float:
        """In inches."""
        lines = self.places(width)[-1][0] + 1 if self.pieces else 0
        return (lines + (self.heading is not None)) * ROW + BETWEEN


def answer_figure(scene: AnswerScene, state: Mapping[str, Any], width: int | float | None = None) -> Plot:
    """The answer, the shares of the kinds of parts, and the parts with their passages on the ground of their shares."""
    width = float(width or PAGE)
    rows = scene.rows(state)
    pinned = set(state.get("queries") or ()), set(state.get("keys") or ())
    reply = _reply(scene, rows, state, pinned[0])
    origin = _origin(rows)
    above = reply.height(width) + len(origin) * ROW + BETWEEN
    shown = _that_fit(scene, rows, state, TALLEST - above - ROW, width)
    parts = _parts(scene, rows, state, shown, pinned[1])
    absent = [part for part in rows.order if shown.isdisjoint(scene.part_places[part])]
    height = above + sum(part.height(width) for part in parts) + ROW * bool(absent)
    with drawn_figure(width, height) as figure:
        figure.set_layout_engine("none")
        axes = draw_in_inches(figure.add_axes((0, 0, 1, 1)), width, height)
        top = _draw_block(axes, reply, 0.0, width)
        for name, share in origin:
            axes.text(0, top + ROW / 2, name, va="center", color=INK)
            _draw_meter(axes, top, width, share)
            axes.text(width - SAID / 2 - 0.1, top + ROW / 2, _percent(share), va="center", ha="right", color=INK)
            if name == TITLES["document"] and not math.isnan(rows.drop_of_all):
                axes.text(
                    width, top + ROW / 2, f"drop {_number(rows.drop_of_all)}", va="center", ha="right", color=QUIET
                )
            top += ROW
        top += BETWEEN
        for part in parts:
            top = _draw_block(axes, part, top, width)
        if absent:
            share = float(rows.part_shares[absent].sum())
            said = f"{FOLD} and {len(absent)} more, together {_percent(share)}"
            axes.text(0, top + ROW / 2, said, va="center", color=QUIET)
    return Plot(
        figure, _caption(scene, rows, state, sum(len(scene.part_places[part]) for part in rows.order) - len(shown))
    )


# ---- what stands where


def _reply(scene: AnswerScene, rows: AnswerRows, state: Mapping[str, Any], pinned: set[int]) -> Block:
    pieces: list[Piece] = []
    ends = False
    for word, share in zip(scene.words, rows.word_shares, strict=True):
        text = "".join(scene.texts[token] for token in word)
        ground = _ground(rows, state, share, rows.word_scale.end)
        # a full stop touches the word before it
        gap = SPACE if pieces and (ends or text[:1].isspace()) else 0.0
        pieces += _pieces(text, ground, outlined=not pinned.isdisjoint(word), gap=gap)
        ends = text[-1:].isspace()
    return Block(None, pieces)


def _origin(rows: AnswerRows) -> list[tuple[str, float]]:
    return [(TITLES[kind], share) for kind, share in rows.origin.items() if share]


def _parts(
    scene: AnswerScene, rows: AnswerRows, state: Mapping[str, Any], shown: set[int], pinned: set[int]
) -> list[Block]:
    """The parts of which some passage is printed, an ellipsis for those between."""
    most = max((abs(rows.part_shares[place]) for place in rows.order), default=0.0)
    blocks = []
    for part in rows.order:
        places = scene.part_places[part]
        if shown.isdisjoint(places):
            continue
        pieces: list[Piece] = []
        for place in places:
            if place in shown:
                quiet = scene.parts[part].kind in SIDE
                ground = None if quiet else _ground(rows, state, rows.shares[place], rows.scale.end)
                pieces += _pieces(scene.passages[place].text, ground, outlined=place in pinned, gap=SPACE)
            elif not pieces or pieces[-1].text != FOLD:
                pieces.append(Piece(FOLD, None, gap=SPACE))
        share, drop = float(rows.part_shares[part]), float(rows.drops[part])
        said = (_percent(share), "" if math.isnan(drop) else f"drop {_number(drop)}")
        blocks.append(Block((scene.parts[part].name, said, share / most if most else 0.0), pieces))
    return blocks


def _that_fit(scene: AnswerScene, rows: AnswerRows, state: Mapping[str, Any], room: float, width: float) -> set[int]:
    """The passages that are printed: all that are shown on the page, or the strongest that fit, at least one."""
    wanted = [place for part in rows.order for place in scene.part_places[part]]
    wanted.sort(key=lambda place: (-abs(rows.shares[place]), place))
    # to measure letters takes its time: what cannot fit even in the narrowest ones is not measured
    letters = np.cumsum([len(scene.passages[place].text) for place in wanted])
    few, many = 1, min(len(wanted), int(np.searchsorted(letters, room / ROW * width / NARROWEST)) + 1) + 1
    while many - few > 1:
        some = (few + many) // 2
        blocks = _parts(scene, rows, state, set(wanted[:some]), set())
        fits = sum(block.height(width) for block in blocks) <= room
        few, many = (some, many) if fits else (few, some)
    return set(wanted[:few])


def _pieces(text: str, ground: str | None, *, outlined: bool, gap: float) -> list[Piece]:
    """The words of a passage on one ground."""
    return [Piece(piece, ground, outlined, SPACE if at else gap, at > 0) for at, piece in enumerate(_cut(text))]


def _cut(text: str) -> list[str]:
    """The words of a text, a long one in pieces."""
    return [
        word[start : start + SEPARATED] if len(word) > 2 * SEPARATED else word
        for word in re.split(r"\s+", text.strip())
        for start in (range(0, len(word), SEPARATED) if len(word) > 2 * SEPARATED else [0])
    ]


# ---- drawing


def _ground(rows: AnswerRows, state: Mapping[str, Any], share: float, end: float) -> str:
    along = Ink(end, bool(state.get("root"))).share(float(share))
    return diverging()[paint.step(1 + along, 2.0)] if rows.method.is_signed else paint.colour(along, 1.0)


def _draw_block(axes: Any, block: Block, top: float, width: float) -> float:
    """Draws it and gives where the next one begins."""
    if block.heading is not None:
        name, said, share = block.heading
        percent, drop = said
        room = 0.9 * (width * (1 - METER) - SAID - 0.2)  # bold letters are wider than those that are measured
        axes.text(0, top + ROW / 2, fit_text(name, room), va="center", color=INK, weight="bold")
        _draw_meter(axes, top, width, share)
        axes.text(width - SAID / 2 - 0.1, top + ROW / 2, percent, va="center", ha="right", color=INK)
        axes.text(width, top + ROW / 2, drop, va="center", ha="right", color=QUIET)
        top += ROW
    boxes: list[Box] = []
    before = (-1, 0.0)
    for piece, (line, left) in zip(block.pieces, block.places(width), strict=True):
        low = top + line * ROW
        right = left + text_width(piece.text) + 2 * PAD
        # the ground of a passage goes on between its words
        begin = before[1] if piece.goes_on and before[0] == line else left
        before = (line, right)
        if piece.ground is not None:
            axes.broken_barh([(begin, right - begin)], (low + 0.01, ROW - 0.02), facecolors=piece.ground, linewidth=0)
        if piece.outlined and boxes and begin == boxes[-1][1]:
            boxes[-1] = (boxes[-1][0], right, *boxes[-1][2:])
        elif piece.outlined:
            boxes.append((begin, right, low + 0.01, low + ROW - 0.01))
        ink = QUIET if piece.ground is None else paint.ink(piece.ground)
        axes.text(left + PAD, low + ROW / 2, piece.text, va="center", color=ink)
    draw_outlines(axes, boxes, INK, width=0.8)
    return top + block.height(width) - (ROW if block.heading is not None else 0.0)


def _draw_meter(axes: Any, top: float, width: float, share: float) -> None:
    """A bar whose room is outlined by a quiet line; what is below zero is orange."""
    wide = width * METER
    left = width - wide - SAID - 0.1
    long, colour = wide * min(abs(share), 1.0), diverging()[40] if share < 0 else BAR
    axes.broken_barh([(left, long)], (top + 0.06, ROW - 0.12), facecolors=colour, linewidth=0)
    axes.broken_barh([(left, wide)], (top + ROW - 0.06, 0.005), facecolors=QUIET, linewidth=0)


def _percent(share: float) -> str:
    """As the screen writes it."""
    size = abs(share)
    if 0 < size < 0.0005:
        text = "< 0.1 %"
    elif 0.9995 <= size < 1:
        text = "> 99.9 %"
    else:
        text = f"{100 * size:.1f} %"
    return ("−" if share < 0 else "") + text


def _number(value: float) -> str:
    return f"{round(value, 3) or 0:.3g}".replace("-", "−")


def _caption(scene: AnswerScene, rows: AnswerRows, state: Mapping[str, Any], left_out: int) -> str:
    """How to read the figure, what its figures are not, and what is not in it."""
    chosen = "".join(scene.texts[token] for token in rows.tokens).strip()
    who = f"“{shorten(chosen, NAMED)}”" if state.get("queries") else "the whole answer"
    scale = "square-root" if state.get("root") else "linear"
    named = "the passages that are outlined" if state.get("keys") else "the documents"
    said = [
        f"Where the score of {rows.method.name} goes for {who}: the ground of a passage is its share, on a {scale}",
        f"scale from 0 to {_percent(rows.scale.end)}; that of a word of the answer is the share of its own score that",
        f"goes to {named}, up to {_percent(rows.word_scale.end)}. Markers, sinks and the answer's own earlier words",
        "have no ink.",
        "A share is no proof that the model used what stands there.",
    ]
    if abs(rows.origin["marker"]) >= RESTING * sum(map(abs, rows.origin.values())):
        said.append(f"{_percent(rows.origin['marker'])} of it rests on markers and sinks: the rest says little.")
    if rows.method.is_signed:
        said.append("Shares are of all scores without their signs: blue is above zero, orange below.")
    if not np.isnan(rows.drops).all():
        said.append(
            "Drop: by how much the log-probability of these words falls when that document is deleted, measured."
        )
    if not math.isnan(rows.drop_of_all):
        said.append(f"Without any document it falls by {_number(rows.drop_of_all)}.")
    if left_out:
        said.append(f"{FOLD} stands for passages that do not fit: {left_out} of them.")
    return " ".join(said)
