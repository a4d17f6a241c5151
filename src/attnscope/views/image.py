"""The image view: the scores of an image's patches as heat over the image."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64, UInt8

from .. import paint
from ..errors import BadInput
from ..paint import diverging, heat
from ..record import TokenScores
from ..record.schema import checked
from .printing import COLUMN, INK, PAGE, Plot, drawn_figure, fit_text
from .scores_methods import Method, Scores, methods_of
from .tables import tidy_table
from .view import View

LARGEST_SIDE = 1024
"""Pixels of the longer side of the image that a page holds; a larger one is made smaller."""
LARGEST_PNG = 400_000
"""Bytes up to which the image travels as PNG, without loss; beyond, as JPEG."""
OPACITY = 0.6
"""How much of the image the heat of the largest score covers when the view opens."""
GREY = 0.5
"""The opacity of the heat from which the image beneath it is all grey."""
PATCH = "patch "
"""How the tokens of patches begin in a record of an image: `patch 3,7` is row 3 and column 7."""
GAP, TITLE, SCALE = 0.12, 0.17, 0.3
"""Inches between two printed images, of the name above each, and of the scale below."""

Pixels = UInt8[np.ndarray, "height width 3"]


@checked
def image(scores: Scores, image: Any, *, grid: Sequence[int] | None = None) -> View:
    """Which parts of an image a model looked at: the scores of its patches as heat over the image.

    The patches are laid over the whole image: where a model was shown a part of it only, give that part.

    Args:
        scores: The scores of one method or several, or a `Comparison`, of a record of an image.
        image: The image as the model was shown it: a PIL image, an array `[height, width, 3]` or a tensor
            `[3, height, width]` of bytes or of floats from 0 to 1, or the path of a file.
        grid: Rows and columns of patches, where the scores do not have them.
    """
    methods = methods_of(scores, None)
    first = methods[0].scores
    rows, columns = _grid(grid if grid is not None else first.grid)
    places = _patches(first, rows, columns)
    pixels = pixels_of(image)
    values = {method.name: method.own.numpy()[places].reshape(rows, columns) for method in methods}
    payload = {
        "image": _data_uri(pixels),
        "size": [pixels.shape[1], pixels.shape[0]],
        "grid": [rows, columns],
        "heat": list(heat()),
        "methods": [_describe(method, values[method.name], places) for method in methods],
    }
    names = list(values)
    return View(
        "image",
        payload,
        {"methods": None, "opacity": OPACITY, "root": False},
        table=lambda: patches_frame(values),
        draw=lambda state, width: image_figure(pixels, values, state, width),
        choices={"methods": (None, *names)},
        title=f"Image view: {', '.join(names)}",
    )


def patches_frame(values: Mapping[str, Float64[np.ndarray, "row column"]]) -> pd.DataFrame:
    """Every patch under every method as a row: method, row, column, score."""
    scores = np.stack(list(values.values()))
    _, rows, columns = scores.shape
    return tidy_table(
        {"method": (0, list(values)), "row": (1, range(rows)), "column": (2, range(columns))}, score=scores
    )


def image_figure(
    pixels: Pixels,
    values: Mapping[str, Float64[np.ndarray, "row column"]],
    state: Mapping[str, Any],
    width: int | float | None = None,
) -> Plot:
    """The image once for each chosen method, with the heat of its scores over it and its scale below."""
    chosen = {name: values[name] for name in values if name in (state.get("methods") or values)}
    across = min(len(chosen), 3)
    width = width or (COLUMN if len(chosen) == 1 else PAGE)
    each = (width - GAP * (across - 1)) / across
    tall = each * pixels.shape[0] / pixels.shape[1]
    rows = -(-len(chosen) // across)
    height = rows * (TITLE + tall + SCALE)
    with drawn_figure(width, height) as figure:
        figure.set_layout_engine("none")
        for place, (name, scores) in enumerate(chosen.items()):
            left, top = place % across * (each + GAP), place // across * (TITLE + tall + SCALE)
            axes = figure.add_axes((left / width, 1 - (top + TITLE + tall) / height, each / width, tall / height))
            axes.set_axis_off()
            extent = (0, scores.shape[1], scores.shape[0], 0)
            axes.imshow(stepped_back(pixels, state), extent=extent, aspect="auto", interpolation="antialiased")
            axes.imshow(overlay(scores, state), extent=extent, aspect="auto", interpolation="nearest")
            figure.text(left / width, 1 - (top + TITLE / 2) / height, fit_text(name, each), va="center", color=INK)
            end = float(np.abs(scores).max())
            signed = bool((scores < 0).any())
            strip = np.linspace(-end if signed else 0.0, end, 64)[None]
            low = 1 - (top + TITLE + tall + 0.14) / height
            bar = figure.add_axes((left / width, low, each / width / 2, 0.08 / height))
            bar.set_axis_off()
            bar.imshow(overlay(strip, {**state, "opacity": 1.0}, signed=signed), aspect="auto", interpolation="nearest")
            said = f"{'±' * signed}{end:.3g}{', square root' * bool(state.get('root'))}"
            where = {"va": "center", "fontsize": 7, "color": INK}
            figure.text((left + each / 2 + 0.05) / width, low + 0.04 / height, said, **where)
    opacity = float(state.get("opacity", OPACITY))
    down, over = next(iter(values.values())).shape
    return Plot(
        figure,
        f"Scores of {' and '.join(chosen)} over the patches of an image, {down} rows by {over} columns; colour is the"
        f" score, from 0 to the largest of each method, and covers the image by {opacity:.0%} where it is largest.",
    )


def stepped_back(pixels: Pixels, state: Mapping[str, Any]) -> Pixels:
    """The image in grey, as far as the heat covers it: its own colours would mix with those of the scores.

    >>> stepped_back(np.array([[[200, 0, 0]]], dtype=np.uint8), {"opacity": 0.0}).tolist()
    [[[200, 0, 0]]]
    >>> stepped_back(np.array([[[200, 0, 0]]], dtype=np.uint8), {"opacity": 0.6}).tolist()
    [[[60, 60, 60]]]
    """
    share = min(1.0, float(state.get("opacity", OPACITY)) / GREY)
    luma = pixels @ np.array([0.3, 0.59, 0.11])
    grey: Pixels = np.rint((1 - share) * pixels + share * luma[..., None]).astype(np.uint8)
    return grey


def overlay(
    scores: Float64[np.ndarray, "row column"], state: Mapping[str, Any], *, signed: bool | None = None
) -> Float64[np.ndarray, "row column 4"]:
    """The heat as red, green, blue and opacity: what has no score leaves the image as it is."""
    signed = bool((scores < 0).any()) if signed is None else signed
    end = float(np.abs(np.nan_to_num(scores)).max()) or 1.0
    shares = np.nan_to_num(scores) / end
    inked = np.sign(shares) * np.sqrt(np.abs(shares)) if state.get("root") else shares
    scale = np.array([paint.rgb(colour) for colour in (diverging() if signed else heat())]) / 255
    steps = np.rint(((1 + inked) / 2 if signed else inked).clip(0, 1) * (len(scale) - 1)).astype(int)
    opacity = float(state.get("opacity", OPACITY)) * (1.0 if len(scores) == 1 else np.abs(inked))
    return np.dstack([scale[steps], np.broadcast_to(opacity, scores.shape)])


def pixels_of(image: Any) -> Pixels:
    """An image in any of its forms as bytes `[height, width, 3]`, made smaller where it is large."""
    Image, ImageOps = _pillow()  # noqa: N806 - the names that Pillow has for them
    if isinstance(image, str | Path):
        try:
            with Image.open(image) as opened:
                image = ImageOps.exif_transpose(opened).convert("RGB")
        except FileNotFoundError as error:
            raise BadInput(f"There is no image {image}: give the path of a file.") from error
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise BadInput(f"{image} cannot be read as an image: give a PNG or JPEG file.") from error
    elif not isinstance(image, Image.Image):
        image = Image.fromarray(_bytes(image))
    image = image.convert("RGB")
    image.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
    return np.asarray(image)


def _bytes(given: Any) -> Pixels:
    """An array or a tensor of an image as bytes, its channels last."""
    try:
        array = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"An image is a picture, an array or the path of a file, not a {type(given).__name__}."
        ) from error
    if array.ndim == 3 and array.shape[0] == 3 and array.shape[2] != 3:
        array = array.transpose(1, 2, 0)
    if array.ndim != 3 or array.shape[2] != 3 or not array.size or array.dtype.kind not in "uif":
        raise BadInput(
            f"An image is [height, width, 3] or [3, height, width] numbers, a PIL image or the path of a file, not"
            f" {array.dtype} numbers of the shape {list(array.shape)}."
        )
    if not np.isfinite(array).all():
        raise BadInput("This image holds numbers that are not finite: give its bytes, or floats from 0 to 1.")
    least, most = float(array.min()), float(array.max())
    if least < 0 or most > (1.0 if array.dtype.kind == "f" else 255):
        raise BadInput(
            f"An image is bytes from 0 to 255 or floats from 0 to 1, and these run from {least:.3g} to {most:.3g}: give"
            " it as it was before the model's processor has normalised it."
        )
    whole: Pixels = np.ascontiguousarray(np.rint(array * 255) if array.dtype.kind == "f" else array).astype(np.uint8)
    return whole


def _grid(grid: Sequence[int] | None) -> tuple[int, int]:
    if grid is None:
        raise BadInput(
            "These scores do not say how an image was cut into patches: score a record of an image, or give"
            " grid=(rows, columns)."
        )
    if len(grid) != 2 or min(grid) < 1:
        raise BadInput(f"A grid is its rows and columns of patches, as in grid=(14, 14), not {tuple(grid)}.")
    return grid[0], grid[1]


def _patches(scores: TokenScores, rows: int, columns: int) -> list[int]:
    """The positions of the patches: of tokens that are called so, else of those that are not special."""
    named = [place for place, token in enumerate(scores.tokens) if token.startswith(PATCH)]
    places = named or [place for place, special in enumerate(scores.special) if not special]
    if len(places) != rows * columns:
        raise BadInput(
            f"A grid of {rows} x {columns} has {rows * columns} patches, and these scores are of {len(places)}: give"
            " the grid of this model as grid=(rows, columns), and mark other tokens, such as [CLS], as special."
        )
    return places


def _describe(method: Method, values: Float64[np.ndarray, "row column"], places: Sequence[int]) -> dict[str, Any]:
    """A method for the script: its scores, and what the tokens that are no patch have of them."""
    every = method.own.abs().nan_to_num()
    mass = float(every.sum())
    return {
        "name": method.name,
        "scores": [[float(score) if np.isfinite(score) else None for score in row] for row in values],
        "signed": bool((values < 0).any()),
        "elsewhere": 0.0 if mass <= 0 else max(0.0, 1 - float(every[list(places)].sum()) / mass),
        "warnings": list(method.scores.warnings),
    }


def _data_uri(pixels: Pixels) -> str:
    """The image as text that a page holds: without loss where that is small."""
    image = _pillow()[0].fromarray(pixels)
    into = BytesIO()
    image.save(into, format="PNG", optimize=True)
    kind = "png"
    if into.tell() > LARGEST_PNG:
        into, kind = BytesIO(), "jpeg"
        image.save(into, format="JPEG", quality=90)
    return f"data:image/{kind};base64,{b64encode(into.getvalue()).decode('ascii')}"


def _pillow() -> tuple[Any, Any]:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise BadInput("Images need Pillow: pip install 'attnscope[figures]'.") from error
    return Image, ImageOps
