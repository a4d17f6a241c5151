"""Numbers to colours, the same in a terminal, a page and a printed figure.

Ink means weight: the sequential scale runs over one hue from lightness .97 (nothing) to .35 (everything) in OKLCH,
which is perceptually even; in dark mode it runs the other way. Signed figures have a diverging scale, names a
categorical one: that of Okabe and Ito (2008), made for readers of every colour vision, with grey for its black, which
would vanish on a dark ground. Pages have all as CSS custom properties, so that scripts hold no colour.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

HUE = 255.0
"""Blue, in degrees of OKLCH."""
AGAINST = 40.0
"""Orange: numbers below zero, where what speaks against something is told from what speaks for it."""
STEPS = 256
"""Entries of a scale: one for each value of a byte."""


def _srgb_channel(linear: float) -> int:
    linear = min(max(linear, 0.0), 1.0)
    encoded = 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055
    return round(255 * encoded)


def oklch(lightness: float, chroma: float, hue: float) -> str:
    """The sRGB colour `#rrggbb` of a point in OKLCH (Ottosson 2020), clipped to the gamut."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    red = 4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short
    green = -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short
    blue = -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short
    return "#" + "".join(f"{_srgb_channel(channel):02x}" for channel in (red, green, blue))


@lru_cache
def sequential(*, dark: bool = False, hue: float = HUE) -> tuple[str, ...]:
    """The scale for weights: 256 colours from nothing to everything."""
    shares = [step / (STEPS - 1) for step in range(STEPS)]
    if dark:
        return tuple(oklch(0.22 + 0.63 * share, 0.02 + 0.10 * share, hue) for share in shares)
    return tuple(oklch(0.97 - 0.62 * share, 0.01 + 0.12 * share, hue) for share in shares)


def step(value: float, largest: float) -> int:
    """The place of a value on the scale, 0 to 255, linear from 0 to `largest`.

    >>> step(0.25, 0.5), step(0.7, 0.5), step(0.0, 0.0)
    (128, 255, 0)
    """
    share = 0.0 if largest <= 0 else min(max(value / largest, 0.0), 1.0)
    return round(share * (STEPS - 1))


def colour(value: float, largest: float, *, dark: bool = False) -> str:
    """The colour of a value on a linear scale from 0 to `largest`; below zero the same in another hue."""
    return sequential(dark=dark, hue=HUE if value >= 0 else AGAINST)[step(abs(value), largest)]


def rgb(colour: str) -> tuple[int, int, int]:
    """The red, green and blue bytes of `#rrggbb`."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it, 0 for black and 1 for white."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (byte / 255 for byte in rgb(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ink(colour: str) -> str:
    """Black or white, whichever reads better on this colour: always a contrast of at least 4.5 to 1."""
    light = luminance(colour)
    return "#000000" if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else "#ffffff"


def style_rules(*, dark: bool = False) -> str:
    """The scale as CSS classes `.w0` to `.w255`, each with the ink that reads on it."""
    return "".join(
        f".w{place}{{background:{background};color:{ink(background)}}}"
        for place, background in enumerate(sequential(dark=dark))
    )


# ---- scales of the views

CATEGORICAL = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")
"""Eight colours for names; a ninth name takes the first again, hatched, and always shows its name. Grey is the last."""
ORANGE = 55.0
"""The hue of what is below zero, in degrees of OKLCH."""


def diverging(*, dark: bool = False) -> tuple[str, ...]:
    """The scale for signed figures: 256 colours from orange (least) over the ground (zero) to blue (most)."""
    colours = []
    for step in range(STEPS):
        share = 2 * step / (STEPS - 1) - 1
        lightness = 0.22 + 0.6 * abs(share) if dark else 0.97 - 0.5 * abs(share)
        colours.append(oklch(lightness, 0.01 + 0.12 * abs(share), HUE if share > 0 else ORANGE))
    return tuple(colours)


def heat() -> tuple[str, ...]:
    """The scale for heat over an image: 64 colours from dark violet over red to bright yellow, evenly lighter."""
    shares = [step / 63 for step in range(64)]
    return tuple(oklch(0.35 + 0.57 * share, 0.13 + 0.04 * share, (300 + 165 * share) % 360) for share in shares)


def colour_properties() -> str:
    """The scales as CSS custom properties of every view; a script reads those of the scheme of the moment.

    >>> colour_properties().count("--sequential:"), colour_properties().count("prefers-color-scheme")
    (2, 1)
    """
    return f"{_properties(dark=False)}@media (prefers-color-scheme:dark){{{_properties(dark=True)}}}"


def _properties(*, dark: bool) -> str:
    scales: dict[str, Sequence[str]] = {
        "sequential": sequential(dark=dark),
        "diverging": diverging(dark=dark),
        "categorical": CATEGORICAL,
    }
    return ".attnscope{" + "".join(f"--{name}:{' '.join(colours)};" for name, colours in scales.items()) + "}"
