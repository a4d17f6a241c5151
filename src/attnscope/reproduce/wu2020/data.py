"""The sentences and stories of a scale, and what raters say of words: SST, SEND and Warriner's norms, or our toys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...evaluation.lexicons import NEGATIVE, POSITIVE, Lexicon, read_lexicon
from ...lab.data.send import read_send
from ...lab.data.sst_trees import SentimentTree, tree_splits
from ...lab.data.stories import NAME as STAND_IN
from ...lab.data.stories import standin_stories
from ...lab.data.story import Story
from .scales import Scale
from .toy import VALENCES, toy_trees

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


def sentences_of(scale: Scale, *, corpus: str | None, lexicon: str, data: str | Path | None) -> Sentences:
    """The sentences of a scale, or of a folder laid out like SST, with the valences of a lexicon."""
    if scale.toy and corpus is None:
        splits = {"train": toy_trees(300, 0), "dev": toy_trees(80, 1), "test": toy_trees(60, 2)}
        return Sentences(TOY, splits, read_lexicon(VALENCES))
    splits = tree_splits(corpus or "sst", data)
    return Sentences("SST" if corpus is None else Path(corpus).name, splits, read_lexicon(lexicon, data))


@dataclass(frozen=True)
class Stories:
    """What is learned from and looked at over time; `name` is SEND's, or says that they are a stand-in."""

    name: str
    splits: Mapping[str, Sequence[Story]]


def stories_of(scale: Scale, sentences: Sentences, send: str | Path | None) -> Stories | None:
    """SEND where its folder is given, or else a stand-in where a scale is a trial anyway; none at the other scales."""
    if send is not None:
        return Stories(SEND, read_send(send))
    if not scale.toy:
        return None
    sizes = {"train": 30, "dev": 8, "test": 8}
    made = {
        split: standin_stories(sentences.splits[split], count, windows=8, seed=seed)
        for seed, (split, count) in enumerate(sizes.items())
    }
    return Stories(STAND_IN, made)
