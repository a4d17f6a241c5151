"""Film reviews of IMDB that are not long, cut into words as the index of Keras is, which Sun & Lu 2020 used."""

import csv
from collections.abc import Iterator
from pathlib import Path

from ...corpora import dataset_file
from ...errors import BadInput
from ...syntax.lines import numbered_rows
from .classified import Row, classified_texts, shuffled_parts
from .packed import ClassifiedTexts

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
