"""Figures for a paper: the only file that imports matplotlib.

A figure has the width of a paper's column or page, text of 8 points that stays text, no title inside, and the same
bytes on every run; its caption travels as metadata.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from .. import paint
from ..errors import BadInput
from ..files import written_atomically
from ..paint import diverging

Points = Sequence[tuple[tuple[float, float], tuple[float, float]]]
Box = tuple[float, float, float, float]
"""Left, right, bottom and top, in inches from the upper left corner."""

COLUMN, PAGE = 3.3, 6.8
"""The widths of a paper's column and page, in inches."""
STYLE_FILE = Path(__file__).with_name("paper.mplstyle")
FONT = "DejaVu Sans"
"""The font of the style file, which comes with matplotlib and so is everywhere the same."""
INK, QUIET, BAR = "#1b1f24", "#59636e", paint.sequential()[150]
MISSING = "#e4e8ec"
"""The ground under the hatching of what was not measured."""
FIGURES = {".svg", ".pdf", ".png"}
NARROWEST = 0.03
"""Inches of the narrowest letter."""


@dataclass(frozen=True)
class Plot:
    """A drawn figure with its caption; it shows itself in a notebook."""

    figure: Any
    """The `matplotlib.figure.Figure`, for whoever wants to add to it."""
    caption: str
    title: str = ""
    """What is drawn, of which text and model: it travels as metadata too."""

    def save(self, path: str | Path) -> Path:
        """Write the figure as .svg, .pdf or .png, by the suffix."""
        return save_figure(self, path)

    def _repr_png_(self) -> bytes:
        return file_bytes(self, "png")


def save_figure(plot: Plot, path: str | Path) -> Path:
    """Write a figure as .svg, .pdf or .png, by the suffix: atomically, and the same bytes on every run."""
    path = Path(path)
    kind = path.suffix.removeprefix(".").lower()
    if path.suffix.lower() not in FIGURES:
        raise BadInput(
            f"A figure is saved as .svg, .pdf or .png, but {path.name} ends in {path.suffix or 'no suffix'}."
        )
    content = file_bytes(plot, kind)
    with written_atomically(path) as temporary:
        temporary.write_bytes(content)
    return path


def _matplotlib() -> Any:
    try:
        import matplotlib as mpl
        import matplotlib.figure
    except ImportError as error:
        raise BadInput("Figures need matplotlib: pip install 'attnscope[figures]'.") from error
    return mpl


def _part(name: str) -> Any:
    """A module of matplotlib, or the sentence that it is missing."""
    _matplotlib()
    return import_module(f"matplotlib.{name}")


@contextmanager
def drawn_figure(width: int | float, height: int | float) -> Iterator[Any]:
    """A figure of this size in inches, to be drawn into; it is laid out when the block ends."""
    matplotlib = _matplotlib()
    with matplotlib.rc_context(fname=STYLE_FILE):
        figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
        yield figure
        # laid out once and then left alone: every drawing would move things by a hair, and with them the bytes
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def draw_in_inches(axes: Any, width: int | float, height: int | float) -> Any:
    """Axes without a frame that are counted in inches from the upper left corner."""
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(height, 0))
    return axes


def small_multiples(figure: Any, names: Sequence[str], across: int, **shared: Any) -> Iterator[tuple[Any, str, bool]]:
    """A panel for each name, row by row, and whether it is the lowest of its column; places left over stay empty."""
    panels = figure.subplots(math.ceil(len(names) / across), across, squeeze=False, **shared)
    for axes in panels.flat[len(names) :]:
        axes.set_axis_off()
    for place, name in enumerate(names):
        yield panels.flat[place], name, place + across >= len(names)


def wrap(widths: Sequence[float], gaps: Sequence[float], room: int | float) -> list[tuple[int, float]]:
    """The line of each word and where it begins there: one after the other, a gap before each, on as many as needed.

    >>> wrap([2.0, 2.0, 1.0], [0.5, 0.5, 0.5], 4)
    [(0, 0.0), (1, 0.0), (1, 2.5)]
    """
    places: list[tuple[int, float]] = []
    line, at = 0, 0.0
    for width, gap in zip(widths, gaps, strict=True):
        at += gap if at > 0 else 0.0
        if at + width > room and at > 0:
            line, at = line + 1, 0.0
        places.append((line, at))
        at += width
    return places


@dataclass(frozen=True)
class Ink:
    """How dark a figure is drawn: its share of the largest, or the square root of it on both sides of 0."""

    largest: float
    root: bool

    def share(self, value: float) -> float:
        """From 0 to 1, or from -1 for what is below zero."""
        share = min(max(value / self.largest, -1.0), 1.0) if self.largest > 0 and math.isfinite(value) else 0.0
        return math.copysign(math.sqrt(abs(share)), share) if self.root else share

    def colour(self, value: float) -> str:
        """On the scale of the screen."""
        return paint.colour(self.share(value), 1.0)


def legend_below(figure: Any, *axes: Any, only: Sequence[str] | None = None) -> None:
    """One legend under all panels, each name once, where it covers nothing that is drawn."""
    pairs = [pair for one in axes for pair in zip(*reversed(one.get_legend_handles_labels()), strict=True)]
    named = {name: drawn for name, drawn in pairs if only is None or name in only}
    across = max(1, min(len(named), int(figure.get_figwidth() / 1.1)))
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=across, frameon=False, fontsize=7)


def file_bytes(plot: Plot, kind: str) -> bytes:
    """The file of a figure; whatever would differ between two runs (dates, random names) is left out or fixed."""
    where = {"svg": "Description", "pdf": "Subject", "png": "Description"}[kind]
    dates: dict[str, dict[str, str | None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    undated: dict[str, str | None] = {where: plot.caption, **dates[kind]}
    if plot.title:
        undated["Title"] = plot.title
    matplotlib = _matplotlib()
    into = BytesIO()
    with matplotlib.rc_context(fname=STYLE_FILE):
        plot.figure.savefig(into, format=kind, metadata=undated)
    return into.getvalue()


def colour_map(from_step: int = 0, *, signed: bool = False) -> Any:
    """The scale of the screen as matplotlib takes it."""
    return _part("colors").ListedColormap((diverging() if signed else paint.sequential())[from_step:], name="attnscope")


def colour_norm(scale: str, least: int | float, largest: int | float) -> Any:
    """How figures become shares of the scale of colours: `linear`, or by `square root` on both sides of 0."""
    import numpy as np

    if scale == "linear":
        return _part("colors").Normalize(least, largest)
    if scale != "square root":
        raise BadInput(f"A scale is linear or square root, not {scale!r}.")
    ways = (lambda value: np.sign(value) * np.sqrt(np.abs(value)), lambda share: np.sign(share) * share**2)
    return _part("colors").FuncNorm(ways, least, largest)


def colour_scale() -> Any:
    """The scale from 0 to 1, for a colour bar of its own."""
    return _part("cm").ScalarMappable(cmap=colour_map())


def whole_numbers(most: int) -> Any:
    """Ticks at whole numbers only, at most so many."""
    return _part("ticker").MaxNLocator(nbins=most, integer=True, min_n_ticks=1)


def draw_lines(
    axes: Any,
    points: Points,
    colours: Sequence[str],
    opacities: Sequence[float],
    width: int | float = 0.8,
    dash: str = "solid",
) -> None:
    """Straight lines between points, each with its colour and opacity."""
    inks = [_part("colors").to_rgba(colour, opacity) for colour, opacity in zip(colours, opacities, strict=True)]
    axes.add_collection(
        _part("collections").LineCollection(list(points), colors=inks, linewidths=width, linestyles=dash)
    )


def draw_outlines(
    axes: Any, boxes: Sequence[Box], colour: str, opacity: int | float = 1.0, width: int | float = 0.6
) -> None:
    """A thin line around each box."""
    sides: list[tuple[tuple[float, float], tuple[float, float]]] = []
    for left, right, bottom, top in boxes:
        corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
        sides += [(corners[place - 1], corners[place]) for place in range(4)]
    if sides:
        draw_lines(axes, sides, [colour] * len(sides), [float(opacity)] * len(sides), width)


@lru_cache(maxsize=4096)
def text_width(text: str, size: int | float = 8) -> float:
    """The inches that a text takes in a figure, to lay words out one after the other."""
    # a text path ends with its last ink: letters around it measure the spaces too
    font = _part("font_manager").FontProperties(family=FONT, size=size)
    # as in the style file: what stands between dollars is no formula
    with _matplotlib().rc_context({"text.parse_math": False, "text.usetex": False}):
        whole, frame = (
            _part("textpath").TextPath((0, 0), words, prop=font).get_extents().width for words in (f"|{text}|", "||")
        )
    return float(whole - frame) / 72


def shorten(text: str, letters: int) -> str:
    """A text of at most so many letters, the last of them an ellipsis where some are left out.

    >>> shorten("antidisestablishment", 8), shorten("key", 8)
    ('antidis…', 'key')
    """
    return text if len(text) <= letters else text[: letters - 1] + "…"


def fit_text(text: str, inches: int | float, size: int | float = 8) -> str:
    """A text with as many of its letters as fit, and an ellipsis where some are left out."""
    # to measure letters takes its time: what cannot fit even in the narrowest ones is cut before
    fitted = shorten(text, max(int(inches / NARROWEST), 2))
    while text_width(fitted, size) > inches and len(fitted) > 2:
        fitted = shorten(text, len(fitted) - 1)
    return fitted
