"""What the author of a newsgroup posting wrote in it: no headers, no signature, and no lines of others."""

import re

ANNOUNCES = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from")
"""A line that says who is quoted."""
QUOTED = ("|", ">")


def own_text(posting: str) -> str:
    r"""A posting without headers, signature and quotes, as in scikit-learn's `remove=`.

    >>> own_text("From: me\n\nYou wrote:\n> Who won?\nWe did.\n\n--\nMy name")
    'We did.\n'
    """
    return _without_quotes(_without_signature(_without_headers(posting)))


def _without_headers(posting: str) -> str:
    """Headers end at the first empty line."""
    return posting.partition("\n\n")[2]


def _without_signature(text: str) -> str:
    """A signature is what stands behind the last line that is empty or a rule of dashes, if anything is before it."""
    lines = text.strip().split("\n")
    breaks = [number for number, line in enumerate(lines) if not line.strip().strip("-")]
    return "\n".join(lines[: breaks[-1]]) if breaks and breaks[-1] > 0 else text


def _without_quotes(text: str) -> str:
    """Every line goes that is marked as quoted, or says that a quote follows."""
    kept = [line for line in text.split("\n") if not line.startswith(QUOTED) and not ANNOUNCES.search(line)]
    return "\n".join(kept)
