"""Texts in two classes as Snell et al. 2021 prepare them: words between bos and eos, the rare ones unknown.

Their Table 9 tells that a word is a run of letters, digits and "_" in lower case: of 20 Newsgroups and IMDB these give
its median lengths to the word. Texts are looked at with no more than 4,000 of those that were not learned from.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...corpora import CORPORA, dataset_file
from ...errors import BadInput
from ...syntax.lines import numbered_lines
from ..vocabulary import FRAMED, Vocabulary
from .classified import CLASSES, NEUTRAL, Row, reviews, shuffled_parts, words_of
from .newsgroups import SPORTS, postings
from .packed import ClassifiedTexts, PackedTexts
from .sst_trees import tree_splits

RARE = 3
"""A word that occurs less often than this in training texts is unknown."""
LOOKED_AT = 4_000
SEED = 0
"""Of the texts that are drawn; the authors' choice is not known."""


def word_level_texts(
    name: str, classes: Sequence[str], train: Sequence[Row], held_out: Sequence[Row]
) -> ClassifiedTexts:
    """A data set of texts that are cut into words: `dev` has up to 4,000 of those held out, `test` has all of them.

    Every text begins with bos and ends with eos. The vocabulary is that of training texts, the frequent words first.
    """
    if not train or not held_out:
        raise BadInput(f"The data set {name} has no texts to {'look at' if train else 'learn from'}.")
    counted = Counter(word for words, _ in train for word in words if word not in FRAMED.values())
    kept = sorted((entry for entry in counted.items() if entry[1] >= RARE), key=lambda entry: (-entry[1], entry[0]))
    vocabulary = Vocabulary([word for word, _ in kept], [count for _, count in kept], FRAMED)
    order = np.random.default_rng(SEED).permutation(len(held_out))[:LOOKED_AT]
    looked_at = [held_out[number] for number in sorted(order.tolist())]
    parts = (_packed(vocabulary, rows) for rows in (train, looked_at, held_out))
    return ClassifiedTexts(name, tuple(classes), vocabulary, *parts)


def without_long_numbers(words: Sequence[str]) -> list[str]:
    """The words with unk for whole numbers of several digits.

    >>> without_long_numbers(["in", "1993", "3", "4th"])
    ['in', '[UNK]', '3', '4th']
    """
    return [FRAMED["unk"] if len(word) > 1 and word.isdecimal() else word for word in words]


def word_level_statistics(texts: ClassifiedTexts) -> pd.DataFrame:
    """One row as in the paper's Table 9: median lengths in words without bos and eos, sizes, and the vocabulary.

    The vocabulary counts the special tokens; the paper's also has every word of GloVe, however rare.
    """
    row = {
        "data": texts.name,
        "train_length": float(np.median(texts.train.lengths - 2)),
        "train": len(texts.train),
        "validation_length": float(np.median(texts.dev.lengths - 2)),
        "validation": len(texts.dev),
        "vocabulary": len(texts.vocabulary),
    }
    return pd.DataFrame([row])


def _packed(vocabulary: Vocabulary, rows: Sequence[Row]) -> PackedTexts:
    before, behind = FRAMED["bos"], FRAMED["eos"]
    numbers = [vocabulary.encode([before, *words, behind]) for words, _ in rows]
    return PackedTexts.of(numbers, [label for _, label in rows])


# SST, IMDB and 20 Newsgroups once more, as Snell et al. 2021 prepare them: the official training and test parts.


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


# AG News, world against business (Zhang et al. 2015), from its test part alone.


NEWS = ("world", "business")
NEWS_LABELS = {"1": 0, "3": 1}
"""Classes 2 and 4, sports and technology, are left out."""
NEWS_COLUMNS = 3
NEWS_SHARES = {"train": 0.8, "dev": 0.2}
"""Ours: the paper learns from 60,000 other texts and looks at these 3,800."""


def ag_news(place: str | Path | None = None) -> ClassifiedTexts:
    """Title and description of 3,800 news, split anew; whole numbers of several digits are unknown.

    `place` is where data sets lie, before $ATTNSCOPE_DATA.
    """
    path = dataset_file("ag_news", "test", place)
    rows: list[Row] = []
    for number, row in enumerate(csv.reader(line for _, line in numbered_lines(path)), start=1):
        if len(row) != NEWS_COLUMNS:
            raise BadInput(f"Row {number} of {path} is no class with a title and a description.")
        if row[0] in NEWS_LABELS:
            rows.append((without_long_numbers(words_of(f"{row[1]} {row[2]}")), NEWS_LABELS[row[0]]))
    parts = shuffled_parts(rows, [label for _, label in rows], NEWS_SHARES, SEED)
    return word_level_texts("ag_news", NEWS, parts["train"], parts["dev"])


# Reviews of the Amazon multi-domain sentiment data (Blitzer et al. 2007): books, DVDs, electronics and kitchenware.


AMAZON_LONGEST = 400
"""A review has fewer words than this."""
AMAZON_SHARES = {"train": 8 / 9, "dev": 1 / 9}
"""Those of the paper's 32,514 and 4,000; it does not say how they were chosen."""
AMAZON_TEXT = re.compile(r"<review_text>\s*(.*?)\s*</review_text>", re.DOTALL)


def amazon(place: str | Path | None = None) -> ClassifiedTexts:
    """Reviews of fewer than 400 words: 8,000 before that, where the paper had about 40,000.

    `place` is where data sets lie, before $ATTNSCOPE_DATA.
    """
    rows: list[Row] = []
    for split in CORPORA["amazon"].files:
        label = CLASSES.index(split.partition(".")[2])
        cut = (words_of(text) for text in review_texts(dataset_file("amazon", split, place)))
        rows += [(words, label) for words in cut if 0 < len(words) < AMAZON_LONGEST]
    parts = shuffled_parts(rows, [label for _, label in rows], AMAZON_SHARES, SEED)
    return word_level_texts("amazon", CLASSES, parts["train"], parts["dev"])


def review_texts(path: Path) -> Iterator[str]:
    """What reviewers wrote, from a file that looks like XML without a root; titles and ratings are left out."""
    # the ends of lines are part of the texts
    whole = "\n".join(line for _, line in numbered_lines(path))
    reviews = whole.count("<review>")
    texts = AMAZON_TEXT.findall(whole)
    if not reviews or len(texts) != reviews:
        raise BadInput(f"{path} has {reviews} reviews and {len(texts)} texts between <review_text> and its end.")
    yield from texts


# The SMS Spam Collection (Almeida et al. 2011): short messages that are ham or spam.


MESSAGES = ("ham", "spam")
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
        if label not in MESSAGES or not found:
            raise BadInput(f"Line {number} of {path} is not ham or spam, a tab and a message.")
        if words := words_of(text):
            rows.append((words, MESSAGES.index(label)))
    share = min(LEARNED_FROM / max(len(rows), 1), 0.8)
    parts = shuffled_parts(rows, [0] * len(rows), {"train": share, "dev": 1 - share}, SEED)
    return word_level_texts("sms", MESSAGES, parts["train"], parts["dev"])


# Reviews of the Yelp Open Dataset, as its users have it.


BAD, GOOD = 2, 4
"""A review has at most so many stars, or at least so many."""
YELP_REVIEWS = 92_821
YELP_SHARES = {"train": 88_821 / 92_821, "dev": 4_000 / 92_821}
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
        if len(rows) == YELP_REVIEWS:
            break
    parts = shuffled_parts(rows, [0] * len(rows), YELP_SHARES, SEED)
    return word_level_texts("yelp", CLASSES, parts["train"], parts["dev"])
