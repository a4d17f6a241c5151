"""Heads on words: the share of its attention that each head brings to words of a kind, against chance."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ..attribution.layerwise_tracing import traced
from ..record import AttentionRecord, Model, Text
from .word_tally import words_and_tokens

COLUMNS = ("tag", "head", "share", "chance", "texts", "words")


def even_attention(record: AttentionRecord) -> Float[Tensor, "1 token token"]:
    """What chance is: every token attends evenly to all tokens, in a decoder to those up to itself."""
    size = len(record.key_tokens)
    seen = torch.ones(size, size, dtype=torch.float64)
    seen = seen.tril() if record.causal else seen
    return (seen / seen.sum(-1, keepdim=True)).unsqueeze(0)


def heads_and_chance(record: AttentionRecord) -> Float64[np.ndarray, "head_or_chance token"]:
    """What each head has brought down to the input tokens (A^1_h of wu2020), and last what even attention brings."""
    readout = record.readout.double()
    heads = traced(record.weights.double(), readout)[0]
    chance = traced(even_attention(record).expand(len(record.layers), -1, -1, -1), readout)[0]
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
            self.tagged[place] += on_words[:, chosen].sum(1)
            self.whole[place] += on_words.sum(1)
            self.texts[place] += 1
            self.words[place] += sum(chosen)

    def table(self) -> pd.DataFrame:
        """One row for each tag and head; NaN where no text has a word of that tag."""
        with np.errstate(invalid="ignore"):
            shares = self.tagged / self.whole
        rows = [
            (tag, head, shares[place, at], shares[place, -1], int(self.texts[place]), int(self.words[place]))
            for place, tag in enumerate(self.tags)
            for at, head in enumerate(self.heads)
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def state(self) -> dict[str, Any]:
        """All of it, for a checkpoint."""
        arrays = {"tagged": self.tagged, "whole": self.whole, "texts": self.texts, "words": self.words}
        kept = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        return {"tags": list(self.tags), "heads": list(self.heads), **kept}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "HeadTally":
        """The tally that gave this state, to the bit."""
        tally = cls(state["tags"], state["heads"])
        tally.tagged, tally.whole = state["tagged"].numpy(), state["whole"].numpy()
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
