"""Texts with one of two labels: the Stanford Sentiment Treebank without its neutral sentences, or JSON lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from ..corpora import CORPORA, dataset_file
from ..errors import BadInput
from ..syntax.lines import numbered_json, numbered_lines

POLARITY = {"0": "negative", "1": "negative", "3": "positive", "4": "positive"}
"""What the label of a whole sentence means; 2 is neutral and left out."""
LEAF = re.compile(r"\([0-4] ([^()]+)\)")
ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
SHARES = 10
"""Of so many parts of a file without splits, decided by the text alone, the first validates and the second tests."""


@dataclass(frozen=True)
class Labelled:
    """A text and its label."""

    text: str
    label: str


def read_trees(path: str | Path) -> Iterator[Labelled]:
    """Yield the sentences of a file of sentiment trees that are not neutral, words apart as the treebank has them."""
    for number, line in numbered_lines(Path(path)):
        words = LEAF.findall(line)
        if not line.startswith("(") or not words:
            raise BadInput(f"Line {number} of {path} is no tree with a sentiment at each node.")
        if line[1] in POLARITY:
            text = " ".join(ESCAPED.get(word, word).replace("\\/", "/") for word in words)
            yield Labelled(text, POLARITY[line[1]])


def read_labelled(path: str | Path) -> Iterator[Labelled]:
    """Yield the texts of a JSON-lines file with "text" and "label"."""
    what = 'JSON with "text" and "label"'
    for number, row in numbered_json(Path(path), what):
        if (
            not isinstance(row, dict)
            or not isinstance(row.get("text"), str)
            or not isinstance(row.get("label"), str | int)
        ):
            raise BadInput(f"Line {number} of {path} is not {what}.")
        yield Labelled(row["text"], str(row["label"]))


def labelled_splits(data: str, place: str | Path | None = None) -> dict[str, list[Labelled]]:
    """Training, validation ("dev") and test texts of a data set by name, or of a JSON-lines file.

    `place` is where data sets lie, before $ATTNSCOPE_DATA.
    """
    if data in CORPORA:
        if CORPORA[data].kind != "sentiment trees":
            raise BadInput(f"{data} has no texts with one of two labels: give sst, or JSON lines with text and label.")
        return {split: list(read_trees(dataset_file(data, split, place))) for split in ("train", "dev", "test")}
    if not Path(data).is_file():
        raise BadInput(f"There is no data set or file {data!r}: give sst, or JSON lines with text and label.")
    splits: dict[str, list[Labelled]] = {"train": [], "dev": [], "test": []}
    for item in read_labelled(data):
        share = crc32(item.text.encode()) % SHARES
        splits[{0: "dev", 1: "test"}.get(share, "train")].append(item)
    if not all(splits.values()):
        raise BadInput(f"{data} has too few texts to train, validate and test on: give at least a hundred.")
    return splits
