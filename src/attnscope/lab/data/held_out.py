"""Sentences that are kept for testing: what of a training text they hold is told, so that it can be left out."""

from collections.abc import Iterable, Sequence

from .linzen import MarkedVerb

SENTENCE = "the sentence is kept for testing"
BEGINNING = "a sentence kept for testing begins with the same words"


class HeldOut:
    """The sentences of a test set, and how they begin up to their verb.

    Sentences are compared by their letters and digits alone, since each corpus has ways of its own to write quotation
    marks and to part words.

    >>> kept = HeldOut([MarkedVerb(("The", "key", "is", "mine", "."), 2, "singular", 0)])
    >>> kept.holds(["the", "key", "is", "mine"], 2), kept.holds(["the", "key", "opens"], 2), kept.holds(["key"], 0)
    ('the sentence is kept for testing', 'a sentence kept for testing begins with the same words', None)
    """

    def __init__(self, verbs: Iterable[MarkedVerb]) -> None:
        self.sentences, self.beginnings = set(), set()
        for marked in verbs:
            self.sentences.add(_letters(marked.words))
            self.beginnings.add(_letters(marked.words[: marked.verb]))

    def holds(self, words: Sequence[str], verb: int) -> str | None:
        """Why an example must not be trained on, or None if it may."""
        if _letters(words) in self.sentences:
            return SENTENCE
        return BEGINNING if _letters(words[:verb]) in self.beginnings else None


def _letters(words: Sequence[str]) -> str:
    return "".join(letter for word in words for letter in word.lower() if letter.isalnum())
