"""A sentence as a model reads it: its tokens, and what is known of the word each token belongs to."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral

from ..errors import BadInput
from ..syntax import Sentence


@dataclass(frozen=True)
class Reading:
    """One sentence in tokens; every piece of a word takes the word's tag, head and relation."""

    place: int
    """Where it stands in the corpus: later sentences have greater places."""
    sentence: Sentence
    token_ids: tuple[int, ...]
    tokens: tuple[str, ...]
    """The tokens as a person reads them."""
    special: tuple[bool, ...]
    words: tuple[int | None, ...]
    """The word of each token, as a position in the sentence; None for special tokens."""

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def leading_special(self) -> int:
        """How many special tokens stand before the text."""
        return next((position for position, special in enumerate(self.special) if not special), len(self))

    def cut(self, length: int) -> "Reading":
        """Only the first tokens; for a causal model they are attended to as in the whole."""
        return replace(
            self,
            token_ids=self.token_ids[:length],
            tokens=self.tokens[:length],
            special=self.special[:length],
            words=self.words[:length],
        )


def is_punctuation(token: str) -> bool:
    """Whether a token is nothing but punctuation.

    >>> [is_punctuation(token) for token in (" ,", "...", " a.", "")]
    [True, True, False, False]
    """
    return bool(token.strip()) and all(unicodedata.category(letter).startswith("P") for letter in token.strip())


# Null attention: which rows and columns are left out because heads rest there when they look for nothing.
# Vig & Belinkov 2019 (section 5.2.3) leave out the first token of GPT-2. Bidirectional models rest on their special
# tokens instead, and a model may have other sinks: so the rule is a choice.


RULES = ("first", "special", "none")
Null = str | tuple[int, ...]


def checked_null(null: object) -> Null:
    """The rule as given: a name, or positions of columns to leave out (negative ones count from the end)."""
    if isinstance(null, str):
        if null in RULES:
            return null
    elif isinstance(null, Sequence) and all(isinstance(position, Integral) for position in null) and null:
        return tuple(int(position) for position in null)
    raise BadInput(f"null is {', '.join(RULES)} or a list of positions, not {null!r}.")


def kept_queries(reading: Reading, null: Null) -> list[bool]:
    """The rows that count: all, but for special tokens where these are null."""
    return [null != "special" or not special for special in reading.special]


def kept_keys(reading: Reading, null: Null) -> list[bool]:
    """The columns that count."""
    return [True] * len(reading) if null == "none" else [not is_null for is_null in null_keys(reading, null)]


def null_keys(reading: Reading, null: Null) -> list[bool]:
    """The columns that null attention is measured on; without a rule, the first token."""
    if null == "special":
        return list(reading.special)
    positions = (0,) if isinstance(null, str) else null
    within = {position % len(reading) for position in positions if -len(reading) <= position < len(reading)}
    return [position in within for position in range(len(reading))]


def first_counted(reading: Reading, null: Null) -> int:
    """The position from which a text is counted: behind the leading special tokens where these are null."""
    return reading.leading_special if null == "special" else 0
