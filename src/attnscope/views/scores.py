"""The scores view: the text on the colour of each method's scores, methods as rows, and how far they agree."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import paint
from ..attribution import Comparison
from ..attribution.comparing import REFERENCES
from ..errors import BadInput
from ..record import AttentionRecord
from ..record.schema import checked
from ..record.words import Level, units
from .choices import pick_one, position
from .palette import diverging
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
from .scores_methods import Method, Scores, level_of, methods_of, trust_of
from .scores_rows import Row, Rows, ScoresScene, with_maps
from .sides import quoted_texts, side_of, sides_of, title_of
from .view import View

ALIGNED_TOKENS = 40
"""Texts up to here open with methods as rows and tokens as columns; longer ones as running text."""
RESTING = 0.5
"""The share of one whole from which on a token is taken for a sink where there is no record to tell."""
LAYOUTS = ("aligned", "text")


@checked
def scores(
    scores: Scores,
    *,
    record: AttentionRecord | None = None,
    trust: Any = None,
    layer: int | None = None,
    query: int | None = None,
    reference: str | None = None,
    layout: str | None = None,
    size_budget: int | None = None,
) -> View:
    """What methods say of each token: the text once for each, on the colour of its scores.

    Every row has its own scale, from 0 to its largest score, because methods count in units of their own; those that
    are shares of one whole (raw, rollout, ...) can be put on a shared one. At the right edge stands the rank
    agreement with one of the methods, over the tokens that are shown.

    Args:
        scores: The scores of one method or several, or a `Comparison`; all of the same tokens.
        record: What was scored, or whose words or sentences were; it tells sinks, the sentences of a pair, and the
            tokens that attend.
        trust: How far each method can be trusted on this model: a mapping of methods to {"value", "low", "high"}, or
            what `attnscope.trust` returns.
        layer: The layer to open with, by its number or from the end; by default what each method says by itself.
        query: The position to open with in place of the read-out.
        reference: The method that the others are held against: by default blank-out, else gradients, else the first.
        layout: "aligned" (tokens as columns) or "text" (running text); by default the one that fits.
        size_budget: Bytes that the saved page may take. Maps for other queries travel while they fit (without a budget
            up to 16 MB), those of flow for short texts only; what is left out is said.
    """
    methods = with_maps(methods_of(scores, record), size_budget)
    level = None if record is None else level_of(methods[0].scores, record)
    sides = _sides(methods, record, level)
    of_record = record is not None and level == "token"  # words and sentences have scores of no single layer
    layers = (
        list(record.layers)
        if record is not None and of_record
        else list(range(max(one.scores.size[0] for one in methods)))
    )
    scene = ScoresScene(methods, sides, layers)
    figures, sentence = trust_of(trust)
    payload = {
        **sides,
        "layers": layers,
        "methods": scene.describe(figures),
        "readout": None if methods[0].readout is None else [round(mass, 6) for mass in methods[0].readout.tolist()],
        "trust": sentence,
        "left_out": dict(scores.left_out) if isinstance(scores, Comparison) else {},
    }
    count = len(sides["keys"]["texts"])
    names = [method.name for method in methods]
    state = {
        "layer": None if layer is None else pick_one(layer, layers or [0], "layer"),
        "queries": [] if query is None else [position(query, len(sides["queries"]["texts"]), "query")],
        "keys": [],
        "words": False,
        "special": True,
        "threshold": 0.0,
        "root": False,
        "scale": "each",
        "layout": _one_of(layout, LAYOUTS, "layout") or ("aligned" if count <= ALIGNED_TOKENS else "text"),
        "reference": _one_of(reference, names, "reference") or _reference(methods),
        "methods": None,
    }
    return View(
        "scores",
        payload,
        state,
        scene.blobs(),
        table=scene.to_frame,
        draw=lambda selected, width: scores_figure(scene.rows(selected), selected, width),
        choices={
            "layer": (None, *layers),
            "queries": range(len(sides["queries"]["texts"])),
            "keys": range(count),
            "scale": ("each", "shared"),
            "layout": LAYOUTS,
            "reference": names,
            "methods": (None, *names),
        },
        title=title_of("scores", sides["keys"], record),
    )


def _sides(methods: Sequence[Method], record: AttentionRecord | None, level: Level | None) -> dict[str, Any]:
    """The tokens that attend and those that are scored."""
    if record is not None and level == "token":
        return sides_of(record)
    scored = methods[0].scores
    sinks = [place for place, special in enumerate(scored.special) if not special and _rests_on(methods, place)]
    keys = {**side_of(scored.tokens, scored.word_ids, scored.special, None), "sinks": sinks, "masked": []}
    if record is not None and level is not None:
        keys |= _quiet_and_pair(record, level)
    count = max(method.scores.size[1] for method in methods)
    if count in (0, len(scored.tokens)):
        return {"queries": keys, "keys": keys, "stack": "encoder", "causal": False}
    names = [str(position) for position in range(count)]
    queries = side_of(names, range(count), [False] * count, None)
    return {"queries": {**queries, "sinks": [], "masked": []}, "keys": keys, "stack": "cross", "causal": False}


def _quiet_and_pair(record: AttentionRecord, level: Level) -> dict[str, Any]:
    """The words or sentences of a record that are sinks, and the text of a pair that each belongs to.

    A word is a sink as soon as one of its tokens is; a sentence only if it is nothing else.
    """
    groups, _ = units(record.key_tokens, record.key_special, record.key_word_ids, level)
    tokens = sides_of(record)["keys"]
    sinks, pair = set(tokens["sinks"]), tokens["sentences"]
    rests = sinks.issuperset if level == "sentence" else lambda group: not sinks.isdisjoint(group)
    return {
        "sinks": [place for place, group in enumerate(groups) if rests(group)],
        "sentences": None if pair is None else [pair[group[0]] for group in groups],
    }


def _rests_on(methods: Sequence[Method], place: int) -> bool:
    """Whether a token takes most of what a method hands out: without the record this tells a sink."""
    return any(float(method.own[place]) > RESTING for method in methods if method.is_shares)


def _reference(methods: Sequence[Method]) -> str:
    names = [method.name for method in methods if not method.scores.noise] or [method.name for method in methods]
    return next((name for name in REFERENCES if name in names), names[0])


def _one_of(name: str | None, names: Sequence[str], what: str) -> str | None:
    if name is not None and name not in names:
        raise BadInput(f"There is no {what} {name!r}: choose one of {', '.join(names)}.")
    return name


# The printed scores: the text once for each method, tokens below each other, agreement at the right edge.


ROW, BETWEEN = 0.19, 0.14
"""Inches that a row takes, and that lie between two lines of the text."""
TOP = 0.2
"""Inches above the text, for the names of the columns."""
PAD, GAP, SIDE = 0.035, 0.03, 0.08
"""Inches beside a token's letters, between two words, and between the text and what stands beside it."""
NUMBER = 0.62
"""Inches of a column of numbers, and of its name."""
LONGEST = 28
"""Letters of a token that are printed."""
TALLEST = 9.0
BEYOND = "#b34700"
"""The bar above a token whose score lies outside the scale."""
SMALL = 7


@dataclass(frozen=True)
class Cell:
    """A token where it stands: its line, its place in the text, where it begins and how wide it is."""

    line: int
    place: int
    left: float
    width: float


def scores_figure(rows: Rows, state: Mapping[str, Any], width: int | float | None = None) -> Plot:
    """Each token on the colour of its score; a long text goes on in further lines.

    In the aligned layout all methods stand below each line of the text, in running text one method after the other.
    """
    width = width or PAGE
    texts = [shorten(unit.text, LONGEST) for unit in rows.units]
    pinned = [place for place, unit in enumerate(rows.units) if unit in rows.pinned]
    aligned = state.get("layout", "aligned") == "aligned"
    left = max(text_width(row.name) for row in rows.rows) + SIDE
    edge = 2 * NUMBER if len(rows.rows) > 1 else NUMBER
    room = width - left - edge - SIDE
    # to measure letters takes its time: what cannot fit even in the narrowest ones is refused before
    _check_fits(sum(len(text) * NARROWEST + 2 * PAD for text in texts) / room, rows, aligned=aligned)
    cells = _laid_out(texts, [unit.join for unit in rows.units], left, room)
    lines = cells[-1].line + 1
    _check_fits(lines, rows, aligned=aligned)
    height = _height(lines, rows, aligned=aligned)
    with drawn_figure(width, height) as figure:
        figure.set_layout_engine("none")
        axes = draw_in_inches(figure.add_axes((0, 0, 1, 1)), width, height)
        _name_columns(axes, rows, width)
        for line in range(lines):
            of_line = [cell for cell in cells if cell.line == line]
            for place, row in enumerate(rows.rows):
                top = TOP + line * (len(rows.rows) * ROW + BETWEEN) + place * ROW
                if not aligned:
                    top = TOP + place * (lines * ROW + BETWEEN) + line * ROW
                _draw_row(axes, row, of_line, texts, top, state)
                held = [cell for cell in of_line if cell.place in pinned]
                boxes = [(cell.left, cell.left + cell.width, top + 0.01, top + ROW - 0.01) for cell in held]
                draw_outlines(axes, boxes, INK, width=0.8)
                if aligned or line == 0:
                    axes.text(0, top + ROW / 2, row.name, ha="left", va="center", color=INK)
                if line == 0:
                    _draw_edge(axes, row, rows, top + ROW / 2, width)
    return Plot(figure, _caption(rows, state))


def _height(lines: int | float, rows: Rows, *, aligned: bool) -> float:
    methods = len(rows.rows)
    return TOP + lines * methods * ROW + (lines if aligned else methods) * BETWEEN


def _check_fits(lines: int | float, rows: Rows, *, aligned: bool) -> None:
    """Refuse a figure that is higher than a page."""
    height = _height(lines, rows, aligned=aligned)
    if height > TALLEST:
        raise BadInput(
            f"A printed figure is at most {TALLEST:g} inches high, and these {len(rows.units)} tokens under"
            f" {len(rows.rows)} methods need {height:.0f} or more: take fewer methods or a shorter text, or save as"
            " .html."
        )


def _laid_out(texts: Sequence[str], joins: Sequence[bool], left: float, room: float) -> list[Cell]:
    """Tokens one after the other, as wide as their letters, on as many lines as they need; pieces of a word touch."""
    widths = [min(text_width(text) + 2 * PAD, room) for text in texts]
    places = wrap(widths, [0.0 if join else GAP for join in joins], room)
    return [Cell(line, place, left + at, widths[place]) for place, (line, at) in enumerate(places)]


def _draw_row(
    axes: Any, row: Row, cells: Sequence[Cell], texts: Sequence[str], top: float, state: Mapping[str, Any]
) -> None:
    grounds = [_ground(row, float(row.scores[cell.place]), state) for cell in cells]
    boxes = [(cell.left, cell.width) for cell in cells]
    axes.broken_barh(boxes, (top + 0.01, ROW - 0.02), facecolors=grounds, linewidth=0)
    beyond = [box for box, cell in zip(boxes, cells, strict=True) if row.scale.is_beyond(float(row.scores[cell.place]))]
    axes.broken_barh(beyond, (top + 0.01, 0.02), facecolors=BEYOND, linewidth=0)
    for cell, ground in zip(cells, grounds, strict=True):
        middle = (cell.left + cell.width / 2, top + ROW / 2)
        axes.text(*middle, texts[cell.place], ha="center", va="center", color=paint.ink(ground))


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


def _caption(rows: Rows, state: Mapping[str, Any]) -> str:
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
    if state.get("threshold"):
        said.append(f"Scores below {float(state['threshold']):g} of the end of the scale have no ink.")
    if rows.pinned:
        sums = ", ".join(f"{row.name} {row.pinned:.4g}" for row in rows.rows)
        said.append(f"Outlined: {quoted_texts(rows.pinned)}, in sum {sums}.")
    hidden = [f"{row.name} {100 * row.hidden:.1f} %" for row in rows.rows if row.hidden > 1e-6]
    if hidden:
        said.append(f"Tokens that are left out take: {', '.join(hidden)}.")
    return " ".join(said)
