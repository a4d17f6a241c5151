"""Tokens that many heads rest on, wherever they stand: what the rule `null="sinks"` leaves out.

A model may have a resting place beside its first or its special tokens, which no position names. In SmolLM2 it is the
first "the" of a sentence, or a token that is nothing but a space: in 16 to 60 of its 270 heads one such token takes
more than half of all that counts, where any other token does so in fewer than ten. A token that a sentence turns on has
a few heads of its own; a sink has many, in several layers, and that tells the two apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from .batch import Frame, Reading
from .statistic import LayerAttention

DOMINANT = 0.5
"""A head rests on the token that gets more than this of what counts in the rows that see it."""
ACTIVE = 0.03
"""A head that gives less than this to anything but null tokens has nothing left to rest with."""
MANY = 1 / 20
"""A token is a sink if this share of all heads rests on it."""
FEWEST_ROWS = 4
"""Tokens that fewer rows see, as the last ones of a causal model, are not judged."""


@dataclass
class RestingHeads:
    """Counts the heads that rest on each token of some sentences; it is to be shown every layer of them."""

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
    seen = attention.batch.kept.to(attention.given)  # [sentence, query, key]
    offered = attention.given @ seen
    rows = attention.batch.pairs_to.unsqueeze(1).to(offered.device)
    active = attention.given.sum(-1, keepdim=True) > ACTIVE * attention.rows.sum(-1, keepdim=True)
    return (attention.received > DOMINANT * offered) & (rows >= FEWEST_ROWS) & active
