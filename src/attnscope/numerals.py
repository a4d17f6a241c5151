"""Numbers as people write them: with their nouns, and with no more digits than anyone reads."""

import math

FEWEST_PLACES = 3
"""Places behind the point that a number below one has at most: smaller ones are written as zero."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number and what it counts, in the singular or plural.

    >>> counted(1, "sentence"), counted(1200, "sentence"), counted(2, "does", "do")
    ('1 sentence', '1,200 sentences', '2 do')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def three_digits(number: float) -> str:
    """A number for a sentence: at most three digits that count, at most three places, and a true minus sign.

    >>> three_digits(7.605), three_digits(0.0584), three_digits(-123.4), three_digits(0.0)
    ('7.61', '0.058', '−123', '0.000')
    """
    places = 2 - math.floor(math.log10(abs(number))) if number and math.isfinite(number) else FEWEST_PLACES
    return f"{number:.{min(max(places, 0), FEWEST_PLACES)}f}".replace("-", "−")


def in_words(count: int | float) -> str:
    """A number of bytes, in three figures."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
