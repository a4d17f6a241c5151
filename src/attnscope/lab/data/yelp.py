"""Reviews of the Yelp Open Dataset, as its users have it."""

import json
from pathlib import Path

from ...errors import BadInput
from ...syntax.lines import numbered_lines
from .classified import Row, shuffled_parts, words_of
from .packed import ClassifiedTexts
from .word_level import SEED, word_level_texts

CLASSES = ("negative", "positive")
BAD, GOOD = 2, 4
"""A review has at most so many stars, or at least so many."""
MOST = 92_821
SHARES = {"train": 88_821 / 92_821, "dev": 4_000 / 92_821}
"""The sizes in the paper's Table 9; its text speaks of 20,000 reviews."""


def yelp(file: str | Path) -> ClassifiedTexts:
    """The first 92,821 reviews that are bad or good.

    The file is yelp_academic_dataset_review.json of the data set, as it is or packed as .gz: in each line JSON with
    "stars", a number from 1 to 5, and "text".
    """
    rows: list[Row] = []
    for number, line in numbered_lines(Path(file)):
        try:
            review = json.loads(line)
            stars, words = float(review["stars"]), words_of(str(review["text"]))
        except (json.JSONDecodeError, KeyError, TypeError, ValueError):
            raise BadInput(f'Line {number} of {file} is no JSON with "stars" and "text".') from None
        if words and not BAD < stars < GOOD:
            rows.append((words, int(stars >= GOOD)))
        if len(rows) == MOST:
            break
    parts = shuffled_parts(rows, [0] * len(rows), SHARES, SEED)
    return word_level_texts("yelp", CLASSES, parts["train"], parts["dev"])
