"""What is shown on a terminal: text of any origin as text and nothing else, tokens on the colour of their numbers."""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from .paint import colour, ink

STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for line breaks and tabs, what turns the direction of writing, and halves of characters."""


def visible(text: str) -> str:
    r"""Text that may be a stranger's, with what would steer a terminal spelled out.

    >>> visible("a label\x1b[2J")
    'a label\\x1b[2J'
    """
    return STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class PlainConsole(Console):
    """A console on which everything is text: nothing that is printed, label or name, can steer the terminal."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What rich renders, made visible; its own control codes are kept apart from text and stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def paint_scores(
    console: Console, texts: Sequence[str], special: Sequence[bool], scores: Sequence[float], largest: float
) -> Text:
    """Readable tokens as this console can show them: coloured, or in a log and under NO_COLOR with numbers.

    Sixteen colours are too few for a scale, so such a terminal gets numbers too.
    """
    if console.no_color or console.color_system not in {"256", "truecolor"}:
        return number_tokens(texts, special, scores)
    return paint_token(texts, special, scores, largest, dark=has_dark_ground(os.environ))


def paint_token(
    texts: Sequence[str], special: Sequence[bool], scores: Sequence[float], largest: float, *, dark: bool = True
) -> Text:
    """The tokens in reading order, each on the colour of its score from 0 to `largest`; special tokens in italics."""
    line = Text()
    for text, quiet, score in zip(_words(texts), special, scores, strict=True):
        background = colour(score, largest, dark=dark)
        line.append(f" {text} ", style=f"{'italic ' * quiet}{ink(background)} on {background}")
    return line


def number_tokens(texts: Sequence[str], special: Sequence[bool], scores: Sequence[float]) -> Text:
    """The tokens in reading order, each with its score; special tokens in angle quotes.

    >>> number_tokens(["[CLS]", "key"], [True, False], [0.25, 0.75]).plain
    '‹[CLS]› 0.250  key 0.750'
    >>> number_tokens(["small", "smaller"], [False, False], [0.00234, -0.00002]).plain
    'small 0.00234  smaller -0.00002'
    """
    digits = decimals(scores)
    marked = (f"‹{text}›" if quiet else text for text, quiet in zip(_words(texts), special, strict=True))
    return Text("  ".join(f"{text} {score:.{digits}f}" for text, score in zip(marked, scores, strict=True)))


def decimals(scores: Sequence[float]) -> int:
    """How many places show three digits of the largest of these, at most eight.

    >>> decimals([0.5, -0.25]), decimals([0.00234]), decimals([7.605]), decimals([0.0])
    (3, 5, 2, 3)
    """
    largest = max(map(abs, scores), default=0.0)
    return min(max(0, 2 - math.floor(math.log10(largest))), 8) if largest else 3


def has_dark_ground(environment: Mapping[str, str]) -> bool:
    """Whether the terminal is dark: COLORFGBG tells where it is set ("15;0"), and most terminals are.

    >>> has_dark_ground({"COLORFGBG": "0;15"}), has_dark_ground({})
    (False, True)
    """
    ground = environment.get("COLORFGBG", "").rpartition(";")[2]
    return ground not in {"7", "15"}


def _words(texts: Sequence[str]) -> list[str]:
    return [text.strip() or "␣" for text in texts]
