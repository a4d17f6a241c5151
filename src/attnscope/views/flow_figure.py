"""The printed flow view: raw attention, rollout and flow from the chosen source, with the same scales as the screen."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from .. import paint
from ..attribution import minimum_cut
from ..attribution.heads import with_residual
from ..errors import BadInput
from ..record import AttentionRecord
from .flow_scene import (
    Edges,
    FlowScene,
    FlowScores,
    attention_between,
    passing_between,
    passing_mass,
    reachable_edges,
)
from .printing import INK, PAGE, QUIET, Plot, draw_in_inches, draw_lines, drawn_figure, shorten, text_width
from .scales import Scale, loudest
from .sides import NAMED, shown_units, token_texts

STEP = 0.125
"""Inches between two tokens, at least: upright text of 8 points stays apart."""
ROW, GRAPH = 0.2, 4.4
"""Inches between two layers, and between the source and the input, at most."""
NUMBERS, ENDS, GAP = 0.32, 0.34, 0.12
"""Inches of the numbers of the layers, of the ends of their scales, and between panels."""
TITLE = 0.44
LONGEST = 14
"""Letters of a token that are printed."""
FAINTEST = 1 / 255
EDGE, CUT = paint.sequential()[220], "#b34700"
BROAD = 24
"""Edges of a minimum cut that are drawn broad; more would be one dark band."""
RESTING, RESTING_COLUMNS = 0.3, 16
"""The ink of lines that stay on their token or rest on a special token or a sink; less beyond so many columns."""
FOLLOWED, FOLLOWED_EACH = 100, 3
"""Lines of one kind between two layers that the eye can follow, at least, and for each column."""
LEAST_END = 1e-4
"""A layer's own scale never ends below this: where next to nothing passes, nothing is drawn as if it did."""
ROLLOUT = "Rollout"


@dataclass(frozen=True)
class Panel:
    """One method's edges and scores, between the units that are shown."""

    title: str
    edges: Edges
    scores: Float[np.ndarray, " unit"]
    quiet: tuple[bool, ...]
    """Which units are special tokens or sinks."""
    cut: Mapping[tuple[int, int, int], float] = field(default_factory=dict)
    """The edges of the minimum cut, by layer, query and key, with their capacities."""
    colour: str = EDGE
    whole: bool = False
    """Whether every line is drawn alike, as those of one flow are."""

    @property
    def scale(self) -> Scale:
        """Of the tokens."""
        return Scale.of(self.scores, self.quiet)

    @property
    def beyond(self) -> list[bool]:
        """Which tokens lie outside their scale."""
        return [self.scale.is_beyond(float(score)) for score in self.scores]

    @property
    def rests(self) -> Bool[np.ndarray, "query key"]:
        """Which lines stay on their token, or rest on a special token or a sink."""
        count = len(self.quiet)
        return np.zeros((count, count), bool) if self.whole else np.eye(count, dtype=bool) | np.array(self.quiet)

    @property
    def ends(self) -> Float[np.ndarray, " layer"]:
        """Where the scale of each layer ends, as on the screen: with the strongest line of those that do not rest.

        Rollout has a scale for each layer, the others one for all.
        """
        others = self.edges * ~np.eye(len(self.quiet), dtype=bool)
        kinds = [self.edges.max((1, 2), initial=0.0, where=~self.rests), others.max((1, 2), initial=0.0)]
        kinds.append(self.edges.max((1, 2), initial=0.0))
        if self.title == ROLLOUT:
            first = np.where(kinds[0] > 0, kinds[0], np.where(kinds[1] > 0, kinds[1], kinds[2]))
            return np.asarray(np.maximum(first, LEAST_END))
        largest = next((float(kind.max()) for kind in kinds if kind.max() > 0), 0.0)
        return np.full(len(self.edges), largest)

    def followed(self) -> Bool[np.ndarray, "layer query key"]:
        """The strongest lines of each kind between any two layers, of those that the eye can follow."""
        seen = self.edges >= np.maximum(self.ends, np.finfo(float).tiny)[:, None, None] * FAINTEST
        if self.whole:
            return np.asarray(seen)
        most = max(FOLLOWED, FOLLOWED_EACH * len(self.quiet))
        kept = np.zeros_like(seen)
        for layer, kind in product(range(len(seen)), (self.rests, ~self.rests)):
            places = np.argwhere(seen[layer] & kind)
            strengths = self.edges[layer][tuple(places.T)]
            kept[layer][tuple(places[np.argsort(-strengths, kind="stable")[:most]].T)] = True
        return np.asarray(kept)


@dataclass(frozen=True)
class FlowChoice:
    """What is drawn: the source's layer by its place, sources and targets by position, and the units in sight."""

    top: int
    sources: list[int]
    targets: list[int]
    units: list[list[int]]
    """The tokens of every unit, in sight or not."""
    texts: list[str]
    quiet: list[bool]
    """Which units are special tokens or sinks."""
    visible: list[int]
    """The units that have a column."""
    folded: int = 0
    """How many of those in sight have none, because the text is long."""

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
            quiet=[unit.quiet for unit in units],
            visible=visible,
        )

    def fold(self, most: int, graph: Edges) -> "FlowChoice":
        """With at most so many columns: sources, targets, and the units that most is brought to, as on the screen."""
        brought = passing_mass(graph, self.sources).sum(1).max(0)
        held = np.array([brought[self.units[unit]].sum() for unit in self.visible])
        asked = [*(self.sources if len(self.sources) < most / 2 else ()), *self.targets]
        kept = [self.visible[place] for place in loudest(held, most, self.columns(asked))]
        return replace(self, visible=kept, folded=len(self.visible) - len(kept))

    def columns(self, positions: Sequence[int]) -> list[int]:
        """The columns in sight that hold these tokens."""
        return [column for column, unit in enumerate(self.visible) if any(p in self.units[unit] for p in positions)]


def flow_figure(scene: FlowScene, state: Mapping[str, Any], width: int | float | None = None) -> Plot:
    """Raw attention, rollout and flow for the chosen source, layer and target, with its minimum cut."""
    chosen = FlowChoice.of(scene.record, scene.side, state)
    width = width or PAGE
    most = int((width - NUMBERS - ENDS) / STEP)
    if len(chosen.visible) > most:
        if not state.get("folded", True):
            raise BadInput(
                f"A printed flow holds {most} tokens readably in {width:g} inches, and this text has"
                f" {len(chosen.visible)}: fold quiet tokens, take a shorter text, or save the view as .html."
            )
        chosen = chosen.fold(most, with_residual(scene.maps[: chosen.top + 1], scene.options["residual"]).numpy())
    count = len(chosen.visible)
    beside = (width - 2 * GAP) / 3 >= NUMBERS + ENDS + count * STEP
    each = (width - 2 * GAP) / 3 if beside else width
    found = scene.scores_from(chosen.sources, chosen.top)
    panels = _panels(scene, found, chosen, float(state.get("threshold") or 0.0))
    step = min((each - NUMBERS - ENDS) / count, 0.4)
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
        sums = np.array([scores[chosen.units[unit]].sum() for unit in visible])
        return Panel(title, in_sight, sums, tuple(chosen.quiet[unit] for unit in visible), **more)

    return [
        panel("Raw attention", raw, scene.maps[top, sources].mean(0).numpy()),
        panel(ROLLOUT, mass, found.rollout[0].mean(0)),
        panel(
            "Flow",
            passed,
            found.flow[0].mean(0),
            cut=cut,
            colour=EDGE if chosen.targets else QUIET,
            whole=bool(chosen.targets),
        ),
    ]


@dataclass(frozen=True)
class Place:
    """Where a panel stands, in inches, and how its columns and levels are apart."""

    left: float
    top: float
    step: float
    row: float
    labels: float
    levels: int

    def x(self, column: int) -> float:
        """The middle of a column."""
        return self.left + (column + 0.5) * self.step

    def y(self, level: int) -> float:
        """A level: 0 is the input."""
        return self.top + (self.levels - level) * self.row

    @property
    def apart(self) -> int:
        """Every so many levels have room for a number."""
        return math.ceil(0.12 / self.row)


def _ink(shares: Float[np.ndarray, "*any"], root: bool) -> Float[np.ndarray, "*any"]:
    within = np.clip(shares, 0.0, 1.0)
    return np.asarray(np.sqrt(within) if root else within)


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
    place = Place(corner[0] + NUMBERS, corner[1] + TITLE + sizes[2], *sizes, levels=chosen.top + 1)
    _draw_names(axes, panel, corner, place, numbers)
    _draw_edges(axes, panel, place, root)
    _draw_ends(axes, panel, chosen, place, root)


def _draw_names(axes: Any, panel: Panel, corner: tuple[float, float], place: Place, numbers: Sequence[int]) -> None:
    """The title, the scales, and the numbers of the layers."""
    left, ends = place.left, panel.ends
    axes.text(left, corner[1] + 0.08, panel.title, ha="left", va="center", color=INK, fontweight="bold")
    more = " and more" * bool((panel.edges > ends[:, None, None]).any())
    lines_to = "the number beside" if panel.title == ROLLOUT else f"{ends[0]:.2g}"
    scale = panel.scale
    tokens_to = str(scale) if scale.start else f"0 to {scale.end:.2g}"
    bars = ", bar: beyond" if any(panel.beyond) else ""
    for line, said in enumerate((f"lines 0 to {lines_to}{more}", f"tokens {tokens_to}{bars}")):
        axes.text(left, corner[1] + 0.22 + 0.1 * line, said, ha="left", va="center", color=QUIET, fontsize=6)
    for level in [0, *range(place.levels, place.apart // 2, -place.apart)]:
        name = str(numbers[level - 1]) if level else "input"
        axes.text(left - 0.04, place.y(level), name, ha="right", va="center", color=QUIET, fontsize=7)
    right = left + len(panel.quiet) * place.step + 0.04
    for layer in range(place.levels - 1, -1, -place.apart) if panel.title == ROLLOUT else ():
        middle = place.y(layer) - place.row / 2
        axes.text(right, middle, f"{ends[layer]:.2g}", ha="left", va="center", color=QUIET, fontsize=6)


def _draw_edges(axes: Any, panel: Panel, place: Place, root: bool) -> None:
    """The lines, those that rest below the others, and the minimum cut above."""

    def line(layer: int, query: int, key: int) -> tuple[tuple[float, float], tuple[float, float]]:
        return (place.x(query), place.y(layer + 1)), (place.x(key), place.y(layer))

    opacity = _ink(panel.edges / np.maximum(panel.ends, np.finfo(float).tiny)[:, None, None], root)
    followed = panel.followed()
    # lines to one token run together, the more the more columns there are
    resting = RESTING * min(1.0, RESTING_COLUMNS / panel.edges.shape[-1])
    for kind, colour, share in ((panel.rests, QUIET, resting), (~panel.rests, panel.colour, 1.0)):
        found = sorted(np.argwhere(followed & kind).tolist(), key=lambda edge: float(opacity[tuple(edge)]))
        opacities = [share * float(opacity[tuple(edge)]) for edge in found]
        draw_lines(axes, [line(*edge) for edge in found], [colour] * len(found), opacities)
    widths = np.array(list(panel.cut.values()))
    seen = np.maximum(_ink(widths / (widths.max(initial=0.0) or 1.0), root), 0.15)
    cut = [line(*edge) for edge in panel.cut]
    draw_lines(axes, cut, [CUT] * len(cut), seen.tolist(), width=1.8 if len(cut) <= BROAD else 0.8)


def _draw_ends(axes: Any, panel: Panel, chosen: FlowChoice, place: Place, root: bool) -> None:
    """The source's tokens above, and the input tokens below on the colour of their scores."""
    sources, targets = chosen.columns(chosen.sources), chosen.columns(chosen.targets)
    shades = _ink(np.array([panel.scale.share(float(score)) for score in panel.scores]), root)
    upright = {"rotation": 90, "ha": "center"}
    for column, unit in enumerate(chosen.visible):
        text, x, y = chosen.texts[unit], place.x(column), place.y(0)
        ink, weight = (INK, "bold") if column in sources else (QUIET, "normal")
        axes.text(x, place.top - 0.06, text, va="bottom", color=ink, fontweight=weight, **upright)
        colour = paint.colour(float(shades[column]), 1.0)
        axes.bar(x, place.labels - 0.06, place.step - 0.01, y + 0.04, color=colour, linewidth=0)
        if panel.beyond[column]:
            axes.bar(x, 0.02, place.step - 0.01, y + 0.04, color=CUT, linewidth=0)
        weight = "bold" if column in targets and panel.cut else "normal"
        axes.text(x, y + 0.08, text, va="top", color=paint.ink(colour), fontweight=weight, **upright)


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
        f" the source along each edge, each layer on a scale of its own) and flow. Ink is {scale} the number. Scales"
        " leave out special tokens and sinks; lines that rest on them or stay on their token are grey, and only the"
        " strongest lines are drawn. Tokens below have the colour of each method's score."
    )
    words = [opening]
    if chosen.targets:
        value = float(found.flow[0].mean(0)[chosen.targets].sum())
        target = " + ".join(names[place] for place in chosen.targets)
        words.append(f"Flow to “{target}”: {value:.4f}; orange: the minimum cut nearest the source.")
    possible = np.tri(len(names), dtype=bool)[chosen.sources] if record.causal else np.True_
    share = (found.ends[0] > 0).mean(where=possible)
    words.append(f"{share:.0%} of the flows from here are just what the source can give or the token can take in.")
    if chosen.folded:
        words.append(f"{chosen.folded} quiet tokens are folded away, but computed with.")
    if state.get("threshold"):
        words.append(f"Lines below {state['threshold']:g} are not drawn.")
    if not state.get("special", True):
        words.append("Special tokens and sinks are out of sight, but computed with.")
    return " ".join(words)
