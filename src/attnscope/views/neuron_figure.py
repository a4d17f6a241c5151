"""The printed neuron view: one query against every key, as strips of dimensions, logits and weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord
from .printing import (
    BAR,
    COLUMN,
    INK,
    PAGE,
    QUIET,
    Box,
    Plot,
    colour_map,
    colour_norm,
    draw_in_inches,
    draw_lines,
    draw_outlines,
    drawn_figure,
    fit_text,
    text_width,
)
from .scales import loudest
from .sides import MOST_UNITS, UNFOLDED, Unit, units_of

# What a state shows of a record: the query that is chosen, its keys, and what becomes of them, as the screen has it.


@dataclass(frozen=True)
class NeuronScene:
    """One query of a head, and the keys that are shown, in reading order."""

    layer: int
    head: int
    query: Unit
    keys: tuple[Unit, ...]
    dimensions: tuple[int, ...]
    """In the order in which they are drawn."""
    query_vector: Float[Tensor, " dimension"]
    key_vectors: Float[Tensor, "key dimension"]
    logits: Float[Tensor, " key"]
    weights: Float[Tensor, " key"]
    root: bool
    hidden: float
    """The weight of the keys that are left out."""
    folded: int
    """How many keys of a long text are folded away for their small weights."""

    @property
    def products(self) -> Float[Tensor, "key dimension"]:
        """What each dimension adds to the sum of a key."""
        return self.query_vector * self.key_vectors

    @classmethod
    def of(cls, record: AttentionRecord, sides: Mapping[str, Any], state: Mapping[str, Any]) -> "NeuronScene":
        """What is selected of a record with queries and keys; `sides` are those of the record (`sides_of`)."""
        if record.queries is None or record.keys is None:
            raise BadInput("This record holds no queries and keys, which the neuron view shows.")
        layer, head = record.layers.index(state["layer"]), record.heads.index(state["head"])
        query = int(state["query"])
        weights = record.weights[layer, head, query]
        units = units_of(sides["keys"], words=False)
        shown = [
            place
            for place, unit in enumerate(units)
            if (state.get("special", True) or not unit.quiet) and weights[place] >= state.get("threshold", 0.0)
        ]
        if not shown:
            raise BadInput("No key is shown, so that nothing is left to draw: lower the threshold or show all tokens.")
        folded = 0
        if len(shown) > MOST_UNITS:
            always = [row for row, place in enumerate(shown) if place in (state.get("keys") or ())]
            kept = loudest(weights[shown].numpy(), UNFOLDED, always)
            folded = len(shown) - len(kept)
            shown = [shown[row] for row in kept]
        asking, asked = record.queries[layer, head, query], record.keys[layer, head]
        dimensions = list(range(len(asking)))
        if state.get("order") == "contribution":
            pinned = [place for place in state.get("keys") or () if place in shown]
            about = pinned[-1] if pinned else max(shown, key=lambda place: float(weights[place]))
            products = (asking * asked[about]).tolist()
            dimensions.sort(key=lambda dimension: -products[dimension])
        # of one layer only: the logits of all would take their time
        logits = record.select(layer).logits()[0, head, query]
        return cls(
            layer=record.layers[layer],
            head=record.heads[head],
            query=units_of(sides["queries"], words=False)[query],
            keys=tuple(units[place] for place in shown),
            dimensions=tuple(dimensions),
            query_vector=asking[dimensions],
            key_vectors=asked[shown][:, dimensions],
            logits=logits[shown],
            weights=weights[shown],
            root=bool(state.get("root")),
            hidden=max(float(weights.sum() - weights[shown].sum()), 0.0),
            folded=folded,
        )


# The figure: the query above, a row for each key below it.


ROW, HEADING, FOOT = 0.16, 0.18, 0.46
"""Inches of a row, of the headings, and of the scales below."""
GAP = 0.1
"""Inches between columns."""
FIGURE, BARS = 0.42, 0.4
"""Inches of a column of figures, and of a weight of 1."""
WIDEST = 0.24
"""The share of the width that tokens take at most."""
PIXELS = 4
"""Of a row's height, the last of them empty, so that rows stand apart."""
MANY = 32
"""Dimensions from which on two strips need the width of a page."""


def neuron_figure(
    record: AttentionRecord, sides: Mapping[str, Any], state: Mapping[str, Any], width: int | float | None = None
) -> Plot:
    """The chosen query, and for each key its vector, the products with the query, the logit and the weight."""
    scene = NeuronScene.of(record, sides, state)
    rows = len(scene.keys)
    width = width or (PAGE if len(scene.dimensions) >= MANY else COLUMN)
    asking = fit_text(scene.query.text, WIDEST * width)
    texts = [fit_text(unit.text, WIDEST * width) for unit in scene.keys]
    begin = max(map(text_width, [asking, *texts])) + GAP
    strip = (width - begin - FIGURE - BARS - FIGURE - 3 * GAP) / 2
    product = begin + strip + GAP
    logit = product + strip + GAP + FIGURE
    above = 2 * HEADING + ROW + 0.06
    height = above + rows * ROW + FOOT
    with drawn_figure(width, height) as figure:
        axes = draw_in_inches(figure.add_subplot(), width, height)
        small = {"va": "center", "fontsize": 7, "color": QUIET}
        largest = max(float(scene.query_vector.abs().max()), float(scene.key_vectors.abs().max()), 1e-9)
        most = max(float(scene.products.abs().max()), 1e-9)
        axes.text(begin, HEADING / 2, f"query, layer {scene.layer}, head {scene.head}", ha="left", **small)
        _token(axes, asking, begin - GAP / 2, HEADING + 0.5 * (PIXELS - 1) / PIXELS * ROW)
        top = HEADING
        _strips(axes, scene.query_vector.unsqueeze(0), (begin, begin + strip, top + ROW, top), largest, root=scene.root)
        heading = HEADING + ROW + 0.06 + HEADING / 2
        for words, at, side in (
            ("key", begin, "left"),
            ("query × key", product, "left"),
            ("logit", logit, "right"),
            ("weight", logit + GAP, "left"),
        ):
            axes.text(at, heading, words, ha=side, **small)
        bottom = above + rows * ROW
        _strips(axes, scene.key_vectors, (begin, begin + strip, bottom, above), largest, root=scene.root)
        _strips(axes, scene.products, (product, product + strip, bottom, above), most, root=scene.root)
        _figures(axes, scene, texts, begin - GAP / 2, logit, above)
        for words, at, end in (("query, key", begin, largest), ("query × key", product, most)):
            _scale(axes, words, (at, at + strip, bottom + 0.18, bottom + 0.1), end, root=scene.root)
    return Plot(figure, _caption(scene))


def _token(axes: Any, text: str, right: float, middle: float) -> None:
    axes.text(right, middle, text, ha="right", va="center", color=INK)


def _strips(axes: Any, values: Float[Tensor, "row dimension"], box: Box, largest: float, *, root: bool) -> None:
    """A strip for each row, a cell for each dimension: one picture, for hundreds would take a figure many seconds."""
    sheet = np.full((len(values), PIXELS, values.shape[1]), np.nan, dtype=np.float32)
    sheet[:, : PIXELS - 1] = values.numpy()[:, None]
    _picture(axes, sheet.reshape(-1, values.shape[1]), box, largest, root=root)
    left, right, bottom, top = box
    row = (bottom - top) / len(values)
    ends = [top + row * place for place in range(len(values))]
    draw_outlines(axes, [(left, right, end + row * (PIXELS - 1) / PIXELS, end) for end in ends], QUIET, 0.4, 0.3)


def _picture(axes: Any, pixels: Float[np.ndarray, "y x"], box: Box, largest: float, *, root: bool) -> None:
    norm = colour_norm("square root" if root else "linear", -largest, largest)
    axes.imshow(
        pixels, cmap=colour_map(signed=True), norm=norm, extent=box, interpolation="none", aspect="auto", zorder=0
    )


def _figures(axes: Any, scene: NeuronScene, texts: Sequence[str], right: float, logit: float, above: float) -> None:
    """The tokens, the logits, and the weights as bars with their figures; what is masked is said."""
    bars = []
    for row, (text, score, weight) in enumerate(zip(texts, scene.logits.tolist(), scene.weights.tolist(), strict=True)):
        middle = above + (row + 0.5 * (PIXELS - 1) / PIXELS) * ROW
        _token(axes, text, right, middle)
        words = "masked" if score == -torch.inf else f"{score:.2f}".replace("-", "−")
        where = {"va": "center", "fontsize": 7, "color": INK}
        axes.text(logit, middle, words, ha="right", **where)
        bars.append(((logit + GAP, middle), (logit + GAP + weight * BARS, middle)))
        axes.text(logit + GAP + weight * BARS + 0.04, middle, f"{weight:.3f}", ha="left", **where)
    draw_lines(axes, bars, [BAR] * len(bars), [1.0] * len(bars), width=5)


def _scale(axes: Any, words: str, box: Box, largest: float, *, root: bool) -> None:
    """The colours from minus the largest to the largest, with figures."""
    left, right, bottom, _ = box
    shares = np.linspace(-largest, largest, 255, dtype=np.float32)[None]
    _picture(axes, shares, box, largest, root=root)
    draw_outlines(axes, [box], QUIET, 0.4, 0.3)
    where = {"va": "top", "fontsize": 7, "color": QUIET}
    end = f"{largest:.3g}"
    if text_width(f"−{end}{end}", 7) + GAP <= right - left:
        axes.text(left, bottom + 0.04, f"−{end}", ha="left", **where)
        axes.text(right, bottom + 0.04, end, ha="right", **where)
    else:  # vectors of few dimensions have a short scale
        axes.text((left + right) / 2, bottom + 0.04, f"±{end}", ha="center", **where)
    axes.text(left, bottom + 0.15, words, ha="left", **where)


def _caption(scene: NeuronScene) -> str:
    order = "from the largest contribution down" if scene.dimensions != tuple(sorted(scene.dimensions)) else "in order"
    parts = [
        f"How “{scene.query.text}” comes to attend in layer {scene.layer}, head {scene.head}: its query above, and for",
        f"each key its vector, the products of both by dimension ({len(scene.dimensions)}, {order}), the logit and the",
        f"weight. Colour is the value, on a {'square-root' if scene.root else 'linear'} scale, orange below zero.",
    ]
    if scene.folded:
        parts.append(f"{scene.folded} keys with smaller weights are folded away.")
    if scene.hidden > 1e-6:
        parts.append(f"Keys left out take {100 * scene.hidden:.1f} % of the attention.")
    return " ".join(parts)
