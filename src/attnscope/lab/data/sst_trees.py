"""The Stanford Sentiment Treebank with all it knows: a label from 0 (very negative) to 4 for each phrase and word."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...corpora import CORPORA, dataset_file
from ...errors import BadInput
from ...syntax.lines import numbered_lines

SPLITS = ("train", "dev", "test")
ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
"""How the treebank writes brackets that are words."""
PIECE = re.compile(r" *(?:\(([0-4])(?=[ (])|([^ ()]+)|(\)))")
"""A bracket with a label, a word, or a closing bracket; a space that does not break is part of a word ("8 1/2")."""


@dataclass(frozen=True)
class Phrase:
    """Words `start` to `end` (without `end`) of a sentence, and their label."""

    start: int
    end: int
    label: int


@dataclass(frozen=True)
class SentimentTree:
    """A sentence with the labels of all its phrases: single words among them, the whole sentence last.

    >>> tree = parse_tree("(3 (2 It) (4 (2 's) (3 good)))")
    >>> tree.words, tree.label, tree.word_labels
    (('It', "'s", 'good'), 3, (2, 2, 3))
    """

    words: tuple[str, ...]
    phrases: tuple[Phrase, ...]

    @property
    def label(self) -> int:
        """The label of the whole sentence."""
        return self.phrases[-1].label

    @property
    def word_labels(self) -> tuple[int, ...]:
        """The label of each word by itself."""
        alone = {phrase.start: phrase.label for phrase in reversed(self.phrases) if phrase.end == phrase.start + 1}
        return tuple(alone[place] for place in range(len(self.words)))


def parse_tree(line: str) -> SentimentTree:
    """The tree that a line in brackets writes down, words as they are read and not as the treebank escapes them.

    Raises:
        BadInput: If a bracket or a label is missing.
    """
    words: list[str] = []
    phrases: list[Phrase] = []
    opened: list[tuple[int, int]] = []
    place = 0
    line = line.strip()
    while place < len(line):
        piece = PIECE.match(line, place)
        if piece is None or (phrases and not opened):
            raise BadInput(f"{line!r} is no tree with a sentiment from 0 to 4 at each node.")
        label, word, closing = piece.groups()
        if label is not None:
            opened.append((len(words), int(label)))
        elif word is not None and opened:
            words.append(ESCAPED.get(word, word).replace("\\/", "/"))
        elif closing and opened and len(words) > opened[-1][0]:
            start, known = opened.pop()
            phrases.append(Phrase(start, len(words), known))
        else:
            raise BadInput(f"{line!r} is no tree with a sentiment from 0 to 4 at each node.")
        place = piece.end()
    alone = {phrase.start for phrase in phrases if phrase.end == phrase.start + 1}
    if opened or not phrases or len(alone) < len(words):
        raise BadInput(f"{line!r} is no tree with a sentiment from 0 to 4 at each node.")
    return SentimentTree(tuple(words), tuple(phrases))


def read_sentiment_trees(path: str | Path) -> Iterator[SentimentTree]:
    """Yield the trees of a file with one to a line, packed as .gz or not."""
    for number, line in numbered_lines(Path(path)):
        try:
            yield parse_tree(line)
        except BadInput as error:
            raise BadInput(f"Line {number} of {path}: {error}") from None


def tree_splits(data: str | Path = "sst", place: str | Path | None = None) -> dict[str, list[SentimentTree]]:
    """Training, validation ("dev") and test trees of a data set by its name, or of a folder laid out like SST.

    Data sets are looked for in `place` before $ATTNSCOPE_DATA.
    """
    if str(data) in CORPORA:
        if CORPORA[str(data)].kind != "sentiment trees":
            raise BadInput(f"{data} has no sentiment trees: give sst, or a folder with such trees.")
        files = {split: dataset_file(str(data), split, place) for split in SPLITS}
    else:
        files = {split: _file(Path(data), split) for split in SPLITS}
    splits = {split: list(read_sentiment_trees(path)) for split, path in files.items()}
    if empty := [split for split, trees in splits.items() if not trees]:
        raise BadInput(f"There is no tree in {files[empty[0]]}.")
    return splits


def _file(folder: Path, split: str) -> Path:
    found = [path for name in (f"{split}.txt", f"{split}.txt.gz") if (path := folder / name).is_file()]
    if not found:
        raise BadInput(f"There is no data set or folder {str(folder)!r} with {split}.txt: give sst, or such a folder.")
    return found[0]
