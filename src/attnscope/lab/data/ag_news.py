"""AG News, world against business (Zhang et al. 2015), from its test part alone."""

import csv
from pathlib import Path

from ...corpora import dataset_file
from ...errors import BadInput
from ...syntax.lines import numbered_lines
from .classified import Row, shuffled_parts, words_of
from .packed import ClassifiedTexts
from .word_level import SEED, without_long_numbers, word_level_texts

CLASSES = ("world", "business")
LABELS = {"1": 0, "3": 1}
"""Classes 2 and 4, sports and technology, are left out."""
COLUMNS = 3
SHARES = {"train": 0.8, "dev": 0.2}
"""Ours: the paper learns from 60,000 other texts and looks at these 3,800."""


def ag_news(place: str | Path | None = None) -> ClassifiedTexts:
    """Title and description of 3,800 news, split anew; whole numbers of several digits are unknown.

    `place` is where data sets lie, before $ATTNSCOPE_DATA.
    """
    path = dataset_file("ag_news", "test", place)
    rows: list[Row] = []
    for number, row in enumerate(csv.reader(line for _, line in numbered_lines(path)), start=1):
        if len(row) != COLUMNS:
            raise BadInput(f"Row {number} of {path} is no class with a title and a description.")
        if row[0] in LABELS:
            rows.append((without_long_numbers(words_of(f"{row[1]} {row[2]}")), LABELS[row[0]]))
    parts = shuffled_parts(rows, [label for _, label in rows], SHARES, SEED)
    return word_level_texts("ag_news", CLASSES, parts["train"], parts["dev"])
