"""Which words belong to which class, told by how often they occur in its training texts (Sun & Lu 2020, section 5).

Symbols of the paper: f+ and f- are the counts of a word in positive and negative texts, γ = (f+ - f-) / (f+ + f-).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from ..errors import BadInput
from .data.packed import PackedTexts

POLAR, NEUTRAL = 0.5, 0.1
"""A polar word has |γ| above the first, a neutral one below the second."""
RARE = 5
"""A polar word occurs more often than this in texts of its class; the counts of a neutral one differ by less."""
LABEL_SHARE, LABEL_RARE, NEUTRAL_EXCESS = 0.65, 25, 0.07
"""Of several classes, which share of a word's occurrences makes it a label's, how many it must have more than, and how
far above an even share it stays neutral. The paper states none of them. These are chosen by counts alone, before any
model: on 20News II they give 57, 261 and 185 words and 191 neutral ones, where the supplement has 49, 268, 192 and 164.
"""


@dataclass(frozen=True, eq=False)
class TokenClasses:
    """The numbers of the words of each kind, in rising order; most words are of none."""

    positive: Int64[np.ndarray, " positive"]
    negative: Int64[np.ndarray, " negative"]
    neutral: Int64[np.ndarray, " neutral"]

    @property
    def polar(self) -> Int64[np.ndarray, " polar"]:
        """Positive and negative words together, in rising order."""
        return np.sort(np.concatenate([self.positive, self.negative]))


@dataclass(frozen=True, eq=False)
class LabelTokens:
    """Of several classes, the numbers of the words that go with each, and of those that go with none."""

    labels: tuple[Int64[np.ndarray, " _"], ...]
    neutral: Int64[np.ndarray, " neutral"]


def class_counts(texts: PackedTexts, classes: int, words: int) -> Int64[np.ndarray, "class token"]:
    """How often each word occurs in the texts of each class, every occurrence counted."""
    owners = np.repeat(texts.labels, texts.lengths)
    return np.bincount(owners * words + texts.tokens, minlength=classes * words).reshape(classes, words)


def gamma(counts: Int64[np.ndarray, "class token"]) -> Float64[np.ndarray, " token"]:
    """γ of each word, from -1 (only in negative texts) to 1; not a number for a word that does not occur.

    >>> gamma(np.array([[0, 1, 3, 0], [4, 3, 3, 0]])).tolist()
    [1.0, 0.5, 0.0, nan]
    """
    negative, positive = _two(counts)
    total = negative + positive
    known = np.full(len(total), np.nan)
    np.divide(positive - negative, total, out=known, where=total > 0)
    return known


def token_classes(counts: Int64[np.ndarray, "class token"]) -> TokenClasses:
    """Positive, negative and neutral words: γ > .5 and f+ > 5, γ < -.5 and f- > 5, |γ| < .1 and |f+ - f-| < 5.

    γ of exactly 1 and -1 counts, which the paper's text leaves out and its counts do not: it gives just the 412, 265
    and 1,384 words that its supplement has for SST. Neutral words may be as rare as they like, and most are.
    """
    negative, positive = _two(counts)
    known = gamma(counts)
    return TokenClasses(
        positive=np.flatnonzero((known > POLAR) & (positive > RARE)),
        negative=np.flatnonzero((known < -POLAR) & (negative > RARE)),
        neutral=np.flatnonzero((np.abs(known) < NEUTRAL) & (np.abs(positive - negative) < RARE)),
    )


def frequency_matched(
    counts: Int64[np.ndarray, "class token"], tokens: Int64[np.ndarray, " polar"]
) -> Int64[np.ndarray, " polar"]:
    """For each of these words, a word of |γ| < .1 that occurs about as often: a control for how rare neutral words are.

    The nearest count wins; of several as near, the one used least so far, then the one with the lowest number. A word
    may be used again where there are not enough.
    """
    totals = counts.sum(0)
    candidates = np.flatnonzero(np.abs(gamma(counts)) < NEUTRAL)
    if not len(candidates):
        raise BadInput(
            f"No word occurs about evenly in both classes (|γ| < {NEUTRAL}): there is nothing to match with."
        )
    uses = np.zeros(len(candidates), np.int64)
    matched = np.empty(len(tokens), np.int64)
    for place, token in enumerate(tokens):
        distances = np.abs(totals[candidates] - totals[token])
        nearest = np.flatnonzero(distances == distances.min())
        chosen = nearest[uses[nearest].argmin()]
        uses[chosen] += 1
        matched[place] = candidates[chosen]
    return matched


def label_tokens(
    counts: Int64[np.ndarray, "class token"],
    share: int | float = LABEL_SHARE,
    rare: int = LABEL_RARE,
    excess: int | float = NEUTRAL_EXCESS,
) -> LabelTokens:
    """Of several classes, the words whose occurrences are in one of them with more than this share, and often enough.

    Neutral are words that occur as often over all, and whose largest share is below an even one plus `excess`.
    """
    totals = counts.sum(0)
    shares = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    labels = tuple(np.flatnonzero((shares[label] > share) & (counts[label] > rare)) for label in range(len(counts)))
    even = 1 / len(counts)
    return LabelTokens(labels, np.flatnonzero((shares.max(0) < even + excess) & (totals > rare)))


def _two(counts: Int64[np.ndarray, "class token"]) -> Sequence[Int64[np.ndarray, " token"]]:
    if len(counts) != 2:
        raise BadInput(f"Positive and negative are told of two classes, not of {len(counts)}: use label_tokens.")
    return list(counts)
