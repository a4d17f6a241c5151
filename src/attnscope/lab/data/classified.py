"""Texts in words, with the number of their class, made one data set: a vocabulary, three parts, and their statistics.

As Sun & Lu 2020 have it, the vocabulary is that of training, validation and test texts together: a word that is only
in the last two keeps the vector it began with, and nothing is unknown.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ...errors import BadInput
from ..vocabulary import Vocabulary
from .packed import ClassifiedTexts, PackedTexts

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]"}
PARTS = ("train", "dev", "test")
WORD = re.compile(r"\w+")
Row = tuple[Sequence[str], int]
"""The words of a text, and the number of its class."""


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; punctuation stands for a space, also within a word.

    On SST this gives just the authors' 16,171 words, as splitting with spaCy and stripping punctuation gave them.

    >>> words_of("It's a well-made film (8 1/2).")
    ['it', 's', 'a', 'well', 'made', 'film', '8', '1', '2']
    """
    return WORD.findall(text.lower())


def classified_texts(name: str, classes: Sequence[str], parts: Mapping[str, Sequence[Row]]) -> ClassifiedTexts:
    """A data set of texts that are cut into words already; one without words is left out.

    The words are numbered by how often they occur in all parts, in alphabetical order where that is equal.
    """
    kept = {part: [row for row in parts[part] if row[0]] for part in PARTS}
    if empty := [part for part, rows in kept.items() if not rows]:
        raise BadInput(f"The data set {name} has no texts with words for {empty[0]}.")
    counted = Counter(word for rows in kept.values() for words, _ in rows for word in words)
    ranked = sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))
    vocabulary = Vocabulary([word for word, _ in ranked], [count for _, count in ranked], SPECIAL)
    packed = {
        part: PackedTexts.of([vocabulary.encode(words) for words, _ in rows], [label for _, label in rows])
        for part, rows in kept.items()
    }
    return ClassifiedTexts(name, tuple(classes), vocabulary, packed["train"], packed["dev"], packed["test"])


def text_statistics(texts: ClassifiedTexts) -> pd.DataFrame:
    """One row as in the paper's Table 1: mean length, words, and the texts of each class in each part.

    Sizes name the last class first, so that of two classes it is positive/negative as in the paper. The paper's number
    of words counts three special tokens; this one counts none.
    """
    parts = {part: getattr(texts, part) for part in PARTS}
    lengths = np.concatenate([packed.lengths for packed in parts.values()])
    order = range(len(texts.classes)) if len(texts.classes) > 2 else (1, 0)
    sizes = {
        part: "/".join(str(int((packed.labels == label).sum())) for label in order) for part, packed in parts.items()
    }
    row = {"data": texts.name, "mean_length": float(lengths.mean()), "words": len(texts.vocabulary.words), **sizes}
    return pd.DataFrame([row])


def shuffled_parts(
    rows: Sequence[Row], groups: Sequence[int], shares: Mapping[str, int | float], seed: int
) -> dict[str, list[Row]]:
    """Texts dealt out at random, its share of all to each part; each in the order they came in.

    Each group is dealt out by itself: if it is the class of the texts, every part has its share of each class. A part
    of a text goes to the next part; the last part gets what is left.
    """
    dealt: dict[str, list[int]] = {part: [] for part in shares}
    for group in sorted(set(groups)):
        members = np.array([number for number, own in enumerate(groups) if own == group])
        order = np.random.default_rng([seed, group]).permutation(members)
        # the sum of shares may come out a little below a whole number of texts
        ends = np.floor(np.cumsum([share * len(order) for share in shares.values()]) + 1e-6).astype(int)[:-1]
        for part, numbers in zip(shares, np.split(order, ends), strict=True):
            dealt[part].extend(numbers.tolist())
    return {part: [rows[number] for number in sorted(numbers)] for part, numbers in dealt.items()}
