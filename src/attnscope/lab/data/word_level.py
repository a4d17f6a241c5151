"""Texts in two classes as Snell et al. 2021 prepare them: words between bos and eos, the rare ones unknown.

Their Table 9 tells that a word is a run of letters, digits and "_" in lower case: of 20 Newsgroups and IMDB these give
its median lengths to the word. Texts are looked at with no more than 4,000 of those that were not learned from.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...errors import BadInput
from ..vocabulary import FRAMED, Vocabulary
from .classified import Row
from .packed import ClassifiedTexts, PackedTexts

RARE = 3
"""A word that occurs less often than this in training texts is unknown."""
LOOKED_AT = 4_000
SEED = 0
"""Of the texts that are drawn; the authors' choice is not known."""


def word_level_texts(
    name: str, classes: Sequence[str], train: Sequence[Row], held_out: Sequence[Row]
) -> ClassifiedTexts:
    """A data set of texts that are cut into words: `dev` has up to 4,000 of those held out, `test` has all of them.

    Every text begins with bos and ends with eos. The vocabulary is that of training texts, the frequent words first.
    """
    if not train or not held_out:
        raise BadInput(f"The data set {name} has no texts to {'look at' if train else 'learn from'}.")
    counted = Counter(word for words, _ in train for word in words if word not in FRAMED.values())
    kept = sorted((entry for entry in counted.items() if entry[1] >= RARE), key=lambda entry: (-entry[1], entry[0]))
    vocabulary = Vocabulary([word for word, _ in kept], [count for _, count in kept], FRAMED)
    order = np.random.default_rng(SEED).permutation(len(held_out))[:LOOKED_AT]
    looked_at = [held_out[number] for number in sorted(order.tolist())]
    parts = (_packed(vocabulary, rows) for rows in (train, looked_at, held_out))
    return ClassifiedTexts(name, tuple(classes), vocabulary, *parts)


def without_long_numbers(words: Sequence[str]) -> list[str]:
    """The words with unk for whole numbers of several digits.

    >>> without_long_numbers(["in", "1993", "3", "4th"])
    ['in', '[UNK]', '3', '4th']
    """
    return [FRAMED["unk"] if len(word) > 1 and word.isdecimal() else word for word in words]


def word_level_statistics(texts: ClassifiedTexts) -> pd.DataFrame:
    """One row as in the paper's Table 9: median lengths in words without bos and eos, sizes, and the vocabulary.

    The vocabulary counts the special tokens; the paper's also has every word of GloVe, however rare.
    """
    row = {
        "data": texts.name,
        "train_length": float(np.median(texts.train.lengths - 2)),
        "train": len(texts.train),
        "validation_length": float(np.median(texts.dev.lengths - 2)),
        "validation": len(texts.dev),
        "vocabulary": len(texts.vocabulary),
    }
    return pd.DataFrame([row])


def _packed(vocabulary: Vocabulary, rows: Sequence[Row]) -> PackedTexts:
    before, behind = FRAMED["bos"], FRAMED["eos"]
    numbers = [vocabulary.encode([before, *words, behind]) for words, _ in rows]
    return PackedTexts.of(numbers, [label for _, label in rows])
