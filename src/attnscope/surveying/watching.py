"""How far a survey is, told to whoever watches."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How far a survey is."""

    number: int
    """Which pass over the corpus this is, from 1."""
    passes: int
    texts: int
    """Texts done in this pass; a parser may make several sentences of one."""
    size: int | None
    """Texts in the corpus, where that is known."""
    sentences: int
    tokens: int


Watch = Callable[[Progress], None]
