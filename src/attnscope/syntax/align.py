"""Words and the tokens of a model, laid over each other by their characters."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

Span = tuple[int, int]

NO_TOKEN = "a word has no token"
NO_WORDS = "the sentence has no words"


class Unaligned(ValueError):
    """These tokens do not stand for these words; `reason` says why, in words that can be counted over a corpus."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def words_of_tokens(spans: Sequence[Span], offsets: Sequence[Span], special: Sequence[bool]) -> tuple[int | None, ...]:
    """The word of each token: the one it shares most characters with, else the first; None for special tokens.

    So "don" of "don't" belongs to "do", although its "n" is of "n't", which has other tokens. A token may cover whole
    words, as "cannot" covers "can" and "not": the other words then have no token, and whoever counts says how many. A
    token that covers only white space, or nothing, belongs to the word it stands in or that starts next, else to the
    last one.

    Args:
        spans: Where each word begins and ends in the text, in their order (`Sentence.spans`).
        offsets: Where each token begins and ends in the same text, as the tokenizer tells it.
        special: Whether a token is one that the tokenizer added, such as [CLS].

    Raises:
        Unaligned: If no token has a character of some word.

    >>> words_of_tokens([(0, 4), (5, 11)], [(0, 0), (0, 4), (5, 9), (9, 11), (0, 0)], [True, False, False, False, True])
    (None, 0, 1, 1, None)
    >>> words_of_tokens([(0, 3), (3, 6), (7, 10)], [(0, 6), (6, 10)], [False, False])
    (0, 2)
    """
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    touched = [False] * len(spans)
    words: list[int | None] = []
    for (start, end), quiet in zip(offsets, special, strict=True):
        if quiet:
            words.append(None)
            continue
        if not spans:
            raise Unaligned(NO_WORDS)
        # Words neither overlap nor change places: those that end after the token starts and start before it ends.
        first, beyond = bisect_right(ends, start), bisect_left(starts, end)
        if end > start and beyond > first:
            shared = [min(end, ends[word]) - max(start, starts[word]) for word in range(first, beyond)]
            word = first + shared.index(max(shared))
            touched[first:beyond] = [True] * (beyond - first)
        else:
            word = min(first, len(spans) - 1)
        words.append(word)
    if not all(touched):
        raise Unaligned(NO_TOKEN)
    return tuple(words)
