"""What the attended tokens are in their sentence: subjects, determiners, … (Vig & Belinkov 2019, Fig. 9)."""

from dataclasses import dataclass
from typing import ClassVar

from .batch import Frame
from .layer import LayerAttention
from .statistic import PARSE, Caption, Ratio, RatioStatistic
from .tally import SOLE, Tally


@dataclass
class DependencyType(RatioStatistic):
    """Eq. 3 with the relation of the attended token to its own head in place of its tag."""

    caption: ClassVar[Caption] = Caption(
        "Relation attended to",
        "share of attention",
        "How much of the head’s attention goes to tokens that bear a relation.",
    )
    needs: ClassVar[tuple[str, ...]] = (PARSE,)

    to: Tally
    mass: Tally
    pairs_to: Tally
    pairs: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "DependencyType":
        """One that has seen nothing."""
        return cls(
            to=Tally.zeros(frame.relations, frame.layers, frame.heads),
            mass=Tally.zeros(SOLE, frame.layers, frame.heads),
            pairs_to=Tally.zeros(frame.relations, 1, 1),
            pairs=Tally.zeros(SOLE, 1, 1),
        )

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        batch, relations = attention.batch, attention.batch.relations.flatten()
        self.to.add_rows(attention.layer, relations, attention.received.transpose(1, 2).flatten(0, 1))
        self.mass.add(attention.layer, attention.mass)
        if attention.layer == 0:
            self.pairs_to.count(relations, batch.pairs_to.flatten().double())
            self.pairs.sums += batch.kept.sum()

    def ratio(self) -> Ratio:
        """Attention to tokens of each relation over all attention."""
        return Ratio(
            above=self.to.sums,
            below=self.mass.sums.expand_as(self.to.sums),
            labels={"relation": self.to.labels},
            beside={"chance": (self.pairs_to.sums / self.pairs.sums).flatten()},
        )
