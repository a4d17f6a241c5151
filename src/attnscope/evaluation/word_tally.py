"""WordTally: sums of scores for each word, over all places where it stands; memory grows with the words only."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64

from ..record import AttentionRecord, Text
from ..record.words import word_groups, word_labels

SCALINGS = ("softmax", "length_corrected")
"""Softmax over the words of a text, as in the paper, which makes a score about 1 / N; and N times that."""


def column_of(method: str, scaling: str) -> str:
    """The column of a method's scores: its name, or with what was done beyond the softmax.

    >>> column_of("raw", "softmax"), column_of("raw", "length_corrected")
    ('raw', 'raw_length_corrected')
    """
    return method if scaling == SCALINGS[0] else f"{method}_{scaling}"


def words_and_tokens(record: AttentionRecord, text: Text) -> tuple[list[str], list[list[int]]]:
    """The words of a record in lower case, and the tokens of each; special tokens are no words.

    Words that were given split keep their spelling, also where the model's vocabulary does not have them.
    """
    groups = [
        group for group in word_groups(record.key_word_ids, record.key_special) if not record.key_special[group[0]]
    ]
    labels = word_labels(record.key_tokens, groups)
    if isinstance(text, list):
        numbers = [record.key_word_ids[group[0]] for group in groups]
        labels = tuple(
            label if number is None or number >= len(text) else text[number]
            for label, number in zip(labels, numbers, strict=True)
        )
    return [label.lower() for label in labels], groups


def scaled(
    scores: Float64[np.ndarray, "method token"], groups: Sequence[Sequence[int]]
) -> Float64[np.ndarray, "word column"]:
    """The scores of each word, every method under each of SCALINGS: pieces are summed first, then softmax over words.

    A token's score is a share of attention (or a squared gradient), so that of a word is the sum over its pieces.
    """
    of_words = np.stack([scores[:, list(group)].sum(1) for group in groups], axis=1)
    powers = np.exp(of_words - of_words.max(1, keepdims=True))
    shares = powers / powers.sum(1, keepdims=True)
    both = np.stack([shares, len(groups) * shares], axis=1)
    columns: Float64[np.ndarray, "word column"] = both.reshape(-1, len(groups)).T
    return columns


class WordTally:
    """Counts and sums of each word, in order of first appearance."""

    def __init__(self, methods: Sequence[str]) -> None:
        self.methods = tuple(methods)
        self.columns = tuple(column_of(method, scaling) for method in self.methods for scaling in SCALINGS)
        self.places: dict[str, int] = {}
        self.counts = np.zeros(0, dtype=np.int64)
        self.sums = np.zeros((0, len(self.columns)))

    def update(self, words: Sequence[str], scores: Float64[np.ndarray, "word column"]) -> None:
        """Add the words of one text, each with its scores there."""
        places = [self.places.setdefault(word, len(self.places)) for word in words]
        if len(self.places) > len(self.counts):
            room = max(1024, 2 * len(self.places)) - len(self.counts)
            self.counts = np.concatenate([self.counts, np.zeros(room, dtype=np.int64)])
            self.sums = np.concatenate([self.sums, np.zeros((room, len(self.columns)))])
        np.add.at(self.counts, places, 1)
        np.add.at(self.sums, places, scores)

    def table(self, minimum_count: int = 1) -> pd.DataFrame:
        """The mean of each score for each word that occurs so often; the highest of the first method first."""
        size = len(self.places)
        means = self.sums[:size] / self.counts[:size, None]
        table = pd.DataFrame({"word": list(self.places), "count": self.counts[:size]})
        table = pd.concat([table, pd.DataFrame(means, columns=list(self.columns))], axis=1)
        table = table[table["count"] >= minimum_count]
        return table.sort_values([self.columns[0], "word"], ascending=[False, True], ignore_index=True)

    def state(self) -> dict[str, Any]:
        """All of it, for a checkpoint."""
        size = len(self.places)
        return {
            "methods": list(self.methods),
            "words": list(self.places),
            "counts": torch.from_numpy(self.counts[:size].copy()),
            "sums": torch.from_numpy(self.sums[:size].copy()),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "WordTally":
        """The tally that gave this state, to the bit."""
        tally = cls(state["methods"])
        tally.places = {word: place for place, word in enumerate(state["words"])}
        tally.counts, tally.sums = state["counts"].numpy(), state["sums"].numpy()
        return tally
