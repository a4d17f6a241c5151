"""The Stanford Sentiment Treebank as negative or positive sentences, cut into words as Sun & Lu 2020 have it."""

from pathlib import Path

from .classified import PARTS, classified_texts, words_of
from .packed import ClassifiedTexts
from .sst_trees import tree_splits

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
