"""The SMS Spam Collection (Almeida et al. 2011): short messages that are ham or spam."""

from pathlib import Path

from ...corpora import dataset_file
from ...errors import BadInput
from ...syntax.lines import numbered_lines
from .classified import Row, shuffled_parts, words_of
from .packed import ClassifiedTexts
from .word_level import SEED, word_level_texts

CLASSES = ("ham", "spam")
LEARNED_FROM = 3_500
"""Of the paper's training messages; it does not say which."""


def sms_spam(place: str | Path | None = None) -> ClassifiedTexts:
    """3,500 messages to learn from, and the other 2,000 to look at.

    `place` is where data sets lie, before $ATTNSCOPE_DATA.
    """
    path = dataset_file("sms_spam", "all", place)
    rows: list[Row] = []
    for number, line in numbered_lines(path):
        label, found, text = line.partition("\t")
        if label not in CLASSES or not found:
            raise BadInput(f"Line {number} of {path} is not ham or spam, a tab and a message.")
        if words := words_of(text):
            rows.append((words, CLASSES.index(label)))
    share = min(LEARNED_FROM / max(len(rows), 1), 0.8)
    parts = shuffled_parts(rows, [0] * len(rows), {"train": share, "dev": 1 - share}, SEED)
    return word_level_texts("sms", CLASSES, parts["train"], parts["dev"])
