"""The printed flow view: raw attention, rollout and flow from one source, with the minimum cut in bold."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from .. import paint
from ..attribution import flow as attention_flow
from ..attribution import minimum_cut, rollout
from ..attribution.heads import with_residual
from ..errors import BadInput
from ..record import AttentionRecord
from .printing import INK, PAGE, QUIET, Plot, draw_lines, drawn_figure, shortened, text_width
from .sides import NAMED, shown, shown_units

# What passes along each edge of the attention graph from chosen sources, for the printed flow view.


Edges = Float[np.ndarray, "layer query key"]
GRAIN = 2**30
"""Capacities of a drawn flow are multiples of 1 / GRAIN: finer than any line, and small enough for scipy."""


def passing_mass(maps: Edges, sources: Sequence[int]) -> Edges:
    """The share of the sources' mass along each edge by rollout: every layer sums to one."""
    mass = np.zeros(maps.shape[1])
    mass[list(sources)] = 1 / len(sources)
    edges = np.zeros_like(maps)
    for layer in reversed(range(len(maps))):
        edges[layer] = mass[:, None] * maps[layer]
        mass = edges[layer].sum(0)
    return edges


def flow_along(maps: Edges, source: int, target: int) -> Edges:
    """A maximum flow along each edge from a source above the top layer to an input token, one choice of many."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    layers, tokens, _ = maps.shape
    layer, query, key = np.nonzero(np.rint(maps * GRAIN) > 0)
    capacity = np.rint(maps * GRAIN).astype(np.int32)[layer, query, key]
    above, below = (layer + 1) * tokens + query, layer * tokens + key
    nodes = (layers + 1) * tokens
    graph = csr_array((capacity, (above, below)), shape=(nodes, nodes))
    found = maximum_flow(graph, layers * tokens + source, target).flow.tocoo()
    forward = found.data > 0
    edges = np.zeros_like(maps)
    starts, ends = found.row[forward], found.col[forward]
    edges[ends // tokens, starts % tokens, ends % tokens] = found.data[forward] / GRAIN
    return edges


def passing_between(edges: Edges, units: Sequence[Sequence[int]]) -> Float[np.ndarray, "layer unit unit"]:
    """What passes between units of several tokens: the sum over their edges."""
    members = _members(units, edges.shape[1])
    return np.asarray(members @ edges @ members.T)


def attention_between(
    edges: Edges, units: Sequence[Sequence[int]], sources: Sequence[int]
) -> Float[np.ndarray, "layer unit unit"]:
    """Attention between units: the mean over the tokens that ask, the sum over those asked; on top only sources ask."""
    members = _members(units, edges.shape[1])
    asking = np.repeat(members[None], len(edges), axis=0)
    asking[-1] *= np.isin(np.arange(edges.shape[1]), list(sources))
    asking /= np.maximum(asking.sum(-1, keepdims=True), 1.0)
    return np.asarray(asking @ edges @ members.T)


def _members(units: Sequence[Sequence[int]], tokens: int) -> Float[np.ndarray, "unit token"]:
    members = np.zeros((len(units), tokens))
    for unit, places in enumerate(units):
        members[unit, list(places)] = 1.0
    return members


def reached(edges: Edges, sources: Sequence[int], threshold: float) -> Edges:
    """The edges that can be reached from the sources over edges that are not below the threshold; others are zero."""
    kept = np.where((edges >= threshold) & (edges > 0), edges, 0.0)
    here = np.isin(np.arange(edges.shape[1]), list(sources))
    for layer in reversed(range(len(edges))):
        kept[layer][~here] = 0.0
        here = (kept[layer] > 0).any(0)
    return kept


STEP = 0.125
"""Inches between two tokens, at least: upright text of 8 points stays apart."""
ROW, GRAPH = 0.2, 4.4
"""Inches between two layers, and between the source and the input, at most."""
NUMBERS, GAP = 0.32, 0.12
TITLE = 0.34
LONGEST = 14
"""Letters of a token that are printed."""
FAINTEST = 1 / 255
EDGE, CUT = paint.sequential()[220], "#b34700"
ROLLOUT = "Rollout"


@dataclass(frozen=True)
class Panel:
    """One method's edges and scores, between the units that are shown."""

    title: str
    edges: Edges
    scores: Float[np.ndarray, " unit"]
    cut: Mapping[tuple[int, int, int], float] = field(default_factory=dict)
    """The edges in bold, by layer, query and key, with their capacities."""
    colour: str = EDGE


@dataclass(frozen=True)
class Chosen:
    """What is drawn: the source's layer by its place, sources and targets by position, and the units in sight."""

    top: int
    sources: list[int]
    targets: list[int]
    units: list[list[int]]
    """The tokens of every unit, in sight or not."""
    texts: list[str]
    visible: list[int]

    @classmethod
    def of(cls, record: AttentionRecord, side: Mapping[str, Any], state: Mapping[str, Any]) -> "Chosen":
        """What a state chooses of a record; as on the screen, the first token where no source is chosen."""
        units, visible = shown_units(side, state)
        number = state.get("layer")
        return cls(
            top=record.layers.index(number) if number in record.layers else len(record.layers) - 1,
            sources=list(state.get("queries") or [0]),
            targets=list(state.get("keys") or []),
            units=[list(unit.places) for unit in units],
            texts=[shortened(unit.text, LONGEST) for unit in units],
            visible=visible,
        )

    def columns(self, positions: Sequence[int]) -> list[int]:
        """The columns in sight that hold these tokens."""
        return [column for column, unit in enumerate(self.visible) if any(p in self.units[unit] for p in positions)]


def flow_figure(
    record: AttentionRecord,
    side: Mapping[str, Any],
    maps: Float[Tensor, "layer token token"],
    options: Mapping[str, Any],
    state: Mapping[str, Any],
    width: int | float | None = None,
) -> Plot:
    """The three panels for the chosen source, layer and target; `options` are the maps' heads and residual."""
    chosen = Chosen.of(record, side, state)
    width = width or PAGE
    count = len(chosen.visible)
    beside = (width - 2 * GAP) / 3 >= NUMBERS + count * STEP
    each = (width - 2 * GAP) / 3 if beside else width
    if each < NUMBERS + count * STEP:
        raise BadInput(
            f"A printed flow holds {int((each - NUMBERS) / STEP)} tokens readably in {width:g} inches, and this text"
            f" has {count}: take a shorter text, or save the view as .html."
        )
    panels = _panels(record, maps, options, chosen, float(state.get("threshold") or 0.0))
    step = min((each - NUMBERS) / count, 0.4)
    labels = max(text_width(chosen.texts[unit]) for unit in chosen.visible) + 0.12
    row = min(ROW, GRAPH / (chosen.top + 1))
    height = TITLE + 2 * labels + (chosen.top + 1) * row
    across, down = (3, 1) if beside else (1, 3)
    with drawn_figure(width, down * height + (down - 1) * GAP) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set(xlim=(0, width), ylim=(down * height + (down - 1) * GAP, 0))
        for place, panel in enumerate(panels):
            corner = (place % across * (each + GAP), place // across * (height + GAP))
            _draw(axes, panel, chosen, corner, (step, row, labels), record.layers, bool(state.get("root")))
    return Plot(figure, _caption(record, chosen, options, state))


def _panels(
    record: AttentionRecord,
    maps: Float[Tensor, "layer token token"],
    options: Mapping[str, Any],
    chosen: Chosen,
    threshold: float,
) -> list[Panel]:
    """What each method says, between units."""
    top, sources, visible = chosen.top, chosen.sources, chosen.visible
    graph = with_residual(maps[: top + 1], options["residual"]).numpy()
    from_units = [unit for unit, places in enumerate(chosen.units) if set(places) & set(sources)]
    raw = reached(attention_between(graph, chosen.units, sources), from_units, threshold)
    mass = passing_between(passing_mass(graph, sources), chosen.units)
    rolled = rollout(record, queries=sources, **options).map[top, sources].mean(0).double().numpy()
    flows = attention_flow(record, layers=[top], queries=sources, **options).map[top, sources].mean(0).numpy()
    cut: dict[tuple[int, int, int], float] = {}
    passed = raw
    if chosen.targets:
        along = sum(flow_along(graph, source, target) for source in sources for target in chosen.targets)
        passed = passing_between(np.asarray(along) / len(sources), chosen.units)
        for source, target in product(sources, chosen.targets):
            for edge in minimum_cut(record, source, target, top, **options).edges:
                ends = (*chosen.columns([edge.query]), *chosen.columns([edge.key]))
                if len(ends) == 2:
                    cut[edge.layer, *ends] = cut.get((edge.layer, *ends), 0.0) + edge.capacity

    def panel(title: str, edges: Edges, scores: Float[np.ndarray, " token"], **more: Any) -> Panel:
        in_sight = np.where(edges >= threshold, edges, 0.0)[:, visible][:, :, visible]
        return Panel(title, in_sight, np.array([scores[chosen.units[unit]].sum() for unit in visible]), **more)

    return [
        panel("Raw attention", raw, maps[top, sources].mean(0).numpy()),
        panel(ROLLOUT, mass, rolled),
        panel("Flow", passed, flows, cut=cut, colour=EDGE if chosen.targets else QUIET),
    ]


def _draw(
    axes: Any,
    panel: Panel,
    chosen: Chosen,
    corner: tuple[float, float],
    sizes: tuple[float, float, float],
    numbers: Sequence[int],
    root: bool,
) -> None:
    """One panel: its title, the source's tokens, the graph, the numbers of the layers and the coloured input tokens."""
    step, row, labels = sizes
    left, top = corner[0] + NUMBERS, corner[1] + TITLE + labels

    def x(column: int) -> float:
        return left + (column + 0.5) * step

    def y(level: int) -> float:
        return top + (chosen.top + 1 - level) * row

    def ink(values: Float[np.ndarray, "*any"], largest: float) -> Float[np.ndarray, "*any"]:
        shares = np.clip(values / (largest or 1.0), 0.0, 1.0)
        return np.asarray(np.sqrt(shares) if root else shares)

    every = panel.edges
    if panel.title == ROLLOUT:  # what stays on its token would leave no ink for all others
        sideways = every * ~np.eye(every.shape[-1], dtype=bool)
        every = sideways if sideways.any() else every
    lines_to, tokens_to = float(every.max(initial=0.0)), float(panel.scores.max(initial=0.0))
    axes.text(left, corner[1] + 0.08, panel.title, ha="left", va="center", color=INK, fontweight="bold")
    more = " and more" * bool((panel.edges > lines_to).any())
    ends = f"lines 0 to {lines_to:.2g}{more}, tokens 0 to {tokens_to:.2g}"
    axes.text(left, corner[1] + 0.22, ends, ha="left", va="center", color=QUIET, fontsize=6)
    apart = math.ceil(0.12 / row)
    for level in [0, *range(chosen.top + 1, apart // 2, -apart)]:
        name = str(numbers[level - 1]) if level else "input"
        axes.text(left - 0.04, y(level), name, ha="right", va="center", color=QUIET, fontsize=7)
    opacity = ink(panel.edges, lines_to)
    found = sorted(np.argwhere(opacity >= FAINTEST).tolist(), key=lambda edge: float(opacity[tuple(edge)]))
    lines = [((x(query), y(layer + 1)), (x(key), y(layer))) for layer, query, key in found]
    draw_lines(axes, lines, [panel.colour] * len(lines), [float(opacity[tuple(edge)]) for edge in found])
    bold = [((x(query), y(layer + 1)), (x(key), y(layer))) for layer, query, key in panel.cut]
    widths = np.array(list(panel.cut.values()))
    seen = np.maximum(ink(widths, float(widths.max(initial=0.0))), 0.15)
    draw_lines(axes, bold, [CUT] * len(bold), seen.tolist(), width=1.8)
    sources, targets = chosen.columns(chosen.sources), chosen.columns(chosen.targets)
    shades = ink(panel.scores, tokens_to)
    for column, unit in enumerate(chosen.visible):
        text = chosen.texts[unit]
        at_source = column in sources
        weight = "bold" if at_source else "normal"
        axes.text(
            x(column), top - 0.06, text, rotation=90, ha="center", va="bottom", color=INK if at_source else QUIET,
            fontweight=weight,
        )  # fmt: skip
        colour = paint.colour(float(shades[column]), 1.0)
        axes.bar(x(column), labels - 0.06, step - 0.01, y(0) + 0.04, color=colour, linewidth=0)
        axes.text(
            x(column), y(0) + 0.08, text, rotation=90, ha="center", va="top", color=paint.ink(colour),
            fontweight="bold" if column in targets and panel.cut else "normal",
        )  # fmt: skip


def _caption(record: AttentionRecord, chosen: Chosen, options: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """The panels in words, with the flow to the target, its saturation and what is left out."""
    names = [shortened(text, NAMED) for text in shown(record.tokens)]
    number = record.layers[chosen.top]
    flows = attention_flow(record, layers=[chosen.top], queries=chosen.sources, **options)
    everyone = len(chosen.sources) == len(record.query_tokens) > 1
    joined = " + ".join(names[place] for place in chosen.sources)
    source = "all tokens on average" if everyone else f"“{joined}”"
    scale = "the square root of" if state.get("root") else "proportional to"
    opening = (
        f"From {source} at layer {number} down to the input: raw attention with the residual, rollout (the share of"
        f" the source along each edge) and flow. Ink is {scale} the number, from 0 to the largest of each panel, for"
        " rollout to the largest that leads to another token; tokens below have the colour of each method's score."
    )
    words = [opening]
    if chosen.targets:
        value = float(flows.map[chosen.top, chosen.sources].mean(0)[chosen.targets].sum())
        target = " + ".join(names[place] for place in chosen.targets)
        words.append(f"Flow to “{target}”: {value:.4f}; bold: the minimum cut nearest the source.")
    share = float(flows.saturated[chosen.top])
    words.append(f"{share:.0%} of the flows from here are just what the source can give or the token can take in.")
    if state.get("threshold"):
        words.append(f"Lines below {state['threshold']:g} are not drawn.")
    if not state.get("special", True):
        words.append("Special tokens and sinks are out of sight, but computed with.")
    return " ".join(words)
