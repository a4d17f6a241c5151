"""Reviews of the Amazon multi-domain sentiment data (Blitzer et al. 2007): books, DVDs, electronics and kitchenware."""

import re
from collections.abc import Iterator
from pathlib import Path

from ...corpora import CORPORA, dataset_file
from ...errors import BadInput
from ...syntax.lines import numbered_lines
from .classified import Row, shuffled_parts, words_of
from .packed import ClassifiedTexts
from .word_level import SEED, word_level_texts

CLASSES = ("negative", "positive")
LONGEST = 400
"""A review has fewer words than this."""
SHARES = {"train": 8 / 9, "dev": 1 / 9}
"""Those of the paper's 32,514 and 4,000; it does not say how they were chosen."""
TEXT = re.compile(r"<review_text>\s*(.*?)\s*</review_text>", re.DOTALL)


def amazon(place: str | Path | None = None) -> ClassifiedTexts:
    """Reviews of fewer than 400 words: 8,000 before that, where the paper had about 40,000.

    `place` is where data sets lie, before $ATTNSCOPE_DATA.
    """
    rows: list[Row] = []
    for split in CORPORA["amazon"].files:
        label = CLASSES.index(split.partition(".")[2])
        cut = (words_of(text) for text in review_texts(dataset_file("amazon", split, place)))
        rows += [(words, label) for words in cut if 0 < len(words) < LONGEST]
    parts = shuffled_parts(rows, [label for _, label in rows], SHARES, SEED)
    return word_level_texts("amazon", CLASSES, parts["train"], parts["dev"])


def review_texts(path: Path) -> Iterator[str]:
    """What reviewers wrote, from a file that looks like XML without a root; titles and ratings are left out."""
    # the ends of lines are part of the texts
    whole = "\n".join(line for _, line in numbered_lines(path))
    reviews = whole.count("<review>")
    texts = TEXT.findall(whole)
    if not reviews or len(texts) != reviews:
        raise BadInput(f"{path} has {reviews} reviews and {len(texts)} texts between <review_text> and its end.")
    yield from texts
