"""Figures 1 to 3: the attention graph of a sentence, and where [CLS] looks in every layer by each method."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ... import paint
from ...attribution import flow, raw, rollout
from ...errors import BadInput
from ...lab.models import AgreementTransformer
from ...record import AttentionRecord
from ...views.layer_maps import LayerMap, layer_maps
from ...views.printing import INK, PAGE, QUIET, Plot, draw_lines, drawn_figure, shorten, text_width
from ...views.sides import token_texts
from ..document import Block, Code, Figure, Heading, Paragraph, Piece, Table, under

# Figure 1: the attention graph of a sentence by raw attention, rollout and flow.


Map = Float[np.ndarray, "layer query token"]
TITLES = {"raw": "raw attention", "rollout": "rollout", "flow": "flow"}
NUMBERS, GAP, TITLE = 0.3, 0.14, 0.36
"""Inches left of the first graph, between two of them, and above each."""
STEP, WIDEST, STACKED = 0.122, 0.32, 0.2
"""Inches between two tokens: at least, so that upright text of 8 points stays apart, at most, and in stacked graphs."""
LOWEST, ROW, GRAPH, TALLEST = 0.06, 0.36, 3.2, 9.0
"""Inches between two layers at least and at most, between the highest and the input, and of a figure, at most."""
LONGEST = 14
"""Letters of a token that are printed."""
FAINTEST = 1 / 255
EDGE = paint.sequential()[220]


def maps_by_method(record: AttentionRecord) -> dict[str, Map]:
    """What raw attention, rollout and flow give each token in each layer, heads averaged, all rows with the sum 1.

    Rows of flow are divided by their sum, as the paper does with the row of [CLS]; the others have it already.
    """
    maps = {
        name: scores.map.double().numpy()
        for name, scores in (("raw", raw(record)), ("rollout", rollout(record)), ("flow", flow(record)))
    }
    sums = maps["flow"].sum(-1, keepdims=True)
    return maps | {"flow": maps["flow"] / np.where(sums > 0, sums, 1.0)}


def attention_graph(record: AttentionRecord, width: int | float = PAGE) -> Plot:
    """Figure 1: from every token of a layer a line to every token one row below, as dark as the map's figure is large.

    The three methods stand side by side, or below each other where a text is too long for that.
    """
    texts = [shorten(text, LONGEST) for text in token_texts(record.tokens)]
    maps = maps_by_method(record)
    room = width - NUMBERS
    across = len(maps) if (room - (len(maps) - 1) * GAP) / len(maps) >= len(texts) * STEP else 1
    if room < len(texts) * STEP:
        raise BadInput(
            f"An attention graph holds {int(room / STEP)} tokens readably in {width:g} inches, and this text has"
            f" {len(texts)}: take a shorter text."
        )
    each = (room - (across - 1) * GAP) / across
    step, labels = min(each / len(texts), WIDEST if across > 1 else STACKED), max(map(text_width, texts)) + 0.12
    down = len(maps) // across
    graph = min(GRAPH, (TALLEST + GAP) / down - GAP - TITLE - 2 * labels)
    row = max(min(ROW, graph / len(record.layers)), LOWEST)
    high = TITLE + 2 * labels + len(record.layers) * row
    height = down * high + (down - 1) * GAP
    with drawn_figure(width, height) as figure:
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(xlim=(0, width), ylim=(height, 0))
        for place, (name, weights) in enumerate(maps.items()):
            column, line = place % across, place // across
            left, top = NUMBERS + column * (each + GAP), line * (high + GAP)
            axes.text(left, top + 0.09, f"({'abc'[place]}) {TITLES[name]}", va="center", color=INK, fontweight="bold")
            ends = f"lines from 0 to {weights.max():.2g}"
            axes.text(left, top + 0.24, ends, va="center", color=QUIET, fontsize=7)
            _draw_graph(axes, weights, texts, (left, top + TITLE + labels), (step, row))
            if column == 0:
                _draw_numbers(axes, [number + 1 for number in record.layers], top + TITLE + labels, row)
    return Plot(
        figure,
        f"Attention in every layer of “{' '.join(texts)}”: raw attention, rollout and flow, heads averaged. A line goes"
        " from each token of a layer to each token of the row below; its ink is proportional to the number, from 0 to"
        " the largest of each panel. Raw attention is between neighbouring layers; rollout and flow are what each"
        " token has from each token of the input, drawn one row down too, and rows of flow are divided by their sum.",
    )


def _draw_graph(
    axes: Any, weights: Map, texts: Sequence[str], corner: tuple[float, float], sizes: tuple[float, float]
) -> None:
    """The tokens above and below, a dot for each token in each layer, and the lines between, the darkest last."""
    (left, top), (step, row) = corner, sizes
    layers = len(weights)
    columns = left + step * (np.arange(len(texts)) + 0.5)
    levels = top + row * np.arange(layers, -1, -1)
    opacity = np.clip(weights / (weights.max() or 1.0), 0.0, 1.0)
    found = sorted(np.argwhere(opacity >= FAINTEST).tolist(), key=lambda edge: float(opacity[tuple(edge)]))
    lines = [((columns[i], levels[layer + 1]), (columns[j], levels[layer])) for layer, i, j in found]
    draw_lines(axes, lines, [EDGE] * len(lines), [float(opacity[tuple(edge)]) for edge in found])
    dots = {"marker": "o", "markersize": 1.6, "linestyle": "none", "color": QUIET, "markeredgewidth": 0}
    axes.plot(np.tile(columns, layers + 1), np.repeat(levels, len(texts)), **dots)
    for text, column in zip(texts, columns, strict=True):
        for height, edge in ((top - 0.06, "bottom"), (levels[0] + 0.06, "top")):
            axes.text(column, height, text, rotation=90, ha="center", va=edge, color=INK)


def _draw_numbers(axes: Any, numbers: Sequence[int], top: float, row: float) -> None:
    """The layers at the left, counted from 1, as many of their numbers as have room."""
    where = {"va": "center", "color": QUIET, "fontsize": 7}
    for place in range(0, len(numbers), int(np.ceil(0.11 / row))):
        height = top + (len(numbers) - 1 - place) * row
        axes.text(NUMBERS - 0.06, height, str(numbers[place]), ha="right", **where)
    axes.text(0.02, top + len(numbers) * row / 2, "layer", rotation=90, ha="left", **where)


# Figures 2 and 3: what the read-out has from each word, as heat maps.


MOST_ROWS = 8
"""Examples that one figure holds."""
ACROSS = 3
"""Maps in a row."""


@dataclass(frozen=True)
class Example:
    """A sentence of which the model has told the number, and the same with the number of a noun changed."""

    title: str
    """The words before the verb."""
    record: AttentionRecord
    changed: AttentionRecord | None
    right: bool
    outcome: str
    """What the model says of the verb."""
    changed_outcome: str | None

    @property
    def verdict(self) -> str:
        """What the model says, and whether that is so."""
        return f"{self.outcome} ({'right' if self.right else 'wrong'})"

    @property
    def changed_title(self) -> str:
        """The words of the changed sentence; none where there is none."""
        text = "" if self.changed is None else self.changed.text or self.changed.tokens
        return text if isinstance(text, str) else " ".join(text)


def readout_maps(records: Mapping[str, AttentionRecord]) -> Plot:
    """Figures 2 and 3: for each named text a row of heat maps by method, of what the read-out has from each token."""
    _check_number(len(records))
    rows = {name: _read_maps(record) for name, record in records.items()}
    return layer_maps(
        rows,
        _numbers(records.values()),
        "share of what [CLS] has",
        "What the read-out ([CLS]) has from each token in each layer, by raw attention, rollout and flow: heads"
        " averaged, flow divided by its sum over the tokens. Each map has its own scale, from 0 to the number at its"
        f" right. Rows: {'; '.join(rows)}.",
    )


def raw_maps(examples: Sequence[Example]) -> Plot:
    """Figure 2: where the read-out looks in every layer by raw attention alone, one heat map for each example."""
    _check_number(len(examples))
    maps = [
        LayerMap(f"{number}: {example.title}", one.tokens, one.grid)
        for number, example in enumerate(examples, 1)
        for one in _read_maps(example.record)[:1]
    ]
    rows = {}
    for start in range(0, len(maps), ACROSS):
        row = maps[start : start + ACROSS]
        last = start + len(row)
        span = f"example {last}" if len(row) == 1 else f"examples {start + 1} to {last}"
        rows[f"raw attention, {span}"] = row
    return layer_maps(
        rows,
        _numbers(example.record for example in examples),
        "share of the attention of [CLS]",
        "Raw attention of the read-out ([CLS]) in each layer, heads averaged, each map on its own scale from 0 to the"
        f" number at its right: {'; '.join(f'{n}: {example.title}' for n, example in enumerate(examples, 1))}.",
    )


def _read_maps(record: AttentionRecord) -> list[LayerMap]:
    readout = record.readout.double().numpy()
    return [
        LayerMap(TITLES[name], token_texts(record.tokens), np.einsum("q,lqt->lt", readout, weights))
        for name, weights in maps_by_method(record).items()
    ]


def _numbers(records: Iterable[AttentionRecord]) -> list[int]:
    """The layers of all records, counted from 1; they must be the same ones."""
    layers = {record.layers for record in records}
    if len(layers) > 1:
        raise BadInput("Maps in one figure have the same layers: draw the records of different models apart.")
    return [number + 1 for number in layers.pop()]


def _check_number(count: int) -> None:
    if not 1 <= count <= MOST_ROWS:
        raise BadInput(f"A figure of maps holds 1 to {MOST_ROWS} texts, not {count}.")


def figures_of(examples: Sequence[Example]) -> list[Block]:
    """Figures 1 to 3 of these examples, the first of them as the attention graph, with what the paper shows there."""
    _check_number(len(examples))
    words = (
        f", judged {examples[0].verdict}. In the paper raw attention tells positions apart only in the first couple"
        " of layers and is rather uniform above, while rollout and flow become more distinctive the higher the"
        " layer, and the residual connection fades. Look for even rows in the upper part of (a), for a few strong"
        " columns there in (b) and (c), and for lowest rows of (b) and (c) that are the same: they are raw"
        " attention with the residual connection, the straight lines down."
    )
    graph = Figure("fig01_attention_graph", attention_graph(examples[0].record), [Code(examples[0].title), words])
    return [*under("Figure 1: attention in every layer", graph), *_map_blocks(examples)]


def _map_blocks(examples: Sequence[Example]) -> Iterator[Block]:
    yield Heading("Figures 2 and 3: what [CLS] has from each word", 2)
    yield Figure(
        "fig02_raw_maps",
        raw_maps(examples),
        "Raw attention of [CLS]. In the paper there is no pattern to be read in it, and it is almost uniform above"
        " layer 3. Look whether the upper layers have one colour throughout; each map has its own scale.",
    )
    yield Figure(
        "fig03_maps",
        readout_maps(
            {f"{n}: {example.title} → {example.verdict}": example.record for n, example in enumerate(examples, 1)}
        ),
        "The same beside rollout and flow. In the paper both weigh the subject and the attractor of the second example"
        " (article, systems), and in the third, misjudged, a noun that is not the subject (NNS); rollout is the more"
        " focused, flow spreads over the set of words that matter. Look for the columns that stay strong up to the"
        " highest layer, and whether they are the subject, an attractor, or [CLS] and the verb's slot themselves.",
    )
    changed = {
        f"{n}: {example.changed_title} → {example.changed_outcome or 'not judged'}": example.changed
        for n, example in enumerate(examples, 1)
        if example.changed is not None
    }
    if changed:
        yield Figure(
            "fig03_maps_changed",
            readout_maps(changed),
            "The same sentences with the number of one noun changed. In the paper article → articles flips the second"
            " decision and NNS → NNP the third. Look whether the weight of the changed word moves when the decision"
            " does: attention may well stay as it is while the answer flips.",
        )
    yield Paragraph("What the model says of each, before and after the change:")
    names = ["text", "predicted", "right?", "changed to", "predicted then", "flips?"]
    yield Table(names, [_outcome_row(example) for example in examples])
    if all(example.right for example in examples):
        yield Paragraph("None of the sentences that were tried is misjudged.")


def _outcome_row(example: Example) -> list[list[Piece]]:
    title, after = example.changed_title, example.changed_outcome
    flips = "–" if after is None else "yes" if after != example.outcome else "no"
    cells: list[Piece] = [
        Code(example.title),
        example.outcome,
        "yes" if example.right else "no",
        Code(title) if title else "–",
        after or "–",
        flips,
    ]
    return [[cell] for cell in cells]


# The three sentences of Figures 1 to 3: two the model gets right, one it gets wrong, and each with another subject.


@dataclass(frozen=True)
class Illustration:
    """A sentence up to its verb, its subject, and the same noun in the other number."""

    text: str
    number: str
    subject: str
    changed: str

    @property
    def other(self) -> str:
        """The sentence with the other subject."""
        return " ".join(self.changed if word == self.subject else word for word in self.text.split())


ILLUSTRATIONS = (
    Illustration("the key to the rooms", "singular", "key", "keys"),
    Illustration("the picture of the large buildings", "singular", "picture", "pictures"),
    Illustration("the story about the old kings and the young soldiers", "singular", "story", "stories"),
    Illustration("the friends of the famous writer with the dog", "plural", "friends", "friend"),
    Illustration("the letters from the teacher near the school", "plural", "letters", "letter"),
    Illustration("the door behind the trees and the houses of the rich women", "singular", "door", "doors"),
    Illustration("the boys that the angry man outside the shop sees", "plural", "boys", "boy"),
    Illustration("the engine of the cars that the drivers like", "singular", "engine", "engines"),
    Illustration("the pictures of the king in the room of the castle", "plural", "pictures", "picture"),
    Illustration("the car near the trees that the women from the villages like", "singular", "car", "cars"),
    Illustration("here the girls that the brave captain of the boat loves", "plural", "girls", "girl"),
)
"""Written for this: nouns of the other number between subject and verb, the easier ones first."""


def illustrate(model: AgreementTransformer, of: Sequence[Illustration] = ILLUSTRATIONS) -> list[Example]:
    """The first two sentences that the model gets right and the first that it gets wrong, if there are such.

    Sentences with a word that the model does not know are passed over, unless no other is left.
    """
    known = [one for one in of if all(word in model.vocabulary for word in [*one.text.split(), one.changed])]
    instrumented, found = model.instrumented(), []
    for one in known or of:
        record, changed = instrumented.record(one.text), instrumented.record(one.other)
        outcome, changed_outcome = record.prediction[0][0], changed.prediction[0][0]
        found.append(Example(one.text, record, changed, outcome == one.number, outcome, changed_outcome))
    right, wrong = ([one for one in found if one.right is verdict] for verdict in (True, False))
    return [*right[:2], *wrong[:1]]
