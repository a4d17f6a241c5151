"""How widely a head spreads its attention (Vig & Belinkov 2019, Eq. 7)."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from .batch import Frame
from .layer import LayerAttention
from .statistic import Caption, Ratio, RatioStatistic
from .tally import SOLE, Tally

SMALLEST = torch.finfo(torch.float32).tiny
"""Stands for 0 under a logarithm that is then multiplied by 0."""
MOSTLY_NULL = 0.9
"""Rows with more null attention than this are left out, or what little remains of them would weigh like a whole row."""


@dataclass
class Entropy(RatioStatistic):
    """The mean entropy of a row in nats, null attention dropped and the rest renormalised.

    `evenness` is that over the entropy of looking at everything alike. `rows` is how many rows were counted and
    `rows_share` which share of all that is: a head with few rows left is known less well than its error says.
    """

    caption: ClassVar[Caption] = Caption("Entropy", "nats", "How broadly the head looks: 0 is one token only.")
    total: Tally
    widest: Tally
    rows: Tally
    all_rows: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "Entropy":
        """One that has seen nothing."""
        size = (frame.layers, frame.heads)
        return cls(
            total=Tally.zeros(SOLE, *size),
            widest=Tally.zeros(SOLE, *size),
            rows=Tally.zeros(SOLE, *size),
            all_rows=Tally.zeros(SOLE, 1, 1),
        )

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        batch, given, rows = attention.batch, attention.given, attention.rows
        counted = batch.kept_queries.unsqueeze(1).to(given.device) & (given > 0)
        if batch.frame.null != "none":
            counted &= rows - given <= MOSTLY_NULL * rows
        # entropy of p / s, where s is the sum of p: log s - sum(p log p) / s
        logarithms = attention.kept.clamp_min(SMALLEST).log_()  # twice as fast as torch.special.entr
        entropies = given.log() - logarithms.mul_(attention.kept).sum(-1) / given
        entropies = torch.where(counted, entropies, 0.0)
        self.total.add(attention.layer, entropies.double().sum((0, 2)))
        keys = batch.pairs_from.clamp_min(1).log().to(given.device)
        self.widest.add(attention.layer, (counted * keys.unsqueeze(1)).double().sum((0, 2)))
        self.rows.add(attention.layer, counted.sum((0, 2)).double())
        if attention.layer == 0:
            self.all_rows.sums += batch.kept_queries.sum()

    def ratio(self) -> Ratio:
        """Entropies over rows."""
        rows = self.rows.sums
        return Ratio(
            self.total.sums,
            rows,
            beside={
                "evenness": self.total.sums / self.widest.sums,
                "rows": rows,
                "rows_share": rows / self.all_rows.sums,
            },
        )
