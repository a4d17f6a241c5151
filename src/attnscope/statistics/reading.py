"""A sentence as a model reads it: its tokens, and what is known of the word each token belongs to."""

import unicodedata
from dataclasses import dataclass, replace

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
