"""Numbers as people write them: with their nouns and units."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number and what it counts, in the singular or plural.

    >>> counted(1, "sentence"), counted(1200, "sentence"), counted(2, "does", "do")
    ('1 sentence', '1,200 sentences', '2 do')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def in_words(count: int | float) -> str:
    """A number of bytes, in three figures."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def percent(share: float) -> str:
    """A share in per cent; nothing is rounded to certainty.

    >>> percent(0.25), percent(0.99999), percent(1e-9)
    ('25.0 %', '> 99.9 %', '< 0.1 %')
    """
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %"
