"""A toy treebank for trials: sentences of a few words whose feeling is that of the words in them, written here."""

from collections.abc import Sequence
from random import Random

from ...lab.data.sst_trees import SentimentTree, parse_tree

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
