"""The most frequent words of a text, and rare words replaced by their tag, as in Linzen et al. 2016."""

from collections.abc import Collection, Mapping, Sequence

from ...errors import BadInput

HIDDEN = "<unk>"
"""What stands in WikiText for a rare word: it is one itself, however often it stands there."""
QUOTES = {"``", "''"}


def spelled(word: str, tag: str) -> str:
    """The word as the data writes it: in lower case, and quotation marks as Penn does.

    >>> spelled("The", "DT"), spelled('"', "``")
    ('the', '``')
    """
    return tag if tag in QUOTES else word.lower()


def most_frequent(counts: Mapping[str, int], size: int) -> list[str]:
    """The most frequent words, the most frequent first; of equally frequent ones, those that come first by letters.

    >>> most_frequent({"key": 2, "the": 3, "is": 2, "<unk>": 9}, 2)
    ['the', 'is']
    """
    if size < 1:
        raise BadInput(f"A vocabulary has at least one word, not {size}.")
    return sorted(counts.keys() - {HIDDEN}, key=lambda word: (-counts[word], word))[:size]


def with_tags_for_rare(words: Sequence[str], tags: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """The words, with the tag in place of each word that is not known.

    >>> with_tags_for_rare(("the", "axolotls"), ("DT", "NNS"), {"the"})
    ('the', 'NNS')
    """
    return tuple(word if word in known else tag for word, tag in zip(words, tags, strict=True))
