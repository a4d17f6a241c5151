"""Made-up sentences in which only two words tell the class: the synthetic study of Sun & Lu 2020, supplement."""

from collections.abc import Iterator

import numpy as np

from ...errors import BadInput
from .classified import Row, classified_texts
from .packed import ClassifiedTexts

CLASSES = ("negative", "positive")
HELD_OUT = 6
"""Validation and test have one text for so many training texts."""


def synthetic_polarity(
    *,
    texts: int = 12_000,
    polar: int = 50,
    neutral: int = 1_000,
    polar_words: int = 2,
    neutral_words: int = 10,
    swapped: int | float = 0.0,
    positive_share: int | float = 0.5,
    seed: int = 0,
) -> ClassifiedTexts:
    """Sentences of neutral words and words of their class, none of them twice, in any order.

    The defaults are the paper's data I. `swapped` is the share of sentences whose polar words are of the other class
    (data II; its rate is not published), `positive_share` that of positive sentences (below or above a half: skewed).
    `polar` is how many words each class has. Validation and test are drawn in the same way.
    """
    if polar < polar_words or neutral < neutral_words or texts < HELD_OUT * len(CLASSES):
        raise BadInput(
            f"{texts} sentences of {polar_words} polar and {neutral_words} neutral words cannot be made from {polar}"
            f" and {neutral} words: there must be enough words, and at least {HELD_OUT * len(CLASSES)} sentences."
        )
    if not 0 <= swapped <= 1 or not 0 < positive_share < 1:
        raise BadInput(f"Shares lie between 0 and 1: swapped is {swapped} and positive_share {positive_share}.")
    words = {name: np.array([f"{name}{number}" for number in range(polar)]) for name in CLASSES}
    filling = np.array([f"neutral{number}" for number in range(neutral)])

    def sentences(part: int, count: int) -> Iterator[Row]:
        random = np.random.default_rng([seed, part])
        positive = min(max(round(count * positive_share), 1), count - 1)
        for label in random.permutation(np.arange(count) < positive):
            told = bool(label) != bool(random.random() < swapped)
            pieces = [
                random.choice(words[CLASSES[int(told)]], polar_words, replace=False),
                random.choice(filling, neutral_words, replace=False),
            ]
            yield random.permutation(np.concatenate(pieces)).tolist(), int(label)

    sizes = {"train": texts, "dev": texts // HELD_OUT, "test": texts // HELD_OUT}
    parts = {name: list(sentences(part, size)) for part, (name, size) in enumerate(sizes.items())}
    return classified_texts("synthetic", CLASSES, parts)


def toy_polarity(seed: int = 0) -> ClassifiedTexts:
    """The same so small that a model learns it in a moment: 240 sentences of eight words out of sixty."""
    return synthetic_polarity(texts=240, polar=10, neutral=40, neutral_words=6, seed=seed)
