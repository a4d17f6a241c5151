"""Texts in words, with the number of their class, made one data set: a vocabulary, three parts, and their statistics.

As Sun & Lu 2020 have it, the vocabulary is that of training, validation and test texts together: a word that is only
in the last two keeps the vector it began with, and nothing is unknown.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...corpora import dataset_file
from ...errors import BadInput
from ...syntax.lines import numbered_rows
from ..vocabulary import Vocabulary
from .packed import ClassifiedTexts, PackedTexts
from .sst_trees import tree_splits

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


# The Stanford Sentiment Treebank as negative or positive sentences, cut into words as Sun & Lu 2020 have it.


NEUTRAL = 2


def sst_binary(place: str | Path | None = None, data: str | Path = "sst") -> ClassifiedTexts:
    """The sentences that are not neutral, 6,920, 872 and 1,821 of them, in the parts of the treebank.

    `data` may be a folder laid out like SST in place of its name; `place` is where data sets lie, before
    $ATTNSCOPE_DATA.
    """
    trees = tree_splits(data, place)
    parts = {
        part: [
            (words_of(" ".join(tree.words)), int(tree.label > NEUTRAL)) for tree in trees[part] if tree.label != NEUTRAL
        ]
        for part in PARTS
    }
    return classified_texts("sst", ("negative", "positive"), parts)


# Film reviews of IMDB that are not long, cut into words as the index of Keras is, which Sun & Lu 2020 used.


CLASSES = ("negative", "positive")
LABELS = {"neg": 0, "pos": 1}
LONGEST = 400
"""A review has fewer words than this."""
SEED = 1378
"""The authors' seed; their order of reviews, and so their split, is not known."""
SEPARATING = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n', " "))
"""Signs that end a word: all punctuation but the apostrophe. A line break, `<br />`, is the word br."""


def imdb(place: str | Path | None = None) -> ClassifiedTexts:
    """Reviews of fewer than 400 words: four fifths of those for training, the other fifth, and a fifth of the others.

    The reviews for training are the paper's, 10,652 positive and 10,864 negative. `place` is where data sets lie,
    before $ATTNSCOPE_DATA.
    """
    own = [row for split in ("train", "val") for row in _short(dataset_file("imdb", split, place))]
    parts = shuffled_parts(own, [0] * len(own), {"train": 0.8, "dev": 0.2}, SEED)
    tested = list(_short(dataset_file("imdb", "test", place)))
    parts["test"] = shuffled_parts(tested, [0] * len(tested), {"test": 0.2, "rest": 0.8}, SEED)["test"]
    return classified_texts("imdb", CLASSES, parts)


def review_words(text: str) -> list[str]:
    """The words of a review in lower case, with the apostrophes in them.

    >>> review_words("It isn't good.<br />Not at all!")
    ['it', "isn't", 'good', 'br', 'not', 'at', 'all']
    """
    return text.lower().translate(SEPARATING).split()


def _short(path: Path) -> Iterator[Row]:
    """The reviews of a file that are short enough."""
    cut = ((review_words(text), label) for text, label in reviews(path))
    return ((words, label) for words, label in cut if len(words) < LONGEST)


def reviews(path: Path) -> Iterator[tuple[str, int]]:
    """The reviews of a file as they are, each with the number of its class."""
    rows = numbered_rows(path, "\t", csv.QUOTE_NONE)
    header = next((row for _, row in rows), [])
    for number, cells in rows:
        row = dict(zip(header, cells, strict=False))
        if row.get("label") not in LABELS or "text" not in row:
            raise BadInput(f"Line {number} of {path} is no review with label, id, rating and text.")
        yield row["text"], LABELS[row["label"]]
