"""WordTally: sums of scores for each word, over all places where it stands; memory grows with the words only."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ..attribution.layerwise_tracing import trace_down
from ..record import AttentionRecord, Model, Text
from ..record.words import word_groups, word_labels

Scaling = Literal["softmax", "length_corrected"]
SCALINGS: tuple[Scaling, ...] = get_args(Scaling)
"""Softmax over the words of a text, as in the paper, which makes a score about 1 / N; and N times that."""


def column_of(method: str, scaling: Scaling) -> str:
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


def scale_scores(
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


# Heads on words: the share of its attention that each head brings to words of a kind, against chance.


COLUMNS = ("tag", "head", "share", "error", "chance", "texts", "words")


def even_attention(record: AttentionRecord) -> Float[Tensor, "1 token token"]:
    """What chance is: every token attends evenly to all tokens, in a decoder to those up to itself."""
    size = len(record.key_tokens)
    seen = torch.ones(size, size, dtype=torch.float64)
    seen = seen.tril() if record.causal else seen
    return (seen / seen.sum(-1, keepdim=True)).unsqueeze(0)


def heads_and_chance(record: AttentionRecord) -> Float64[np.ndarray, "head_or_chance token"]:
    """What each head has brought down to the input tokens (A^1_h of wu2020), and last what even attention brings."""
    readout = record.readout.double()
    heads = trace_down(record.weights.double(), readout)[0]
    chance = trace_down(even_attention(record).expand(len(record.layers), -1, -1, -1), readout)[0]
    found: Float64[np.ndarray, "head_or_chance token"] = torch.cat([heads, chance]).numpy()
    return found


class HeadTally:
    """Sums of attention on words of each tag and on all words, over the texts that have a word of that tag.

    Wu, Nguyen & Ong 2020, Eq. 14. Special tokens are no words: they are in neither sum.
    """

    def __init__(self, tags: Sequence[str], heads: Sequence[int]) -> None:
        self.tags, self.heads = tuple(tags), tuple(heads)
        self.tagged = np.zeros((len(self.tags), len(self.heads) + 1))
        """The numerator, for each head and for chance."""
        self.whole = np.zeros_like(self.tagged)
        self.squares = np.zeros((3, *self.tagged.shape))
        """Sums over texts of tagged², tagged times whole, and whole²: how far texts differ."""
        self.texts, self.words = (np.zeros(len(self.tags), dtype=np.int64) for _ in range(2))

    def update(self, record: AttentionRecord, tags: Sequence[str | None], groups: Sequence[Sequence[int]]) -> None:
        """Add one text: the tag of each word, and the tokens of each."""
        present = [place for place, tag in enumerate(self.tags) if tag in tags]
        if not present:
            return
        on_tokens = heads_and_chance(record)
        on_words = np.stack([on_tokens[:, list(group)].sum(1) for group in groups], axis=1)
        for place in present:
            chosen = [tag == self.tags[place] for tag in tags]
            tagged, whole = on_words[:, chosen].sum(1), on_words.sum(1)
            self.tagged[place] += tagged
            self.whole[place] += whole
            self.squares[:, place] += [tagged**2, tagged * whole, whole**2]
            self.texts[place] += 1
            self.words[place] += sum(chosen)

    def table(self) -> pd.DataFrame:
        """One row for each tag and head; NaN where no text has a word of that tag.

        `error` is the standard error of the share over texts drawn anew, that of a ratio of two sums.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = self.tagged / self.whole
            left = self.squares[0] - 2 * shares * self.squares[1] + shares**2 * self.squares[2]
            errors = np.sqrt(np.maximum(left, 0)) / self.whole
        texts, words = self.texts.tolist(), self.words.tolist()
        rows = [
            (tag, head, shares[place, at], errors[place, at], shares[place, -1], texts[place], words[place])
            for place, tag in enumerate(self.tags)
            for at, head in enumerate(self.heads)
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def state(self) -> dict[str, Any]:
        """All of it, for a checkpoint."""
        names = ("tagged", "whole", "squares", "texts", "words")
        arrays: dict[str, np.ndarray] = {name: getattr(self, name) for name in names}
        kept = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        return {"tags": list(self.tags), "heads": list(self.heads), **kept}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "HeadTally":
        """The tally that gave this state, to the bit."""
        tally = cls(state["tags"], state["heads"])
        tally.tagged, tally.whole = state["tagged"].numpy(), state["whole"].numpy()
        tally.squares = state["squares"].numpy()
        tally.texts, tally.words = state["texts"].numpy(), state["words"].numpy()
        return tally


def heads_on_words(
    model: Model, texts: Iterable[Text], tags: Mapping[str, str], *, batch_size: int = 16, truncate: bool = False
) -> pd.DataFrame:
    """The share of attention that each head brings to the words of each tag, and what chance gives.

    Wu, Nguyen & Ong 2020, Eq. 14 and Fig. 6: `tags` says of words in lower case what they are, such as "very positive".
    A head is the same number in every layer, as in layer-wise tracing. Of each tag only texts that have a word of it
    count. `chance` is Eq. 14 for even attention, so a word of three pieces has three times the chance of one.
    """
    given = list(texts)
    tally: HeadTally | None = None
    names = list(dict.fromkeys(tags.values()))
    for start in range(0, len(given), batch_size):
        batch = given[start : start + batch_size]
        for text, record in zip(batch, model.records(batch, batch_size, truncate=truncate), strict=True):
            tally = HeadTally(names, record.heads) if tally is None else tally
            words, groups = words_and_tokens(record, text)
            tally.update(record, [tags.get(word) for word in words], groups)
    return pd.DataFrame(columns=list(COLUMNS)) if tally is None else tally.table()
