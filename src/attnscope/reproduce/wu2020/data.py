"""The sentences of a scale, and what raters say of words: SST and Warriner's norms, or toys of ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...evaluation.lexicons import NEGATIVE, POSITIVE, Lexicon, read_lexicon
from ...lab.data.sst_trees import SentimentTree, tree_splits
from .scales import Scale
from .toy import VALENCES, toy_trees

EXTREMES = {0: NEGATIVE, 4: POSITIVE}
"""The labels of single words that make them very negative or very positive, as SST's raters have them."""
TOY = "a toy treebank of attnscope's own"


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
        splits = {"train": toy_trees(300, 0), "dev": toy_trees(80, 1), "test": toy_trees(scale.sentences or 100, 2)}
        return Sentences(TOY, splits, read_lexicon(VALENCES))
    splits = tree_splits(corpus or "sst", data)
    return Sentences("SST" if corpus is None else Path(corpus).name, splits, read_lexicon(lexicon, data))
