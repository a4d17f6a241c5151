"""What the measurement will cost, told before it runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..numerals import counted
from .erasure import token_counts


@dataclass(frozen=True)
class Cost:
    """How often the model runs on one text or a variant of it; `str()` says it in words."""

    texts: int
    tokens: int
    backward: int
    """Runs with gradients."""
    blank_out: int
    """One run for each token and each method that runs the model again."""
    erasure: int
    """At most: methods that put the same tokens first share their runs."""

    @property
    def forward(self) -> int:
        """All forward runs."""
        return self.texts + self.blank_out + self.erasure

    def __str__(self) -> str:
        return (
            f"{counted(self.texts, 'text')} with {counted(self.tokens, 'token')}: at most {self.forward:,} forward runs"
            f" ({self.blank_out:,} to blank single tokens out, up to {self.erasure:,} for erasure)"
            f" and {self.backward:,} backward"
        )


def price(lengths: Sequence[int], scored: int, running: int, gradients: bool) -> Cost:
    """From the tokens of each text, how many methods and baselines are scored, and how many run the model again."""
    # every distinct count once for each of: taken away or kept, with or without special tokens
    variants = sum(len(set(token_counts(length))) * 4 for length in lengths)
    return Cost(
        texts=len(lengths),
        tokens=sum(lengths),
        backward=len(lengths) if gradients else 0,
        blank_out=running * sum(lengths),
        erasure=scored * variants,
    )
