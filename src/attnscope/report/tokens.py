"""Tokens as text on the colour of their numbers, in HTML; every token is escaped."""

from collections.abc import Sequence
from html import escape

from .. import paint
from ..record import readable

LEGEND_STEPS = 16
"""Swatches of a legend; the middle of the scale is written between its halves."""


def shown(tokens: Sequence[str]) -> list[str]:
    """Each token as it is drawn: without markers and the space around it, an invisible one as a sign."""
    return [text.strip() or ("␣" if text else "∅") for text in readable(tokens)]


def joined(tokens: Sequence[str], word_ids: Sequence[int | None], special: Sequence[bool]) -> list[bool]:
    """Which tokens go on with the word of the token before them, so that a thin join stands for the marker.

    The tokenizer's own word ids tell; where they are unknown (each token its own word), the markers do.

    >>> joined(["play", "##ing", "now"], [0, 1, 2], [False] * 3), joined(["Ġplay", "ing"], [0, 0], [False] * 2)
    ([False, True, False], [False, True])
    """
    texts = readable(tokens)
    marks_starts = any(text.startswith(" ") for text in texts)
    marks = []
    for position, (token, text) in enumerate(zip(tokens, texts, strict=True)):
        if position == 0 or special[position] or special[position - 1]:
            marks.append(False)
            continue
        same_word = word_ids[position] is not None and word_ids[position] == word_ids[position - 1]
        without_space = marks_starts and not text.startswith(" ")
        marks.append(same_word or without_space or (text != token and token.startswith("##")))
    return marks


def ranks(scores: Sequence[float]) -> list[int]:
    """The rank of each score, 1 for the largest; equal scores keep the order of the text.

    >>> ranks([0.1, 0.7, 0.2])
    [3, 1, 2]
    """
    order = sorted(range(len(scores)), key=lambda position: -scores[position])
    places = {position: place for place, position in enumerate(order, start=1)}
    return [places[position] for position in range(len(scores))]


def token_cells(
    element: str,
    tokens: Sequence[str],
    joins: Sequence[bool],
    special: Sequence[bool],
    scores: Sequence[float],
    largest: float,
    before: str = "",
) -> str:
    """One element per token on its colour; the note that hovering shows has its exact number and its rank."""
    cells = []
    places = ranks(scores)
    for text, join, quiet, score, place in zip(shown(tokens), joins, special, scores, places, strict=True):
        names = f"w{paint.step(score, largest)}" + " join" * join + " special" * quiet
        # a special token is written left to right whatever the text is, and must not decide the direction of the text
        direction = " dir=ltr" if quiet else ""
        note = f"{before}{text} · {score:.4f} · rank {place} of {len(scores)}"
        share = score / largest if largest > 0 else 0.0
        attributes = f'class="{names}"{direction} data-share={share:.5f} title="{escape(note)}"'
        cells.append(f"<{element} {attributes}>{escape(text)}</{element}>")
    return "".join(cells)


def legend(largest: float, what: str) -> str:
    """The colour scale with its ends and its middle in real units; the page's script rewrites it for another scale."""
    swatches = [f"<i class=w{round(255 * place / (LEGEND_STEPS - 1))}></i>" for place in range(LEGEND_STEPS)]
    lower, upper = "".join(swatches[: LEGEND_STEPS // 2]), "".join(swatches[LEGEND_STEPS // 2 :])
    return (
        f"<p class=legend data-largest={largest:.6f}><span>0</span><span class=swatches aria-hidden=true>{lower}</span>"
        f"<span class=middle>{largest / 2:.3f}</span><span class=swatches aria-hidden=true>{upper}</span>"
        f"<span>{largest:.3f}</span><span class=quiet>{escape(what)}, <span class=scale>linear</span> scale</span></p>"
    )
