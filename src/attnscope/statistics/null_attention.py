"""How much of its attention a head rests on null tokens (Vig & Belinkov 2019, Fig. 5)."""

from dataclasses import dataclass

from .batch import Frame
from .layer import LayerAttention
from .ratio import Ratio, RatioStatistic
from .tally import SOLE, Tally


@dataclass
class NullAttention(RatioStatistic):
    """The share of all attention, all rows counted, that goes to what is null; without a rule, to the first token."""

    null: Tally
    mass: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "NullAttention":
        """One that has seen nothing."""
        return cls(Tally.zeros(SOLE, frame.layers, frame.heads), Tally.zeros(SOLE, frame.layers, frame.heads))

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        self.null.add(attention.layer, attention.received_by(attention.batch.null_keys))
        self.mass.add(attention.layer, attention.rows.double().sum((0, 2)))

    def ratio(self) -> Ratio:
        """Null attention over all attention."""
        return Ratio(self.null.sums, self.mass.sums)
