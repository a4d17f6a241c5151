"""CLASSIFIED: texts in classes as Sun & Lu 2020 prepare them, each data set a row; and what a paper's rows are made of.

As Sun & Lu have it, the vocabulary is that of training, validation and test texts together: a word that is only in the
last two keeps the vector it began with, and nothing is unknown.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from ...errors import BadInput
from ..vocabulary import Vocabulary
from .labelled import Labelled, read_data_set
from .packed import PARTS, ClassifiedTexts, PackedTexts

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]"}
CLASSES = ("negative", "positive")
Row = tuple[Sequence[str], int]
"""The words of a text, and the number of its class."""
Parts = Mapping[str, Sequence[Row]]
Shares = Mapping[str, int | float]
"""Which share of some texts each part gets."""


@dataclass(frozen=True)
class Deal:
    """The splits of a data set whose texts are dealt out together, and the parts they go to."""

    splits: Sequence[str]
    shares: Shares | Callable[[int], Shares]
    """The same for all numbers of texts, or a function of their number."""
    by_class: bool = False
    """Whether every part gets its share of each class, and not only of all."""


def whole(**splits: Sequence[str]) -> tuple[Deal, ...]:
    """Each part, by its name, from all texts of its own splits, in their order."""
    return tuple(Deal(of, {part: 1.0}) for part, of in splits.items())


@dataclass(frozen=True)
class TextSet:
    """A data set as a paper prepares it: `text_set(place)` reads it, looked for in `place` before $ATTNSCOPE_DATA."""

    name: str
    corpus: str
    """Its name in `CORPORA`, which has its files, its reader, its labels and its licence."""
    classes: tuple[str, ...]
    """Those of its classes that the paper tells apart, negative before positive where there are two."""
    words: Callable[[str], Sequence[str]]
    """Cuts a text into words."""
    deals: tuple[Deal, ...]
    finish: Callable[[str, Sequence[str], Parts], ClassifiedTexts]
    """Makes the data set from its name, its classes and its parts."""
    seed: int = 0
    """Of how texts are dealt out; the authors' order of texts, and so their split, is not known."""
    shortest: int = 0
    shorter_than: int | float = float("inf")
    """How many words a text has."""
    most: int | None = None
    """How many of the texts that fit are taken."""

    def __call__(self, place: str | Path | None = None) -> ClassifiedTexts:
        """Read it from its files."""
        return self.prepare(lambda split: read_data_set(self.corpus, split, place))

    def prepare(self, read: Callable[[str], Iterable[Labelled]]) -> ClassifiedTexts:
        """Make it from what `read` gives for each split."""
        parts: dict[str, list[Row]] = {}
        for deal in self.deals:
            cut = (
                (self.words(item.text), self.classes.index(item.label))
                for split in deal.splits
                for item in read(split)
                if item.label in self.classes
            )
            rows = list(islice((row for row in cut if self.shortest <= len(row[0]) < self.shorter_than), self.most))
            shares = deal.shares(len(rows)) if callable(deal.shares) else deal.shares
            groups = [label if deal.by_class else 0 for _, label in rows]
            parts |= shuffled_parts(rows, groups, shares, self.seed)
        return self.finish(self.name, self.classes, parts)


def shuffled_parts(rows: Sequence[Row], groups: Sequence[int], shares: Shares, seed: int) -> dict[str, list[Row]]:
    """Texts dealt out at random, its share of all to each part; each in the order they came in.

    Each group is dealt out by itself: if it is the class of the texts, every part has its share of each class. A part
    of a text goes to the next part; the last part gets what is left.
    """
    dealt: dict[str, list[int]] = {part: [] for part in shares}
    for group in sorted(set(groups)):
        members = np.array([number for number, own in enumerate(groups) if own == group])
        order = np.random.default_rng([seed, group]).permutation(members)
        # the sum of shares may come out a little below a whole number of texts
        ends = np.floor(np.cumsum([share * len(order) for share in shares.values()]) + 1e-6).astype(int)[:-1]
        for part, numbers in zip(shares, np.split(order, ends), strict=True):
            dealt[part].extend(numbers.tolist())
    return {part: [rows[number] for number in sorted(numbers)] for part, numbers in dealt.items()}


def classified_texts(name: str, classes: Sequence[str], parts: Parts) -> ClassifiedTexts:
    """A data set of texts that are cut into words already; one without words is left out.

    The words are numbered by how often they occur in all parts, in alphabetical order where that is equal.
    """
    kept = {part: [row for row in parts[part] if row[0]] for part in PARTS}
    if empty := [part for part, rows in kept.items() if not rows]:
        raise BadInput(f"The data set {name} has no texts with words for {empty[0]}.")
    vocabulary = Vocabulary.of((words for rows in kept.values() for words, _ in rows), special=SPECIAL)
    packed = (
        PackedTexts.of([vocabulary.encode(words) for words, _ in rows], [label for _, label in rows])
        for rows in kept.values()
    )
    return ClassifiedTexts(name, tuple(classes), vocabulary, *packed)


def text_statistics(texts: ClassifiedTexts) -> pd.DataFrame:
    """One row as in the paper's Table 1: mean length, words, and the texts of each class in each part.

    Sizes name the last class first, so that of two classes it is positive/negative as in the paper. The paper's number
    of words counts three special tokens; this one counts none.
    """
    parts = {part: getattr(texts, part) for part in PARTS}
    lengths = np.concatenate([packed.lengths for packed in parts.values()])
    order = range(len(texts.classes)) if len(texts.classes) > 2 else (1, 0)
    sizes = {
        part: "/".join(str(int((packed.labels == label).sum())) for label in order) for part, packed in parts.items()
    }
    row = {"data": texts.name, "mean_length": float(lengths.mean()), "words": len(texts.vocabulary.words), **sizes}
    return pd.DataFrame([row])


# How texts are cut into words.


WORD = re.compile(r"\w+")
SEPARATING = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n', " "))
"""Signs that end a word: all punctuation but the apostrophe. A line break, `<br />`, is the word br."""
NUMBER = "qqq"
"""What stands for every word of a posting with a digit in it."""
ANNOUNCES = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from")
"""A line that says who is quoted."""
QUOTED = ("|", ">")


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; punctuation stands for a space, also within a word.

    On SST this gives just the authors' 16,171 words, as splitting with spaCy and stripping punctuation gave them.

    >>> words_of("It's a well-made film (8 1/2).")
    ['it', 's', 'a', 'well', 'made', 'film', '8', '1', '2']
    """
    return WORD.findall(text.lower())


def review_words(text: str) -> list[str]:
    """The words of a review in lower case, with the apostrophes in them, as the index of Keras has them.

    >>> review_words("It isn't good.<br />Not at all!")
    ['it', "isn't", 'good', 'br', 'not', 'at', 'all']
    """
    return text.lower().translate(SEPARATING).split()


def posting_words(posting: str) -> list[str]:
    r"""The words that the author of a posting wrote; one with a digit in it is "qqq".

    >>> posting_words("Subject: Score\n\nIt was 3-2, on the 4th!")
    ['it', 'was', 'qqq', 'qqq', 'on', 'the', 'qqq']
    """
    return [NUMBER if any(sign.isdigit() for sign in word) else word for word in words_of(own_text(posting))]


def own_text(posting: str) -> str:
    r"""A posting without headers, signature and quotes, as in scikit-learn's `remove=`.

    Headers end at the first empty line. A signature is what stands behind the last line that is empty or a rule of
    dashes, if anything is before it. A quote is a line that is marked as such, or says that a quote follows.

    >>> own_text("From: me\n\nYou wrote:\n> Who won?\nWe did.\n\n--\nMy name")
    'We did.\n'
    """
    text = posting.partition("\n\n")[2]
    lines = text.strip().split("\n")
    breaks = [number for number, line in enumerate(lines) if not line.strip().strip("-")]
    lines = lines[: breaks[-1]] if breaks and breaks[-1] > 0 else text.split("\n")
    return "\n".join(line for line in lines if not line.startswith(QUOTED) and not ANNOUNCES.search(line))


SPORTS = ("baseball", "hockey")
"""Negative and positive in the paper."""
CLASSIFIED: Mapping[str, TextSet] = {
    made.name: made
    for made in (
        # the sentences that are not neutral, 6,920, 872 and 1,821 of them, in the parts of the treebank
        TextSet("sst", "sst", CLASSES, words_of, whole(train=["train"], dev=["dev"], test=["test"]), classified_texts),
        # the reviews for training are the paper's, 10,652 positive and 10,864 negative
        TextSet(
            "imdb",
            "imdb",
            CLASSES,
            review_words,
            (Deal(["train", "val"], {"train": 0.8, "dev": 0.2}), Deal(["test"], {"test": 0.2, "rest": 0.8})),
            classified_texts,
            seed=1378,
            shorter_than=400,
        ),
        # both parts of the official split together
        TextSet(
            "20news1",
            "20news",
            SPORTS,
            posting_words,
            (Deal(["train", "test"], {"train": 0.64, "dev": 0.16, "test": 0.20}, by_class=True),),
            classified_texts,
            seed=13478,
            shortest=1,
        ),
        # the shares are those of Table 1; the paper does not say how it split
        TextSet(
            "20news2",
            "20news",
            ("motorcycles", "medicine", "guns"),
            posting_words,
            (Deal(["train", "test"], {"train": 2300 / 2814, "dev": 240 / 2814, "test": 274 / 2814}, by_class=True),),
            classified_texts,
            seed=13478,
            shortest=1,
        ),
    )
}
"""The data sets of Sun & Lu 2020, Table 1."""


# Made-up sentences in which only two words tell the class: the synthetic study of Sun & Lu 2020, supplement.


HELD_OUT = 6
"""Validation and test have one text for so many training texts."""


def synthetic_polarity(
    *,
    texts: int = 12_000,
    polar: int = 50,
    neutral: int = 1_000,
    polar_words: int = 2,
    neutral_words: int = 10,
    swapped: int | float = 0.0,
    positive_share: int | float = 0.5,
    seed: int = 0,
) -> ClassifiedTexts:
    """Sentences of neutral words and words of their class, none of them twice, in any order.

    The defaults are the paper's data I. `swapped` is the share of sentences whose polar words are of the other class
    (data II; its rate is not published), `positive_share` that of positive sentences (below or above a half: skewed).
    `polar` is how many words each class has. Validation and test are drawn in the same way.
    """
    if polar < polar_words or neutral < neutral_words or texts < HELD_OUT * len(CLASSES):
        raise BadInput(
            f"{texts} sentences of {polar_words} polar and {neutral_words} neutral words cannot be made from {polar}"
            f" and {neutral} words: there must be enough words, and at least {HELD_OUT * len(CLASSES)} sentences."
        )
    if not 0 <= swapped <= 1 or not 0 < positive_share < 1:
        raise BadInput(f"Shares are between 0 and 1: swapped is {swapped} and positive_share {positive_share}.")
    words = {name: np.array([f"{name}{number}" for number in range(polar)]) for name in CLASSES}
    filling = np.array([f"neutral{number}" for number in range(neutral)])

    def sentences(part: int, count: int) -> Iterator[Row]:
        random = np.random.default_rng([seed, part])
        positive = min(max(round(count * positive_share), 1), count - 1)
        for label in random.permutation(np.arange(count) < positive):
            polarity = bool(label) != bool(random.random() < swapped)
            pieces = [
                random.choice(words[CLASSES[int(polarity)]], polar_words, replace=False),
                random.choice(filling, neutral_words, replace=False),
            ]
            yield random.permutation(np.concatenate(pieces)).tolist(), int(label)

    sizes = {"train": texts, "dev": texts // HELD_OUT, "test": texts // HELD_OUT}
    parts = {name: list(sentences(part, size)) for part, (name, size) in enumerate(sizes.items())}
    return classified_texts("synthetic", CLASSES, parts)


def toy_polarity(seed: int = 0) -> ClassifiedTexts:
    """The same so small that a model learns it in a moment: 240 sentences of eight words out of sixty."""
    return synthetic_polarity(texts=240, polar=10, neutral=40, neutral_words=6, seed=seed)
