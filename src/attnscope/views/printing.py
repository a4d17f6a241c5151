"""Figures for a paper: the only file that imports matplotlib.

A figure has the width of a paper's column or page, text of 8 points that stays text, no title inside, and the same
bytes on every run; its caption travels as metadata.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

from .. import paint
from ..errors import BadInput
from ..files import written_atomically
from .palette import diverging

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


def file_bytes(plot: Plot, kind: str) -> bytes:
    """The file of a figure; whatever would differ between two runs (dates, random names) is left out or fixed."""
    where = {"svg": "Description", "pdf": "Subject", "png": "Description"}[kind]
    undated: dict[str, str | None] = {where: plot.caption} | {
        "svg": {"Date": None},
        "pdf": {"CreationDate": None},
        "png": {},
    }[kind]
    matplotlib = _matplotlib()
    into = BytesIO()
    with matplotlib.rc_context(fname=STYLE_FILE):
        plot.figure.savefig(into, format=kind, metadata=undated)
    return into.getvalue()


def colour_map(from_step: int = 0, *, signed: bool = False) -> Any:
    """The scale of the screen as matplotlib takes it."""
    from matplotlib.colors import ListedColormap

    return ListedColormap((diverging() if signed else paint.sequential())[from_step:], name="attnscope")


def colour_norm(scale: str, least: int | float, largest: int | float) -> Any:
    """How figures become shares of the scale of colours: `linear`, or by `square root` on both sides of 0."""
    import numpy as np
    from matplotlib.colors import FuncNorm, Normalize

    if scale == "linear":
        return Normalize(least, largest)
    if scale != "square root":
        raise BadInput(f"A scale is linear or square root, not {scale!r}.")
    ways = (lambda value: np.sign(value) * np.sqrt(np.abs(value)), lambda share: np.sign(share) * share**2)
    return FuncNorm(ways, least, largest)


def colour_scale() -> Any:
    """The scale from 0 to 1, for a colour bar of its own."""
    from matplotlib.cm import ScalarMappable

    return ScalarMappable(cmap=colour_map())


def whole_numbers(most: int) -> Any:
    """Ticks at whole numbers only, at most so many."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=most, integer=True, min_n_ticks=1)


def draw_lines(
    axes: Any,
    points: Points,
    colours: Sequence[str],
    opacities: Sequence[float],
    width: int | float = 0.8,
    dash: str = "solid",
) -> None:
    """Straight lines between points, each with its colour and opacity."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    inks = [to_rgba(colour, opacity) for colour, opacity in zip(colours, opacities, strict=True)]
    axes.add_collection(LineCollection(list(points), colors=inks, linewidths=width, linestyles=dash))


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
    matplotlib = _matplotlib()
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    # a text path ends with its last ink: letters around it measure the spaces too
    font = FontProperties(family=FONT, size=size)
    # as in the style file: what stands between dollars is no formula
    with matplotlib.rc_context({"text.parse_math": False, "text.usetex": False}):
        whole, frame = (TextPath((0, 0), words, prop=font).get_extents().width for words in (f"|{text}|", "||"))
    return float(whole - frame) / 72


def shortened(text: str, letters: int) -> str:
    """A text of at most so many letters, the last of them an ellipsis where some are left out.

    >>> shortened("antidisestablishment", 8), shortened("key", 8)
    ('antidis…', 'key')
    """
    return text if len(text) <= letters else text[: letters - 1] + "…"


def fitting(text: str, inches: int | float, size: int | float = 8) -> str:
    """A text with as many of its letters as fit, and an ellipsis where some are left out."""
    # to measure letters takes its time: what cannot fit even in the narrowest ones is cut before
    fitted = shortened(text, max(int(inches / NARROWEST), 2))
    while text_width(fitted, size) > inches and len(fitted) > 2:
        fitted = shortened(text, len(fitted) - 1)
    return fitted
