"""Which parts of speech a head attends to, and from (Vig & Belinkov 2019, Eq. 3)."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from .batch import Batch, Frame
from .layer import LayerAttention
from .ratio import Ratio, RatioStatistic
from .single import of_labels
from .statistic import TAGS
from .tally import SOLE, Tally

DIRECTIONS = ("to", "from")


@dataclass
class PartOfSpeech(RatioStatistic):
    """P(tag): the share of a head's attention that goes to, or comes from, tokens with a tag.

    `chance` is the share of token pairs with that tag: what a head would give that attends to all alike, without regard
    to the lengths of its rows.

    `one_token` tells a part of speech from one token that has it: of this attention, the share of the token of each
    sentence that has most of it. `one_token_chance` is what that would be if the tokens of a tag were treated alike.
    """

    needs: ClassVar[tuple[str, ...]] = (TAGS,)

    along: Tally
    largest: Tally
    largest_by_chance: Tally
    mass: Tally
    pairs_along: Tally
    pairs: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "PartOfSpeech":
        """One that has seen nothing."""
        labels = [f"{direction} {tag}" for direction in DIRECTIONS for tag in frame.tags]
        size = (frame.layers, frame.heads)
        return cls(
            along=Tally.zeros(labels, *size),
            largest=Tally.zeros(labels, *size),
            largest_by_chance=Tally.zeros(labels, *size),
            mass=Tally.zeros(SOLE, *size),
            pairs_along=Tally.zeros(labels, 1, 1),
            pairs=Tally.zeros(SOLE, 1, 1),
        )

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        batch, layer = attention.batch, attention.layer
        sides = ((attention.received, batch.pairs_to), (attention.given, batch.pairs_from))
        found = [of_labels(numbers, pairs, batch.tags, len(batch.frame.tags)) for numbers, pairs in sides]
        for place, tally in enumerate((self.along, self.largest, self.largest_by_chance)):
            tally.sums[:, layer] += torch.cat([of_side[place] for of_side in found])
        self.mass.add(layer, attention.mass)
        if layer == 0:
            self._count(batch)

    def _count(self, batch: Batch) -> None:
        tags, count = batch.tags.flatten(), len(batch.frame.tags)
        sides = [pairs.flatten().double() for pairs in (batch.pairs_to, batch.pairs_from)]
        counts = [torch.bincount(tags, weights=pairs, minlength=count + 1)[:count] for pairs in sides]
        self.pairs_along.sums[:, 0, 0] += torch.cat(counts)
        self.pairs.sums += batch.kept.sum()

    def ratio(self) -> Ratio:
        """Attention to and from each tag over all attention."""
        # directions have no space in them; merging appends labels, so they are put in order again
        labels = [label.partition(" ") for label in self.along.labels]
        order = sorted(range(len(labels)), key=lambda place: DIRECTIONS.index(labels[place][0]))
        along, largest, by_chance, pairs = (
            tally.sums[order] for tally in (self.along, self.largest, self.largest_by_chance, self.pairs_along)
        )
        return Ratio(
            above=along,
            below=self.mass.sums.expand_as(along),
            labels={
                "direction": [labels[place][0] for place in order],
                "tag": [labels[place][2] for place in order],
            },
            beside={
                "chance": (pairs / self.pairs.sums).flatten(),
                "one_token": largest / along,
                "one_token_chance": by_chance / along,
            },
        )
