"""The colours of the views as one set of CSS custom properties, light and dark, so that scripts hold no colour.

Sequential for weights, diverging for signed figures, categorical for names. The categorical set is that of Okabe and
Ito (2008), made for readers of every colour vision, with grey for its black, which would vanish on a dark ground.
"""

from collections.abc import Sequence

from .. import paint

CATEGORICAL = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")
"""Eight colours for names; a ninth name takes the first again, hatched, and always shows its name. Grey is the last."""
ORANGE = 55.0
"""The hue of what is below zero, in degrees of OKLCH."""


def diverging(*, dark: bool = False) -> tuple[str, ...]:
    """The scale for signed figures: 256 colours from orange (least) over the ground (zero) to blue (most)."""
    colours = []
    for step in range(paint.STEPS):
        share = 2 * step / (paint.STEPS - 1) - 1
        lightness = 0.22 + 0.6 * abs(share) if dark else 0.97 - 0.5 * abs(share)
        colours.append(paint.oklch(lightness, 0.01 + 0.12 * abs(share), paint.HUE if share > 0 else ORANGE))
    return tuple(colours)


def heat() -> tuple[str, ...]:
    """The scale for heat over an image: 64 colours from dark violet over red to bright yellow, evenly lighter."""
    shares = [step / 63 for step in range(64)]
    return tuple(paint.oklch(0.35 + 0.57 * share, 0.13 + 0.04 * share, (300 + 165 * share) % 360) for share in shares)


def colour_properties() -> str:
    """The scales as CSS custom properties of every view; a script reads those of the scheme of the moment.

    >>> colour_properties().count("--sequential:"), colour_properties().count("prefers-color-scheme")
    (2, 1)
    """
    return f"{_properties(dark=False)}@media (prefers-color-scheme:dark){{{_properties(dark=True)}}}"


def _properties(*, dark: bool) -> str:
    scales: dict[str, Sequence[str]] = {
        "sequential": paint.sequential(dark=dark),
        "diverging": diverging(dark=dark),
        "categorical": CATEGORICAL,
    }
    return ".attnscope{" + "".join(f"--{name}:{' '.join(colours)};" for name, colours in scales.items()) + "}"
