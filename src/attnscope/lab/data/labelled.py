"""Texts with a label each: those of the data sets in `CORPORA`, by the layout of their files, or of JSON lines."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from ...corpora import CORPORA, Layout, dataset_file
from ...errors import BadInput
from ...syntax.lines import numbered_json, numbered_lines, numbered_rows
from .sst_trees import read_sentiment_trees

NEWS_COLUMNS = 3
REVIEW_TEXT = re.compile(r"<review_text>\s*(.*?)\s*</review_text>", re.DOTALL)
SHARES = 10
"""Of so many parts of a file without splits, decided by the text alone, the first validates and the second tests."""


@dataclass(frozen=True)
class Labelled:
    """A text and its label."""

    text: str
    label: str


def _trees(path: Path) -> Iterator[Labelled]:
    """SST: sentences with words apart as the treebank has them; labels from 0 to 4."""
    for tree in read_sentiment_trees(path):
        yield Labelled(" ".join(tree.words), str(tree.label))


def _reviews(path: Path) -> Iterator[Labelled]:
    """IMDB: a table with label, id, rating and text."""
    rows = numbered_rows(path, "\t", csv.QUOTE_NONE)
    header = next((row for _, row in rows), [])
    for number, cells in rows:
        row = dict(zip(header, cells, strict=False))
        if row.get("label") not in {"neg", "pos"} or "text" not in row:
            raise BadInput(f"Line {number} of {path} is no review with label, id, rating and text.")
        yield Labelled(row["text"], row["label"])


def _postings(path: Path) -> Iterator[Labelled]:
    """20 Newsgroups: JSON lines; the label is the group."""
    for number, line in numbered_lines(path):
        try:
            row = json.loads(line)
            yield Labelled(str(row["text"]), str(row["group"]))
        except (json.JSONDecodeError, KeyError, TypeError):
            raise BadInput(f'Line {number} of {path} is no JSON with "group" and "text".') from None


def _news(path: Path) -> Iterator[Labelled]:
    """AG News: class, title and description."""
    for number, row in enumerate(csv.reader(line for _, line in numbered_lines(path)), start=1):
        if len(row) != NEWS_COLUMNS:
            raise BadInput(f"Row {number} of {path} is no class with a title and a description.")
        yield Labelled(f"{row[1]} {row[2]}", row[0])


def _tagged_reviews(path: Path) -> Iterator[Labelled]:
    """Amazon: what looks like XML without a root, titles and ratings left out; the name of the file has the label."""
    # the ends of lines are part of the texts
    whole = "\n".join(line for _, line in numbered_lines(path))
    reviews, texts = whole.count("<review>"), REVIEW_TEXT.findall(whole)
    if not reviews or len(texts) != reviews:
        raise BadInput(f"{path} has {reviews} reviews and {len(texts)} texts between <review_text> and its end.")
    return (Labelled(text, path.name.split(".")[1]) for text in texts)


def _tagged_lines(path: Path) -> Iterator[Labelled]:
    """SMS Spam Collection: a label, a tab and a message."""
    for number, line in numbered_lines(path):
        label, tab, text = line.partition("\t")
        if label not in {"ham", "spam"} or not tab:
            raise BadInput(f"Line {number} of {path} is not ham or spam, a tab and a message.")
        yield Labelled(text, label)


LAYOUTS: Mapping[Layout, Callable[[Path], Iterator[Labelled]]] = {
    "trees": _trees,
    "reviews": _reviews,
    "postings": _postings,
    "news": _news,
    "tagged reviews": _tagged_reviews,
    "tagged lines": _tagged_lines,
}
"""The reader of each layout that a data set may have its texts and labels in."""


def read_data_set(name: str, split: str, place: str | Path | None = None) -> Iterator[Labelled]:
    """Yield the texts of one split of a data set, each with its class; texts of no class are left out.

    Data sets are looked for in `place` before $ATTNSCOPE_DATA.
    """
    labels = CORPORA[name].labels
    if labels is None:
        raise BadInput(f"The texts of {name} have no labels.")
    for item in LAYOUTS[labels.layout](dataset_file(name, split, place)):
        if item.label in labels.classes:
            yield Labelled(item.text, labels.classes[item.label])


def read_json_lines(path: str | Path) -> Iterator[Labelled]:
    """Yield the texts of a JSON-lines file with "text" and "label"."""
    what = 'JSON with "text" and "label"'
    for number, row in numbered_json(Path(path), what):
        match row:
            case {"text": str(text), "label": str() | int() as label}:
                yield Labelled(text, str(label))
            case _:
                raise BadInput(f"Line {number} of {path} is not {what}.")


def labelled_splits(data: str, place: str | Path | None = None) -> dict[str, list[Labelled]]:
    """Training, validation ("dev") and test texts of a data set by name, or of a JSON-lines file.

    Data sets are looked for in `place` before $ATTNSCOPE_DATA.
    """
    if data in CORPORA:
        if data not in THREE_SPLITS:
            raise BadInput(
                f"{data} has no texts with one of two labels in three splits: give {' or '.join(THREE_SPLITS)},"
                " or JSON lines with text and label."
            )
        return {part: list(read_data_set(data, split, place)) for part, split in THREE_SPLITS[data].items()}
    if not Path(data).is_file():
        raise BadInput(
            f"There is no data set or file {data!r}: give {' or '.join(THREE_SPLITS)}, or JSON lines with text and"
            " label."
        )
    splits: dict[str, list[Labelled]] = {"train": [], "dev": [], "test": []}
    for item in read_json_lines(data):
        share = crc32(item.text.encode()) % SHARES
        splits[{0: "dev", 1: "test"}.get(share, "train")].append(item)
    if not all(splits.values()):
        raise BadInput(f"{data} has too few texts to train, validate and test on: give at least a hundred.")
    return splits


THREE_SPLITS = {
    name: {"train": "train", "dev": dev, "test": "test"}
    for name, entry in CORPORA.items()
    for dev in ("dev", "val")
    if entry.labels is not None and {"train", dev, "test"} <= entry.files.keys()
}
"""The data sets that texts with labels are learned, validated and tested from, and their split of each part."""
