"""Which parts of speech a head attends to, and from (Vig & Belinkov 2019, Eq. 3)."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from .batch import Batch, Frame
from .layer import LayerAttention
from .ratio import Ratio, RatioStatistic
from .statistic import TAGS
from .tally import SOLE, Tally


@dataclass
class PartOfSpeech(RatioStatistic):
    """P(tag): the share of a head's attention that goes to, or comes from, tokens with a tag.

    `chance` is the share of token pairs with that tag: what a head would give that attends to all alike, without regard
    to the lengths of its rows.
    """

    needs: ClassVar[tuple[str, ...]] = (TAGS,)

    to: Tally
    origin: Tally
    mass: Tally
    pairs_to: Tally
    pairs_from: Tally
    pairs: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "PartOfSpeech":
        """One that has seen nothing."""
        size = (frame.layers, frame.heads)
        return cls(
            to=Tally.zeros(frame.tags, *size),
            origin=Tally.zeros(frame.tags, *size),
            mass=Tally.zeros(SOLE, *size),
            pairs_to=Tally.zeros(frame.tags, 1, 1),
            pairs_from=Tally.zeros(frame.tags, 1, 1),
            pairs=Tally.zeros(SOLE, 1, 1),
        )

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        layer, tags = attention.layer, attention.batch.tags.flatten()
        self.to.add_rows(layer, tags, attention.received.transpose(1, 2).flatten(0, 1))
        self.origin.add_rows(layer, tags, attention.given.transpose(1, 2).flatten(0, 1))
        self.mass.add(layer, attention.mass)
        if layer == 0:
            self._count(attention.batch)

    def _count(self, batch: Batch) -> None:
        tags = batch.tags.flatten()
        self.pairs_to.count(tags, batch.kept.sum(1).flatten().double())
        self.pairs_from.count(tags, batch.kept.sum(2).flatten().double())
        self.pairs.sums += batch.kept.sum()

    def ratio(self) -> Ratio:
        """Attention to and from each tag over all attention."""
        above = torch.cat([self.to.sums, self.origin.sums])
        pairs = torch.cat([self.pairs_to.sums, self.pairs_from.sums])
        tags = (*self.to.labels, *self.origin.labels)
        return Ratio(
            above=above,
            below=self.mass.sums.expand_as(above),
            labels={"direction": ["to"] * len(self.to.labels) + ["from"] * len(self.origin.labels), "tag": tags},
            beside={"chance": (pairs / self.pairs.sums).flatten()},
        )
