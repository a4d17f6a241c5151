"""SST, IMDB and 20 Newsgroups once more, as Snell et al. 2021 prepare them: the official training and test parts."""

from pathlib import Path

from ...corpora import dataset_file
from .classified import words_of
from .imdb import CLASSES, reviews
from .newsgroups import SPORTS, postings
from .packed import ClassifiedTexts
from .sst_binary import NEUTRAL
from .sst_trees import tree_splits
from .word_level import without_long_numbers, word_level_texts


def sst_words(place: str | Path | None = None) -> ClassifiedTexts:
    """The sentences of the treebank that are not neutral: 6,920 to learn from and 1,821 to look at.

    The paper has 5,130 and 1,421, and does not say which. `place` is where data sets lie, before $ATTNSCOPE_DATA.
    """
    trees = tree_splits("sst", place)
    train, held_out = (
        [(words_of(" ".join(tree.words)), int(tree.label > NEUTRAL)) for tree in trees[part] if tree.label != NEUTRAL]
        for part in ("train", "test")
    )
    return word_level_texts("sst", CLASSES, train, held_out)


def imdb_words(place: str | Path | None = None) -> ClassifiedTexts:
    """All reviews, however long: 25,000 to learn from, and 4,000 of the others to look at."""
    parts = {
        part: [(words_of(text), label) for text, label in reviews(dataset_file("imdb", part, place))]
        for part in ("train", "val", "test")
    }
    return word_level_texts("imdb", CLASSES, [*parts["train"], *parts["val"]], parts["test"])


def newsgroups_words(place: str | Path | None = None) -> ClassifiedTexts:
    """Baseball against hockey: 1,197 postings to learn from, 796 to look at, with their headers.

    With headers (and "_" as a letter) their median lengths are the paper's, 183 and 207 words. Words are parted at "_",
    and whole numbers of several digits are unknown.
    """
    labels = {group: number for number, group in enumerate(SPORTS.values())}
    train, held_out = (
        [
            (without_long_numbers(words_of(text.replace("_", " "))), labels[group])
            for group, text in postings(dataset_file("20news", part, place))
            if group in labels
        ]
        for part in ("train", "test")
    )
    return word_level_texts("20news", tuple(SPORTS), train, held_out)
