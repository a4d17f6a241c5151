"""Printed figures of a lexicon study: scores against valence, heads against chance, and a word cloud."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float64

from .. import paint
from ..errors import BadInput
from ..numerals import counted
from ..paint import CATEGORICAL
from .printing import COLUMN, INK, PAGE, Plot, colour_map, drawn_figure, shorten, small_multiples, text_width
from .tables import fill_array, need, only_one

VECTOR_DOTS = 1500
"""Dots that a panel draws as shapes; more are one picture, so that the file stays small."""
SHOWN = 0.995
"""The share of words that a panel shows, the lowest scores first: a few very high ones would flatten all others."""
DOT = paint.sequential()[120]

Curve = tuple[Float64[np.ndarray, " point"], Float64[np.ndarray, " point"]]
"""Valences, and the fitted score at each."""


def valence_scatter(
    words: pd.DataFrame,
    curves: Mapping[str, Curve],
    titles: Mapping[str, str],
    value: str = "value",
    label: str = "valence",
    score_label: str = "mean score",
    caption: str = "",
    width: int | float = PAGE,
) -> Plot:
    """One dot for each word, its score against its valence, a panel for each method with its fitted curve (Fig. 5).

    `curves` and `titles` are by column of `words`.
    """
    if not curves:
        raise BadInput("There is no method to draw: give at least one.")
    need(words, ["word", value, *curves])
    matched = words.dropna(subset=[value])
    across = min(len(curves), 1 if width <= COLUMN else 3)
    down = math.ceil(len(curves) / across)
    hidden = 0
    with drawn_figure(width, down * min(width / across * 0.8, 2.4) + 0.25) as figure:
        for axes, name, lowest in small_multiples(figure, list(curves), across, sharex=True):
            hidden += _draw_panel(axes, matched[value], matched[name], curves[name])
            axes.set_title(titles.get(name, name), loc="left", fontsize=8, pad=3)
            axes.tick_params(labelbottom=lowest)
        figure.supxlabel(label, fontsize=8)
        figure.supylabel(score_label, fontsize=8)
    text = caption or f"The {score_label} of {counted(len(matched), 'word')} against {label}, with the fitted parabola."
    return Plot(
        figure, text + (f" Not shown: {counted(hidden, 'dot')} above the rest, which are fitted." if hidden else "")
    )


def head_shares(heads: pd.DataFrame, caption: str = "", width: int | float = COLUMN) -> Plot:
    """A heat map of the share of attention that each head brings to the words of each tag, chance first (Fig. 6)."""
    need(heads, ["tag", "head", "share", "chance"])
    only_one(heads, ["tag", "head"])
    tags, numbers = list(dict.fromkeys(heads["tag"])), sorted(set(map(int, heads["head"])))
    shares = fill_array(heads["share"].astype(float), (heads["tag"], tags), (heads["head"], numbers))
    chances = heads.groupby("tag", sort=False)["chance"].last().to_numpy(dtype=float)
    grid = np.column_stack([chances, shares])
    with drawn_figure(width, 0.32 * len(tags) + 0.75) as figure:
        axes = figure.subplots()
        most = float(np.nanmax(grid, initial=0.0)) or 1.0
        axes.pcolormesh(
            np.ma.masked_invalid(grid), cmap=colour_map(), vmin=0, vmax=most, edgecolors="white", linewidth=0.4
        )
        size = min(7.0, 72 * (width - 0.9) / grid.shape[1] / 1.9)
        for (down, over), share in np.ndenumerate(grid):
            if np.isfinite(share) and size >= 4:
                _draw_share(axes, over + 0.5, down + 0.5, share, most, size)
        axes.axvline(1, color=INK, linewidth=0.8)
        axes.set(ylim=(len(tags), 0), xlabel="head")
        axes.set_xticks([at + 0.5 for at in range(grid.shape[1])], labels=["chance", *map(str, numbers)])
        axes.get_xticklabels()[0].set(rotation=35, ha="right", rotation_mode="anchor")
        axes.set_yticks([at + 0.5 for at in range(len(tags))], labels=tags)
        axes.tick_params(length=0)
    text = (
        "The share of its attention that each head brings to words of each kind, in percent; chance is even attention."
    )
    return Plot(figure, caption or text)


def tag_colours(words: pd.DataFrame, tags: tuple[str, ...]) -> dict[str, str]:
    """A colour for each word that has one of these tags, for the word cloud."""
    need(words, ["word", "tag"])
    inks = dict(zip(tags, (CATEGORICAL[5], CATEGORICAL[0], *CATEGORICAL[2:5]), strict=False))
    return {word: inks[tag] for word, tag in zip(words["word"], words["tag"], strict=True) if tag in inks}


def _draw_panel(axes: Any, valence: "pd.Series[float]", scores: "pd.Series[float]", curve: Curve) -> int:
    """One panel; how many dots lie above it."""
    xs, ys = valence.to_numpy(dtype=float), scores.to_numpy(dtype=float)
    shown = ys <= np.quantile(ys, SHOWN)
    many = len(ys) > VECTOR_DOTS
    axes.scatter(xs[shown], ys[shown], s=5, color=DOT, alpha=0.5, linewidths=0, rasterized=many)
    axes.plot(*curve, color=CATEGORICAL[5], linewidth=1.2)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.yaxis.get_major_locator().set_params(nbins=4)
    return int((~shown).sum())


def _draw_share(axes: Any, x: float, y: float, share: float, most: float, size: float) -> None:
    scale = paint.sequential()
    ground = scale[min(int(share / most * (len(scale) - 1)), len(scale) - 1)]
    axes.text(x, y, f"{100 * share:.0f}", ha="center", va="center", fontsize=size, color=paint.ink(ground))


# A word cloud: words as large as their scores, packed from the middle outwards. Our own layout and not a library's:
# words stay text, and two runs give the same bytes.


SMALLEST, LARGEST = 5.0, 22.0
"""The letters of the lowest and the highest word that is shown, in points."""
LEADING, GAP = 1.25, 0.03
"""The height of a word in sizes of its letters, and the inches kept free beside it."""
STEP, TURN = 0.012, 0.35
"""How far the spiral grows with each try, in inches, and how far it turns, in radians."""
TRIES = 6000
LONGEST = 24


class PlacedWord(NamedTuple):
    """A word where it stands: its middle and half its width and height, in inches from the middle of the cloud."""

    word: str
    size: float
    x: float
    y: float
    half_width: float
    half_height: float


def word_cloud(
    table: pd.DataFrame,
    value: str,
    colours: Mapping[str, str] | None = None,
    most: int = 80,
    caption: str = "",
    width: int | float = COLUMN,
    flatness: int | float = 0.62,
) -> Plot:
    """The words with the highest scores, each as large as its score; `colours` has those of words that stand out."""
    need(table, ["word", value])
    if most < 1:
        raise BadInput(f"A word cloud has at least one word, not {most}.")
    ranked = table.dropna(subset=[value]).sort_values([value, "word"], ascending=[False, True]).head(most)
    words, scores = ranked["word"].astype(str).tolist(), ranked[value].astype(float).tolist()
    if not words:
        raise BadInput(f"No word has a score in the column {value!r}, so there is nothing to draw.")
    placed = pack_words(words, letter_sizes(scores), float(width), float(flatness))
    top = max(word.y + word.half_height for word in placed)
    bottom = min(word.y - word.half_height for word in placed)
    with drawn_figure(width, top - bottom + 0.1) as figure:
        figure.set_layout_engine("none")
        axes: Any = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(xlim=(-width / 2, width / 2), ylim=(bottom - 0.05, top + 0.05))
        for word in placed:
            style = {"ha": "center", "va": "center", "fontsize": word.size}
            axes.text(word.x, word.y, shorten(word.word, LONGEST), color=(colours or {}).get(word.word, INK), **style)
    text = caption or f"The {len(placed)} words with the highest {value}, each as large as its score."
    left_out = len(words) - len(placed)
    return Plot(figure, text + (f" {left_out} more found no room." if left_out else ""))


def letter_sizes(scores: Sequence[float]) -> list[float]:
    """Points for each score, from the lowest to the highest shown; all alike where scores are.

    >>> letter_sizes([3.0, 2.0, 1.0])
    [22.0, 13.5, 5.0]
    """
    low, high = min(scores), max(scores)
    if high == low:
        return [(SMALLEST + LARGEST) / 2] * len(scores)
    return [round(SMALLEST + (LARGEST - SMALLEST) * (score - low) / (high - low), 2) for score in scores]


def pack_words(words: Sequence[str], sizes: Sequence[float], width: float, flatness: float) -> list[PlacedWord]:
    """Each word at the first free place of a spiral from the middle; a word for which there is none is left out."""
    placed: list[PlacedWord] = []
    for word, size in zip(words, sizes, strict=True):
        half_width = text_width(shorten(word, LONGEST), size) / 2 + GAP
        half_height = size * LEADING / 72 / 2
        for x, y in spiral(flatness):
            if abs(x) + half_width > width / 2 or abs(y) + half_height > width * flatness / 2:
                continue
            if all(
                abs(x - other.x) >= half_width + other.half_width or abs(y - other.y) >= half_height + other.half_height
                for other in placed
            ):
                placed.append(PlacedWord(word, size, x, y, half_width, half_height))
                break
    if not placed:
        raise BadInput(f"No word fits into {width:g} inches: draw the cloud wider.")
    return placed


def spiral(flatness: float) -> Iterator[tuple[float, float]]:
    """Points on a spiral from the middle outwards, flattened; places are rounded, so that they are alike everywhere."""
    for step in range(TRIES):
        radius, angle = STEP * math.sqrt(step) * 1.5, TURN * step
        yield (
            round(radius * math.cos(angle) / math.sqrt(flatness), 4),
            round(radius * math.sin(angle) * math.sqrt(flatness), 4),
        )
