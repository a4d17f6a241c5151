"""The head view: tokens left and right, a line for each weight, head by head and layer by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..record import AttentionRecord, VectorRecord
from ..record.schema import checked
from ..record.vectors import rows as rows_of
from ..statistics.sinks import sinks_of
from .choices import pick_one
from .palette import CATEGORICAL
from .printing import COLUMN, INK, Ink, Plot, draw_lines, drawn_figure, fit_text, text_width
from .record_view import layers_with_room, record_view, with_few_weights
from .sides import Unit, check_fits, check_in_sight, in_sight, quoted_texts, sides_of, units_holding, units_of
from .view import View

LINES = 4
"""Lines for each token with which the view opens: enough to see patterns, few enough to follow one."""
SAMPLED = 64
"""Queries of a long text by which its threshold is chosen."""
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
        keys_per_query: How many of the largest weights of each row stay, whatever the budget; of a record of vectors
            as far as the budget, 12 MB by default, allows.
    """
    if layer is not None and include_layers is None:
        include_layers = [record.layers.index(pick_one(layer, record.layers, "layer"))]
        layer = None
    chosen = with_few_weights(record).select(include_layers, include_heads)
    sides = sides_of(chosen, sentence_b_start)
    shown = layers_with_room(chosen, sides, size_budget, keys_per_query)
    return record_view(
        "head",
        shown,
        sides,
        layer=layer,
        heads=heads,
        size_budget=size_budget,
        keys_per_query=keys_per_query,
        draw=partial(head_figure, shown, sides),
        opening={"threshold": opening_threshold(shown, layer)},
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
        mass = float(of_rows.sum())
        return cls(
            layer=record.layers[layer],
            heads=tuple(record.heads[place] for place in heads),
            queries=units[0],
            keys=units[1],
            opacity=(opacity * torch.where(faded, faded_share(max(map(len, units))), 1.0)).masked_fill(~drawn, 0.0),
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
        )


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
    rows = max(len(scene.queries), len(scene.keys))
    check_fits(rows, "tokens in a column")
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
        for texts, at, side in ((queries, left - 0.05, "right"), (keys, right + 0.05, "left")):
            for row, text in enumerate(texts):
                axes.text(at, row, text, ha=side, va="center", color=INK)
        for head, opacity in zip(scene.heads, scene.opacity, strict=True):
            lines = opacity.nonzero().tolist()
            draw_lines(
                axes,
                [((left, float(query)), (right, float(key))) for query, key in lines],
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
        f" Tokens left out take {100 * scene.hidden:.1f} % of the attention." if scene.hidden > 1e-6 else "",
    ]
    return Plot(
        figure,
        f"Attention in layer {scene.layer}, {heads}: lines run from the token that attends (left) to the token attended"
        f" to (right), as opaque as {'the square root of ' * scene.root}the weight.{''.join(notes)}",
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
