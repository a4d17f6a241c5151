"""Where the colours of some tokens begin and end, and which tokens a long text keeps in sight: as on the screen."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64

LEAST_SPAN = 0.1
"""How much of its start a scale that does not begin at 0 spans: what hardly differs is not drawn as if it did."""


@dataclass(frozen=True)
class Scale:
    """Where the colours of a row begin and end; the same rule as that of the screen, in drawing.js."""

    start: float
    end: float

    @classmethod
    def of(cls, scores: Float64[np.ndarray, " unit"], quiet: Sequence[bool]) -> "Scale":
        """From 0 to the largest size, special tokens and sinks set aside, because one often holds nearly all.

        Where all others are above half of the largest, so that the row would be one dark bar, from the smallest.
        """
        finite = scores[np.isfinite(scores)]
        others = scores[np.isfinite(scores) & ~np.asarray(quiet, dtype=bool)]
        counted = others if others.any() else finite
        end = float(np.abs(counted).max(initial=0.0))
        least = float(counted.min(initial=math.inf))
        if len(counted) < 2 or least <= end / 2 or (finite < 0).any():
            return cls(0.0, end)
        return cls(least, max(end, least * (1 + LEAST_SPAN)))

    def share(self, score: float) -> float:
        """How far along the scale a score is, from 0 to 1, or from -1 for what is below zero."""
        if self.end <= self.start or not math.isfinite(score):
            return 0.0
        return min(max((score - self.start) / (self.end - self.start), 0.0 if self.start else -1.0), 1.0)

    def is_beyond(self, score: float) -> bool:
        """Whether a score lies outside: a special token or a sink."""
        return abs(score) > self.end * (1 + 1e-9) or 0 < self.start * (1 - 1e-9) > score

    def __str__(self) -> str:
        return f"{self.start:.2g}–{self.end:.2g}" if self.start else f"{self.end:.2g}"


def loudest(loudness: Float[np.ndarray, " unit"], most: int, always: Collection[int] = ()) -> list[int]:
    """The places of the units that stay in sight, in the order of the text: those asked for, and then the loudest.

    >>> loudest(np.array([0.1, 0.5, 0.2, 0.4]), 2, always=[0])
    [0, 1]
    """
    asked = set(always)
    order = sorted(range(len(loudness)), key=lambda place: (place not in asked, -loudness[place], place))
    return sorted(order[:most])
