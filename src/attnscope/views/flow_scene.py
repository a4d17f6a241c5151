"""What the flow view shows: the attention graph and its scores, computed once for the page and the printed figure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, UInt8
from torch import Tensor

from .. import paint
from ..attribution import flow as attention_flow
from ..attribution import minimum_cut
from ..attribution import rollout as attention_rollout
from ..attribution.flow import SATURATED, FlowGraph
from ..attribution.flow_kernels import SCALE
from ..attribution.heads import Heads, with_residual
from ..errors import BadInput
from ..record import AttentionRecord
from .printing import INK, PAGE, QUIET, Plot, draw_in_inches, draw_lines, drawn_figure, shorten, text_width
from .sides import NAMED, shown_units, token_texts
from .tables import tidy_table, token_column

# What rollout and flow say of every token, from the sources and layers they were computed for.


@dataclass(frozen=True)
class FlowScores:
    """Scores by layer, source and token; layers by their places."""

    layers: tuple[int, ...]
    sources: tuple[int, ...]
    rollout: Float[np.ndarray, "layer source token"]
    flow: Float[np.ndarray, "layer source token"]
    ends: UInt8[np.ndarray, "layer source token"]
    """Where a flow is just a trivial cut: 1 for what the source can give, 2 for what the token can take, 3 for both."""
    saturation: tuple[tuple[int, float, float, float], ...]
    """For each layer the shares of flows at either trivial cut, at the source's, and at the token's."""

    def to_frame(self, record: AttentionRecord, maps: Float[np.ndarray, "layer token token"]) -> pd.DataFrame:
        """A row for each method, layer, query and key; raw attention is the row of the pooled map."""
        tokens = token_column(token_texts(record.tokens))
        raw = maps[list(self.layers)][:, list(self.sources)]
        return tidy_table(
            {
                "method": (0, ["raw", "rollout", "flow"]),
                "layer": (1, [record.layers[place] for place in self.layers]),
                "query": (2, self.sources),
                "key": (3, range(len(record.tokens))),
                "query_token": (2, tokens[list(self.sources)]),
                "key_token": (3, tokens),
            },
            value=np.stack([raw, self.rollout, self.flow]),
        )


SHORT = 48
"""Tokens up to which flow is computed from every source at every layer: about a second for twelve layers."""
LONG = 160
"""Tokens beyond which flow is computed only for sources that are named: one may take half a minute at 512."""


@dataclass(frozen=True)
class FlowScene:
    """What the page and the printed figure both draw: the graph, its tokens, and the scores of both methods."""

    record: AttentionRecord
    side: Mapping[str, Any]
    maps: Float[Tensor, "layer token token"]
    """The pooled heads W of each layer, without the residual connection."""
    graph: FlowGraph
    options: Mapping[str, Any]
    """How the maps were made: heads and residual."""
    scores: FlowScores

    def scores_from(self, sources: Sequence[int], place: int) -> FlowScores:
        """The scores from these sources at one layer: those of the page, or for a long text computed now."""
        found = self.scores
        if place not in found.layers or not set(sources) <= set(found.sources):
            found = flow_scores(self.record, self.graph, list(sources), list(sources), place, **self.options)
        layer, rows = found.layers.index(place), [found.sources.index(source) for source in sources]
        rollout, flow, ends = (table[[layer]][:, rows] for table in (found.rollout, found.flow, found.ends))
        return FlowScores((place,), tuple(sources), rollout, flow, ends, ())


def flow_scores(
    record: AttentionRecord,
    graph: FlowGraph,
    asked: list[int] | None,
    sources: list[int],
    place: int,
    heads: Heads,
    residual: int | float,
) -> FlowScores:
    """Rollout and flow where they are computed: everywhere in a short text, else from some sources at one layer."""
    tokens = len(record.query_tokens)
    every = tokens <= SHORT
    layers = list(range(len(record.layers))) if every else [place]
    chosen = list(range(tokens)) if every else (sources if tokens <= LONG else []) if asked is None else asked
    if not chosen:
        nothing = np.zeros((0, 0, tokens))
        return FlowScores((), (), nothing, nothing, nothing.astype(np.uint8), ())
    some: dict[str, Any] = {} if every else {"layers": layers, "queries": chosen}
    flows = attention_flow(record, heads=heads, residual=float(residual), **some)
    rolled = attention_rollout(record, heads=heads, residual=float(residual), queries=None if every else chosen)
    found = flows.map[layers][:, chosen].numpy()
    ends = np.zeros(found.shape, np.uint8)
    possible = np.tri(tokens, dtype=bool)[chosen] if record.causal else np.ones((len(chosen), tokens), bool)
    for index, layer in enumerate(layers):
        for bit, cut in enumerate(graph.cuts(layer), start=1):
            met = np.abs(found[index] - cut[chosen] / SCALE) <= SATURATED
            ends[index] |= (bit * (met & possible)).astype(np.uint8)
    shares = flows.saturation
    saturation = tuple(
        (layer, float(shares.total[layer]), float(shares.source[layer]), float(shares.token[layer])) for layer in layers
    )
    return FlowScores(
        tuple(layers), tuple(chosen), rolled.map[layers][:, chosen].double().numpy(), found, ends, saturation
    )


# What passes along each edge of the attention graph from chosen sources, for the printed flow view.


Edges = Float[np.ndarray, "layer query key"]


def passing_mass(maps: Edges, sources: Sequence[int]) -> Edges:
    """The share of the sources' mass along each edge by rollout: every layer sums to one."""
    mass = np.zeros(maps.shape[1])
    mass[list(sources)] = 1 / len(sources)
    edges = np.zeros_like(maps)
    for layer in reversed(range(len(maps))):
        edges[layer] = mass[:, None] * maps[layer]
        mass = edges[layer].sum(0)
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


def reachable_edges(edges: Edges, sources: Sequence[int], threshold: float) -> Edges:
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
class FlowChoice:
    """What is drawn: the source's layer by its place, sources and targets by position, and the units in sight."""

    top: int
    sources: list[int]
    targets: list[int]
    units: list[list[int]]
    """The tokens of every unit, in sight or not."""
    texts: list[str]
    visible: list[int]

    @classmethod
    def of(cls, record: AttentionRecord, side: Mapping[str, Any], state: Mapping[str, Any]) -> "FlowChoice":
        """What a state chooses of a record; as on the screen, the first token where no source is chosen."""
        units, visible = shown_units(side, state)
        number = state.get("layer")
        return cls(
            top=record.layers.index(number) if number in record.layers else len(record.layers) - 1,
            sources=list(state.get("queries") or [0]),
            targets=list(state.get("keys") or []),
            units=[list(unit.places) for unit in units],
            texts=[shorten(unit.text, LONGEST) for unit in units],
            visible=visible,
        )

    def columns(self, positions: Sequence[int]) -> list[int]:
        """The columns in sight that hold these tokens."""
        return [column for column, unit in enumerate(self.visible) if any(p in self.units[unit] for p in positions)]


def flow_figure(scene: FlowScene, state: Mapping[str, Any], width: int | float | None = None) -> Plot:
    """Raw attention, rollout and flow for the chosen source, layer and target, with the minimum cut in bold."""
    chosen = FlowChoice.of(scene.record, scene.side, state)
    width = width or PAGE
    count = len(chosen.visible)
    beside = (width - 2 * GAP) / 3 >= NUMBERS + count * STEP
    each = (width - 2 * GAP) / 3 if beside else width
    if each < NUMBERS + count * STEP:
        raise BadInput(
            f"A printed flow holds {int((each - NUMBERS) / STEP)} tokens readably in {width:g} inches, and this text"
            f" has {count}: take a shorter text, or save the view as .html."
        )
    found = scene.scores_from(chosen.sources, chosen.top)
    panels = _panels(scene, found, chosen, float(state.get("threshold") or 0.0))
    step = min((each - NUMBERS) / count, 0.4)
    labels = max(text_width(chosen.texts[unit]) for unit in chosen.visible) + 0.12
    row = min(ROW, GRAPH / (chosen.top + 1))
    height = TITLE + 2 * labels + (chosen.top + 1) * row
    across, down = (3, 1) if beside else (1, 3)
    with drawn_figure(width, down * height + (down - 1) * GAP) as figure:
        axes = draw_in_inches(figure.add_subplot(), width, down * height + (down - 1) * GAP)
        for place, panel in enumerate(panels):
            corner = (place % across * (each + GAP), place // across * (height + GAP))
            _draw(axes, panel, chosen, corner, (step, row, labels), scene.record.layers, bool(state.get("root")))
    return Plot(figure, _caption(scene.record, found, chosen, state))


def _panels(scene: FlowScene, found: FlowScores, chosen: FlowChoice, threshold: float) -> list[Panel]:
    """What each method says, between units."""
    top, sources, visible = chosen.top, chosen.sources, chosen.visible
    graph = with_residual(scene.maps[: top + 1], scene.options["residual"]).numpy()
    from_units = [unit for unit, places in enumerate(chosen.units) if set(places) & set(sources)]
    raw = reachable_edges(attention_between(graph, chosen.units, sources), from_units, threshold)
    mass = passing_between(passing_mass(graph, sources), chosen.units)
    cut: dict[tuple[int, int, int], float] = {}
    passed = raw
    if chosen.targets:
        pairs = product(sources, chosen.targets)
        cuts = [minimum_cut(scene.record, source, target, top, **scene.options) for source, target in pairs]
        passed = passing_between(sum((one.along for one in cuts), np.zeros_like(graph)) / len(sources), chosen.units)
        for edge in (edge for one in cuts for edge in one.edges):
            ends = (*chosen.columns([edge.query]), *chosen.columns([edge.key]))
            if len(ends) == 2:
                cut[edge.layer, *ends] = cut.get((edge.layer, *ends), 0.0) + edge.capacity

    def panel(title: str, edges: Edges, scores: Float[np.ndarray, " token"], **more: Any) -> Panel:
        in_sight = np.where(edges >= threshold, edges, 0.0)[:, visible][:, :, visible]
        return Panel(title, in_sight, np.array([scores[chosen.units[unit]].sum() for unit in visible]), **more)

    return [
        panel("Raw attention", raw, scene.maps[top, sources].mean(0).numpy()),
        panel(ROLLOUT, mass, found.rollout[0].mean(0)),
        panel("Flow", passed, found.flow[0].mean(0), cut=cut, colour=EDGE if chosen.targets else QUIET),
    ]


def _draw(
    axes: Any,
    panel: Panel,
    chosen: FlowChoice,
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


def _caption(record: AttentionRecord, found: FlowScores, chosen: FlowChoice, state: Mapping[str, Any]) -> str:
    """The panels in words, with the flow to the target, its saturation and what is left out."""
    names = [shorten(text, NAMED) for text in token_texts(record.tokens)]
    number = record.layers[chosen.top]
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
        value = float(found.flow[0].mean(0)[chosen.targets].sum())
        target = " + ".join(names[place] for place in chosen.targets)
        words.append(f"Flow to “{target}”: {value:.4f}; bold: the minimum cut nearest the source.")
    possible = np.tri(len(names), dtype=bool)[chosen.sources] if record.causal else np.True_
    share = (found.ends[0] > 0).mean(where=possible)
    words.append(f"{share:.0%} of the flows from here are just what the source can give or the token can take in.")
    if state.get("threshold"):
        words.append(f"Lines below {state['threshold']:g} are not drawn.")
    if not state.get("special", True):
        words.append("Special tokens and sinks are out of sight, but computed with.")
    return " ".join(words)
