"""The sentences and stories of a scale, and what raters say of words: SST, SEND and Warriner's norms, or our toys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ...evaluation.lexicons import NEGATIVE, POSITIVE, Lexicon, read_lexicon
from ...lab.data.sst_trees import SentimentTree, parse_tree, tree_splits
from ...lab.data.story import NAME as STAND_IN
from ...lab.data.story import Story, read_send, standin_stories

EXTREMES = {0: NEGATIVE, 4: POSITIVE}
"""The labels of single words that make them very negative or very positive, as SST's raters have them."""
TOY = "a toy treebank of attnscope's own"
SEND = "SEND"


@dataclass(frozen=True)
class Sentences:
    """What is learned from and looked at, and the words' valences."""

    name: str
    splits: Mapping[str, Sequence[SentimentTree]]
    lexicon: Lexicon

    @property
    def tags(self) -> dict[str, str]:
        """Very negative and very positive words in lower case, by the labels of single words in the test sentences.

        A word that has several labels, by its capitals, has none of the two.
        """
        labels: dict[str, set[int]] = {}
        for tree in self.splits["test"]:
            for word, label in zip(tree.words, tree.word_labels, strict=True):
                labels.setdefault(word.lower(), set()).add(label)
        alone = {word: min(known) for word, known in labels.items() if len(known) == 1}
        return {word: EXTREMES[label] for word, label in alone.items() if label in EXTREMES}


def sentences_of(*, toy: bool, corpus: str | None, lexicon: str, data: str | Path | None) -> Sentences:
    """SST or a toy, or a folder laid out like SST, with the valences of a lexicon."""
    if toy and corpus is None:
        splits = {"train": toy_trees(300, 0), "dev": toy_trees(80, 1), "test": toy_trees(60, 2)}
        return Sentences(TOY, splits, read_lexicon(VALENCES))
    splits = tree_splits(corpus or "sst", data)
    return Sentences("SST" if corpus is None else Path(corpus).name, splits, read_lexicon(lexicon, data))


@dataclass(frozen=True)
class Stories:
    """What is learned from and looked at over time; `name` is SEND's, or says that they are a stand-in."""

    name: str
    splits: Mapping[str, Sequence[Story]]


def stories_of(sentences: Sentences, send: str | Path | None, *, toy: bool) -> Stories | None:
    """SEND where its folder is given, or else a stand-in in a trial; none otherwise."""
    if send is not None:
        return Stories(SEND, read_send(send))
    if not toy:
        return None
    sizes = {"train": 30, "dev": 8, "test": 8}
    made = {
        split: standin_stories(sentences.splits[split], count, windows=8, seed=seed)
        for seed, (split, count) in enumerate(sizes.items())
    }
    return Stories(STAND_IN, made)


# A toy treebank for trials: sentences of a few words whose feeling is that of the words in them, written here.


WORDS = {
    0: "awful horrible disgusting hateful miserable ghastly".split(),
    1: "dull weak slow clumsy boring tired".split(),
    2: "film story plot actor scene director ending camera".split(),
    3: "nice warm clever fresh funny sweet".split(),
    4: "wonderful brilliant superb delightful gorgeous marvellous".split(),
}
"""Words by their label."""
SMALL = "a the this is and with its of".split()
"""Words that say nothing, and have the label 2."""
VALENCES = {word: 1.0 + 2 * label + 0.1 * place for label, words in WORDS.items() for place, word in enumerate(words)}
"""What a rater would say of each word, from 1 to 9."""


def toy_trees(count: int, seed: int) -> list[SentimentTree]:
    """So many sentences, always the same for a seed."""
    dice = Random(f"toy {seed}")
    return [_tree(dice) for _ in range(count)]


def _tree(dice: Random) -> SentimentTree:
    label = dice.randrange(5)
    felt = [dice.choice(WORDS[label]) for _ in range(dice.randint(1, 2))]
    things = [dice.choice(WORDS[2]) for _ in range(dice.randint(1, 2))]
    words = [(word, label) for word in felt] + [(word, 2) for word in things]
    words += [(dice.choice(SMALL), 2) for _ in range(dice.randint(1, 4))]
    dice.shuffle(words)
    return parse_tree(_bracketed(words, label))


def _bracketed(words: Sequence[tuple[str, int]], label: int) -> str:
    (word, own), *others = words
    leaf = f"({own} {word})"
    return f"({label} {leaf} {_bracketed(others, label)})" if others else leaf if own == label else f"({label} {leaf})"
