"""The head view: tokens left and right, a line for each weight, head by head and layer by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..paint import CATEGORICAL
from ..record import AttentionRecord, VectorRecord
from ..record.schema import checked
from ..record.vectors import rows as rows_of
from ..statistics.sinks import sinks_of
from .choices import pick_one
from .printing import COLUMN, INK, QUIET, Ink, Plot, draw_lines, drawn_figure, fit_text, text_width
from .record_view import layers_with_room, record_view, with_few_weights
from .sides import (
    MOST_UNITS,
    UNFOLDED,
    Unit,
    check_fits,
    check_in_sight,
    in_sight,
    quoted_texts,
    sides_of,
    units_holding,
    units_of,
)
from .view import View

LINES = 4
"""Lines for each token with which the view opens: enough to see patterns, few enough to follow one."""
SAMPLED = 64
"""Queries of a long text by which its threshold is chosen."""
STEP, LARGEST = 0.005, 0.5
"""The steps and the end of the slider of the threshold."""
PALE = 0.25
"""Where lines as faint as this are among the strongest, the view opens on a square-root scale: else nothing is seen."""


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
        keys_per_query: How many of the largest weights of each row stay, whatever the budget; of a record of vectors
            as far as the budget, 12 MB by default, allows.
    """
    if layer is not None and include_layers is None:
        include_layers = [record.layers.index(pick_one(layer, record.layers, "layer"))]
        layer = None
    chosen = with_few_weights(record).select(include_layers, include_heads)
    sides = sides_of(chosen, sentence_b_start)
    shown = layers_with_room(chosen, sides, size_budget, keys_per_query)
    threshold = opening_threshold(shown, layer)
    return record_view(
        "head",
        shown,
        sides,
        layer=layer,
        heads=heads,
        size_budget=size_budget,
        keys_per_query=keys_per_query,
        draw=partial(head_figure, shown, sides),
        opening={"threshold": threshold, "root": 0 < threshold < PALE},
        left_out=[number for number in chosen.layers if number not in shown.layers],
    )


def opening_threshold(record: AttentionRecord, layer: int | None) -> float:
    """The weight from which on a layer has about `LINES` lines for each token, special tokens and sinks aside."""
    place = record.layers.index(pick_one(layer, record.layers, "layer"))
    quiet = {*sinks_of(record), *(position for position, special in enumerate(record.key_special) if special)}
    keys = [position for position in range(len(record.key_tokens)) if position not in quiet]
    queries = range(len(record.query_tokens))
    if isinstance(record, VectorRecord):
        queries = queries[:: max(len(queries) // SAMPLED, 1)]
        every = rows_of(record.layer(place), queries)
    else:
        every = record.weights[place]
    weights = every[..., keys].flatten()
    wanted = LINES * len(queries)
    if wanted >= len(weights):
        return 0.0
    least = float(torch.topk(weights, wanted).values[-1])
    return round(min(int(least / STEP) * STEP, LARGEST), 3)


# What a state shows of a record: rows, columns and the lines between them, as the screen draws them.


SENTENCES = "AB"
"""What the sentences of a pair are called."""
FADED, FADED_ROWS = 0.1, 32
"""The share of their ink that lines of special tokens and sinks have where nothing is pinned, as on the screen; beyond
so many rows it is less, for many lines run together."""
FAINTEST = 1 / 255
"""Lines fainter than this are not drawn."""


@dataclass(frozen=True)
class HeadScene:
    """One layer of a record: the tokens or words left and right, and a line for each weight between them."""

    layer: int
    heads: tuple[int, ...]
    queries: tuple[Unit, ...]
    keys: tuple[Unit, ...]
    opacity: Float[Tensor, "head query key"]
    """Of the line of each weight; 0 for weights that are not drawn."""
    threshold: float
    root: bool
    has_faded: bool
    """Whether lines of special tokens and sinks step back."""
    choice: str
    """Which sentences and which pinned tokens are chosen, in words; nothing where all are."""
    hidden: float
    """The share of the attention of the shown rows that goes to keys left out."""
    gaps: tuple[tuple[int, ...], tuple[int, ...]]
    """For each query and each key, how many are folded away before it; after the last one too."""

    @classmethod
    def of(cls, record: AttentionRecord, sides: Mapping[str, Any], state: Mapping[str, Any]) -> "HeadScene":
        """What is selected of a record.

        That is words or tokens, with or without special tokens and sinks, from one sentence of a pair to one, these
        heads, and the weights of the tokens that are pinned; `sides` are those of the record (`sides_of`).
        """
        words, special = bool(state.get("words")), bool(state.get("special", True))
        between = str(state.get("between") or "all")
        units, places, pinned = [], [], []
        for side, name in enumerate(("queries", "keys")):
            every = units_of(sides[name], words=words)
            found = in_sight(every, special=special, sentence=None if between == "all" else int(between[side]))
            check_in_sight(found, special=special)
            units.append(tuple(every[place] for place in found))
            places.append(found)
            pinned.append(torch.tensor([unit.holds(state.get(name) or ()) for unit in units[side]]))
        layer = record.layers.index(state["layer"]) if state.get("layer") in record.layers else 0
        chosen = state.get("heads")
        heads = [place for place, number in enumerate(record.heads) if chosen is None or number in chosen]
        of_rows = (record.words() if words else record).weights[layer, heads][:, places[0]]
        weights = of_rows[..., places[1]]
        threshold, root = float(state.get("threshold") or 0.0), bool(state.get("root"))
        opacity = (weights.sqrt() if root else weights).clamp(max=1.0)
        # of tokens that are pinned only, where some are
        rows, columns = (some if bool(some.any()) else torch.ones_like(some) for some in pinned)
        looked_at = rows.unsqueeze(-1) & columns
        asking, asked = (torch.tensor([unit.quiet for unit in side]) for side in units)
        faded = (asking.unsqueeze(-1) | asked) & bool(looked_at.all())
        drawn = looked_at & (weights >= threshold) & (opacity >= FAINTEST)
        opacity = (opacity * torch.where(faded, faded_share(max(map(len, units))), 1.0)).masked_fill(~drawn, 0.0)
        counts = (len(units[0]), len(units[1]))
        own = sides["stack"] != "cross" and [unit.places for unit in units[0]] == [unit.places for unit in units[1]]
        always = [some.nonzero().flatten().tolist() for some in pinned]
        kept = strongest_ends(opacity.amax(0) if heads else opacity.sum(0), (always[0], always[1]), own=own)
        of_rows, weights = of_rows[:, kept[0]], weights[:, kept[0]][..., kept[1]]
        mass = float(of_rows.sum())
        units = [tuple(side[place] for place in places) for side, places in zip(units, kept, strict=True)]
        return cls(
            layer=record.layers[layer],
            heads=tuple(record.heads[place] for place in heads),
            queries=units[0],
            keys=units[1],
            opacity=opacity[:, kept[0]][..., kept[1]],
            threshold=threshold,
            root=root,
            has_faded=bool(faded.any()),
            choice=_choice(
                between,
                *(
                    quoted_texts(units_holding(side, state.get(name) or ()))
                    for side, name in zip(units, ("queries", "keys"), strict=True)
                ),
            ),
            # rows that attend to nothing hide nothing
            hidden=max(1 - float(weights.sum()) / mass, 0.0) if mass > 0 else 0.0,
            gaps=(_gaps(kept[0], counts[0]), _gaps(kept[1], counts[1])),
        )


def strongest_ends(
    strength: Float[Tensor, "query key"], asked: tuple[Sequence[int], Sequence[int]], *, own: bool
) -> tuple[list[int], list[int]]:
    """The rows and columns of a long text that a printed figure keeps: the ends of its strongest lines.

    A side of up to `MOST_UNITS` stays whole. Of a longer one those that are `asked` for stay, and then the ends of one
    line after the other, from the strongest on; where both sides are the same tokens (`own`), both keep the same.
    """
    long = [count > MOST_UNITS for count in strength.shape]
    if not any(long):
        return list(range(strength.shape[0])), list(range(strength.shape[1]))
    rows, columns = ({*places[:UNFOLDED]} for places in asked)
    if own:
        rows = columns = {*sorted(rows | columns)[:UNFOLDED]}
    lines = strength.nonzero()
    order = strength[lines.unbind(1)].argsort(descending=True, stable=True)
    for query, key in lines[order].tolist():
        grown = (rows | {query, key},) * 2 if own else (rows | {query}, columns | {key})
        if any(len(side) > UNFOLDED and folds for side, folds in zip(grown, long, strict=True)):
            break
        rows, columns = grown
    kept = [
        sorted(side or range(UNFOLDED)) if folds else list(range(count))
        for side, folds, count in zip((rows, columns), long, strength.shape, strict=True)
    ]
    return kept[0], kept[1]


def _gaps(kept: Sequence[int], count: int) -> tuple[int, ...]:
    """How many of so many places are left out before each that is kept, and after the last."""
    return tuple(here - before - 1 for before, here in pairwise([-1, *kept, count]))


def faded_share(rows: int) -> float:
    """The share of their ink that lines of special tokens and sinks have, among so many rows.

    >>> faded_share(8), faded_share(64)
    (0.1, 0.05)
    """
    return FADED * min(1.0, FADED_ROWS / rows)


def _choice(between: str, queries: str, keys: str) -> str:
    words = ""
    if between != "all":
        first, second = (SENTENCES[int(sentence)] for sentence in between)
        words += f" Shown is what sentence {first} attends to in sentence {second}."
    if queries or keys:
        ends = [f"{word} {names}" for word, names in (("from", queries), ("to", keys)) if names]
        words += f" Only lines {' '.join(ends)} are drawn."
    return words


# The printed head view: one layer, tokens left and right, a line for each weight.


ROW = 0.16
"""Inches between two tokens of a column."""
FOLDED_ROW = 0.7
"""Rows that tokens take which are folded away, one after the other."""
LEGEND_ROW = 0.17
SAMPLE, NUMBER = 0.16, 0.18
"""Inches of the line that stands for a head, long enough for a dash and its gap, and of its number."""
SCALE, SCALE_STEPS = 0.8, 48
"""Inches and steps of the scale of opacity."""
WIDEST = 0.38
"""The share of the width that the tokens of one column take at most."""


def head_figure(
    record: AttentionRecord, sides: Mapping[str, Any], state: Mapping[str, Any], width: int | float | None = None
) -> Plot:
    """The lines of the selected layer and heads, each as opaque as its weight."""
    if isinstance(record, VectorRecord):
        check_fits(max(record.shape[2:]), "tokens in a column")
    scene = HeadScene.of(record, sides, state)
    places, marks = zip(*map(_heights, scene.gaps), strict=True)
    rows = max(side[-1] for side in places)
    width = width or COLUMN
    queries, keys = ([fit_text(unit.text, WIDEST * width) for unit in units] for units in (scene.queries, scene.keys))
    left, right = max(map(text_width, queries)) + 0.06, width - max(map(text_width, keys)) - 0.06
    heads = _heads_in_words(record, scene.heads)
    title = f"layer {scene.layer}, {heads}"
    start = text_width(title, 7) + 0.15
    each = max(int((width - start) / (SAMPLE + NUMBER)), 1)
    listed = scene.heads if len(scene.heads) > 1 else ()
    legend = max(-(-len(listed) // each), 1) * LEGEND_ROW / ROW
    with drawn_figure(width, rows * ROW + LEGEND_ROW + legend * ROW + 0.1) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set(xlim=(0, width), ylim=(rows - 0.5 + LEGEND_ROW / ROW, -0.6 - legend))
        for texts, at, side, heights, dots in (
            (queries, left - 0.05, "right", places[0], marks[0]),
            (keys, right + 0.05, "left", places[1], marks[1]),
        ):
            for row, text in zip(heights, texts, strict=False):
                axes.text(at, row, text, ha=side, va="center", color=INK)
            for row in dots:
                axes.text(at, row, "⋮", ha=side, va="center", fontsize=6, color=QUIET)
        for head, opacity in zip(scene.heads, scene.opacity, strict=True):
            lines = opacity.nonzero().tolist()
            draw_lines(
                axes,
                [((left, places[0][query]), (right, places[1][key])) for query, key in lines],
                [_colour(record, head)] * len(lines),
                opacity[opacity > 0].tolist(),
                dash=_dash(record, head),
            )
        axes.text(0, -0.6 - legend + 0.5, title, ha="left", va="center", fontsize=7, color=INK)
        for place, head in enumerate(listed):
            begin, level = start + place % each * (SAMPLE + NUMBER), -0.1 - legend + place // each * LEGEND_ROW / ROW
            points = [((begin, level), (begin + SAMPLE, level))]
            draw_lines(axes, points, [_colour(record, head)], [1.0], width=1.6, dash=_dash(record, head))
            axes.text(begin + SAMPLE + 0.03, level, str(head), ha="left", va="center", fontsize=7, color=INK)
        _draw_scale(axes, rows - 0.5 + LEGEND_ROW / ROW / 2, scene)
    notes = [
        f" Weights below {scene.threshold:g} are not drawn." if scene.threshold > FAINTEST else "",
        " Lines of special tokens and sinks are faded." if scene.has_faded else "",
        scene.choice,
        _folded_in_words(scene),
        f" Tokens left out take {100 * scene.hidden:.1f} % of the attention." if scene.hidden > 1e-6 else "",
    ]
    return Plot(
        figure,
        f"Attention in layer {scene.layer}, {heads}: lines run from the token that attends (left) to the token attended"
        f" to (right), as opaque as {'the square root of ' * scene.root}the weight.{''.join(notes)}",
    )


def _heights(gaps: Sequence[int]) -> tuple[list[float], list[float]]:
    """Where the rows of a column stand, then where the column ends, and where marks stand for what is folded away.

    >>> _heights([0, 0, 3, 0])
    ([0.0, 1.0, 2.7, 3.7], [1.85])
    """
    heights: list[float] = []
    marks = []
    at = 0.0
    for folded in gaps:
        if folded:
            marks.append(round(at - 0.5 + FOLDED_ROW / 2, 3))
            at += FOLDED_ROW
        heights.append(round(at, 3))
        at += 1.0
    return heights, marks


def _folded_in_words(scene: HeadScene) -> str:
    """How many tokens of a long text are folded away, where some are."""
    left, right = map(sum, scene.gaps)
    if not left and not right:
        return ""
    most = f"{left}" if left == right else f"{left} (left) and {right} (right)"
    return f" {most} tokens without the strongest lines are folded away, where ⋮ stands."


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


def _draw_scale(axes: Any, row: float, scene: HeadScene) -> None:
    """The scale of opacity, from the threshold to 1."""
    left = text_width(f"weight {scene.threshold:g}", 7) + 0.06
    edges = [left + SCALE * step / SCALE_STEPS for step in range(SCALE_STEPS + 1)]
    shares = [(step + 0.5) / SCALE_STEPS for step in range(SCALE_STEPS)]
    ink = Ink(1.0, scene.root)
    opacities = [ink.share(scene.threshold + (1 - scene.threshold) * share) for share in shares]
    draw_lines(axes, [((a, row), (b, row)) for a, b in pairwise(edges)], [INK] * SCALE_STEPS, opacities, width=3)
    where = {"va": "center", "fontsize": 7, "color": INK}
    axes.text(0, row, f"weight {scene.threshold:g}", ha="left", **where)
    axes.text(left + SCALE + 0.06, row, "1" + ", opacity by the square root" * scene.root, ha="left", **where)
