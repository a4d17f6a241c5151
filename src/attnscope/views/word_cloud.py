"""A word cloud: words as large as their scores, packed from the middle outwards, the same every time.

Our own layout and not a library's: words stay text, and two runs give the same bytes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from ..errors import BadInput
from .printing import COLUMN, INK, Plot, drawn_figure, shortened, text_width
from .tables import need

SMALLEST, LARGEST = 5.0, 22.0
"""The letters of the lowest and the highest word that is shown, in points."""
LEADING, GAP = 1.25, 0.03
"""The height of a word in sizes of its letters, and the inches kept free beside it."""
STEP, TURN = 0.012, 0.35
"""How far the spiral grows with each try, in inches, and how far it turns, in radians."""
TRIES = 6000
LONGEST = 24


class Placed(NamedTuple):
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
    placed = packed(words, letter_sizes(scores), float(width), float(flatness))
    top = max(word.y + word.half_height for word in placed)
    bottom = min(word.y - word.half_height for word in placed)
    with drawn_figure(width, top - bottom + 0.1) as figure:
        figure.set_layout_engine("none")
        axes: Any = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(xlim=(-width / 2, width / 2), ylim=(bottom - 0.05, top + 0.05))
        for word in placed:
            style = {"ha": "center", "va": "center", "fontsize": word.size}
            axes.text(word.x, word.y, shortened(word.word, LONGEST), color=(colours or {}).get(word.word, INK), **style)
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


def packed(words: Sequence[str], sizes: Sequence[float], width: float, flatness: float) -> list[Placed]:
    """Each word at the first free place of a spiral from the middle; a word for which there is none is left out."""
    placed: list[Placed] = []
    for word, size in zip(words, sizes, strict=True):
        half_width = text_width(shortened(word, LONGEST), size) / 2 + GAP
        half_height = size * LEADING / 72 / 2
        for x, y in spiral(flatness):
            if abs(x) + half_width > width / 2 or abs(y) + half_height > width * flatness / 2:
                continue
            if all(
                abs(x - other.x) >= half_width + other.half_width or abs(y - other.y) >= half_height + other.half_height
                for other in placed
            ):
                placed.append(Placed(word, size, x, y, half_width, half_height))
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
