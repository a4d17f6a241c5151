"""Sinks, tokens that many heads rest on, wherever they stand: `null="sinks"` leaves them out, and views fade them.

A model may have a resting place beside its first or its special tokens, which no position names. In SmolLM2 it is the
first "the" of a sentence, or a token that is nothing but a space: in 16 to 60 of its 270 heads one such token takes
more than half of all that counts, where any other token does so in fewer than ten. A token that a sentence turns on has
a few heads of its own; a sink has many, in several layers, and that tells the two apart.

One text tells less than a corpus, and what a view fades is what a reader may be looking for: there a sink has a quarter
of all heads. The first token of SmolLM2 has 45 to 90 % of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..record import AttentionRecord, VectorRecord
from ..record.vectors import carry, handed_over
from .batch import Frame, Reading
from .statistic import LayerAttention, Reads

DOMINANT = 0.5
"""A head rests on the token that gets more than this of what counts in the rows that see it."""
ACTIVE = 0.03
"""A head that gives less than this to anything but null tokens has nothing left to rest with."""
MANY = 1 / 20
"""A token of a corpus is a sink if this share of all heads rests on it."""
QUARTER = 1 / 4
"""And a token of one text alone if this share does."""
FEWEST_ROWS = 4
"""Tokens that fewer rows see, as the last ones of a causal model, are not judged."""


@dataclass
class RestingHeads:
    """Counts the heads that rest on each token of some sentences; it is to be shown every layer of them."""

    reads: ClassVar[Reads] = ("given", "received", "rows", "offered")

    frame: Frame
    counts: dict[int, Int[Tensor, " token"]] = field(default_factory=dict)
    """By the place of the sentence in its corpus."""

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        resting = heads_at_rest(attention).sum(1)
        for reading, counted in zip(attention.batch.readings, resting, strict=True):
            found = counted[: len(reading)].cpu()
            self.counts[reading.place] = self.counts.get(reading.place, torch.zeros_like(found)) + found

    def mark(self, readings: Sequence[Reading]) -> list[Reading]:
        """The sentences with their sinks."""
        least = MANY * self.frame.layers * self.frame.heads
        found = [(self.counts[reading.place] >= least).nonzero().flatten().tolist() for reading in readings]
        return [
            replace(reading, sinks=tuple(sorted({*reading.sinks, *sinks})))
            for reading, sinks in zip(readings, found, strict=True)
        ]


def heads_at_rest(attention: LayerAttention) -> Bool[Tensor, "sentence head key"]:
    """Which heads of a layer give most of what counts to which token, over the rows that see this token."""
    seen_by = attention.batch.pairs_to.to(attention.given.device)
    return _rests(attention.received, attention.offered, attention.given, attention.rows, seen_by)


def _rests(
    received: Float[Tensor, "*sentence head key"],
    offered: Float[Tensor, "*sentence head key"],
    given: Float[Tensor, "*sentence head query"],
    rows: Float[Tensor, "*sentence head query"],
    seen_by: Int[Tensor, "*sentence key"],
) -> Bool[Tensor, "*sentence head key"]:
    """What it is to rest: of what counts, `given` by each row and `received` by each column, most goes to one token.

    `offered` is what the rows that see each column give together, and `seen_by` how many these are. `rows` are what
    rows sum to with what does not count.
    """
    judged = (seen_by >= FEWEST_ROWS).unsqueeze(-2)
    active = given.sum(-1, keepdim=True) > ACTIVE * rows.sum(-1, keepdim=True)
    return (received > DOMINANT * offered) & judged & active


def sinks_of(record: AttentionRecord) -> list[int]:
    """The tokens of one text where attention rests: the first one of most causal models.

    Where there are special tokens, it rests on these. Another token that a quarter of the heads looks at is then what
    the text turns on, such as the subject for a model that tells singular from plural.
    """
    layers, heads, _, keys = record.shape
    if any(record.key_special) or not layers:
        return []
    if isinstance(record, VectorRecord):
        return _sinks_of_vectors(record)
    asking = ~torch.tensor(record.masked_queries).unsqueeze(-1)
    resting = torch.zeros(keys, dtype=torch.int64)
    for weights in record.weights:  # by layer: all at once would be as large as the weights again
        seen = _within_reach(weights) & asking
        seen = seen.tril() if record.causal else seen
        kept = weights * seen
        given = kept.sum(-1)
        resting += _rests(kept.sum(-2), given @ seen.to(given), given, given, seen.sum(-2)).sum(0)
    return [int(place) for place in (resting >= QUARTER * layers * heads).nonzero().flatten()]


def _within_reach(weights: Float[Tensor, "head query key"]) -> Bool[Tensor, "query key"]:
    """Which keys a query of this layer can see: as far back and ahead as any query looks, by a sliding window say."""
    _, queries, keys = weights.shape
    ahead = torch.arange(keys) - torch.arange(queries).unsqueeze(-1)
    looked = ahead[(weights > 0).any(0)]
    return (
        (ahead >= looked.min()) & (ahead <= looked.max()) if len(looked) else torch.ones_like(ahead, dtype=torch.bool)
    )


def _sinks_of_vectors(record: VectorRecord) -> list[int]:
    """The same where there are no weights: every row gives all that it has, so that columns tell."""
    layers, heads, queries, keys = record.shape
    everyone = torch.ones(1, heads, queries)
    resting = torch.zeros(keys, dtype=torch.int64)
    for place in range(layers):
        layer = record.layer(place)
        seen_by = handed_over(layer, everyone[:, :1].double())[0, 0]
        rests = carry(layer, everyone)[0] > DOMINANT * seen_by
        resting += (rests & (seen_by >= FEWEST_ROWS)).sum(0)
    return [int(place) for place in (resting >= QUARTER * layers * heads).nonzero().flatten()]
