"""Simple patterns: the token before, the same token again, the token behind its last occurrence, and sinks.

Previous, next, same, repeated and induction are shares of the attention that counts. First, special and punctuation are
shares of all attention, null attention included: they are where heads rest.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64
from torch import Tensor

from .batch import Batch, Frame
from .layer import LayerAttention
from .statistic import Caption, Ratio, RatioStatistic
from .tally import SOLE, Tally

OF_WHAT_COUNTS = ("previous", "next", "same", "repeated", "induction")
OF_ALL = ("first", "special", "punctuation")


@dataclass
class Patterns(RatioStatistic):
    """The share of attention in each pattern; `chance` is the pattern's share of token pairs.

    Repeated is another occurrence of the same token. Induction is the token behind the last occurrence of the token
    that attends: what followed it then (Olsson et al. 2022).
    """

    caption: ClassVar[Caption] = Caption(
        "Pattern", "share of attention", "How much of the head’s attention follows a simple pattern."
    )
    along: Tally
    mass: Tally
    resting: Tally
    all_mass: Tally
    pairs_along: Tally
    pairs: Tally
    pairs_resting: Tally
    all_pairs: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "Patterns":
        """One that has seen nothing."""
        size = (frame.layers, frame.heads)
        return cls(
            along=Tally.zeros(OF_WHAT_COUNTS, *size),
            mass=Tally.zeros(SOLE, *size),
            resting=Tally.zeros(OF_ALL, *size),
            all_mass=Tally.zeros(SOLE, *size),
            pairs_along=Tally.zeros(OF_WHAT_COUNTS, 1, 1),
            pairs=Tally.zeros(SOLE, 1, 1),
            pairs_resting=Tally.zeros(OF_ALL, 1, 1),
            all_pairs=Tally.zeros(SOLE, 1, 1),
        )

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        batch, layer = attention.batch, attention.layer
        kept = attention.kept
        self.along.sums[0, layer] += _total(kept.diagonal(-1, -2, -1))
        self.along.sums[1, layer] += _total(kept.diagonal(1, -2, -1))
        self.along.sums[2, layer] += _total(kept.diagonal(0, -2, -1))
        for place, pairs in ((3, batch.repeated), (4, batch.induction)):
            self.along.sums[place, layer] += attention.along(pairs).double().sum(0).cpu()
        self.mass.add(layer, attention.mass)
        for place, keys in enumerate((batch.first, batch.special, batch.punctuation)):
            self.resting.sums[place, layer] += attention.received_by(keys).cpu()
        self.all_mass.add(layer, attention.rows.double().sum((0, 2)))
        if layer == 0:
            self._count(batch)

    def _count(self, batch: Batch) -> None:
        along = (
            batch.kept.diagonal(-1, 1, 2).sum(),
            batch.kept.diagonal(1, 1, 2).sum(),
            batch.kept.diagonal(0, 1, 2).sum(),
            len(batch.repeated),
            len(batch.induction),
        )
        self.pairs_along.sums += torch.tensor(along, dtype=torch.float64).view(-1, 1, 1)
        self.pairs.sums += batch.kept.sum()
        received = batch.exists.sum(1)
        resting = [received[keys].sum() for keys in (batch.first, batch.special, batch.punctuation)]
        self.pairs_resting.sums += torch.tensor(resting, dtype=torch.float64).view(-1, 1, 1)
        self.all_pairs.sums += batch.exists.sum()

    def ratio(self) -> Ratio:
        """Attention in each pattern over what it is a share of."""
        above = torch.cat([self.along.sums, self.resting.sums])
        below = torch.cat([self.mass.sums.expand_as(self.along.sums), self.all_mass.sums.expand_as(self.resting.sums)])
        chance = torch.cat([self.pairs_along.sums / self.pairs.sums, self.pairs_resting.sums / self.all_pairs.sums])
        return Ratio(above, below, labels={"pattern": [*OF_WHAT_COUNTS, *OF_ALL]}, beside={"chance": chance.flatten()})


def _total(diagonal: Tensor) -> Float64[Tensor, " head"]:
    return diagonal.double().sum((0, 2)).cpu()
