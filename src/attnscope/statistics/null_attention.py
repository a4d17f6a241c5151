"""How much of its attention a head rests on null tokens (Vig & Belinkov 2019, Fig. 5), and on a sink besides.

The rule for null attention says where the sinks are. A model may have one more that no rule can name, because it stands
elsewhere in every sentence: the first "the", say. It shows in that one token gets what counts from nearly everywhere.
So does a token that the sentence turns on, as in a small classifier: attention alone does not tell the two apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from .batch import Frame
from .layer import LayerAttention
from .statistic import Caption, Ratio, RatioStatistic
from .tally import SOLE, Tally


@dataclass
class NullAttention(RatioStatistic):
    """The share of all attention, all rows counted, that goes to what is null; without a rule, to the first token.

    `one_token` is about the rest: of the attention that counts, the share that goes to the most attended token of each
    sentence. `one_token_chance` is what that token would get if every row shared what it gives alike: more in short
    sentences, and more in causal models, where all rows see the first tokens.
    """

    caption: ClassVar[Caption] = Caption(
        "Null attention", "share of attention", "How much attention goes to tokens that stand for none."
    )
    errors: ClassVar[Mapping[str, str]] = {"value": "error", "one_token": "one_token_error"}

    null: Tally
    mass: Tally
    most: Tally
    most_by_chance: Tally
    kept_mass: Tally
    sentences: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "NullAttention":
        """One that has seen nothing."""
        size = (frame.layers, frame.heads)
        return cls(
            null=Tally.zeros(SOLE, *size),
            mass=Tally.zeros(SOLE, *size),
            most=Tally.zeros(SOLE, *size),
            most_by_chance=Tally.zeros(SOLE, *size),
            kept_mass=Tally.zeros(SOLE, *size),
            sentences=Tally.zeros(SOLE, 1, 1),
        )

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        batch, layer = attention.batch, attention.layer
        self.null.add(layer, attention.received_by(batch.null_keys))
        self.mass.add(layer, attention.rows.double().sum((0, 2)))
        shared_alike = attention.given @ batch.shared_alike.to(attention.given)
        self.most.add(layer, attention.received.amax(-1).double().sum(0))
        self.most_by_chance.add(layer, shared_alike.amax(-1).double().sum(0))
        self.kept_mass.add(layer, attention.mass)
        if layer == 0:
            self.sentences.sums += len(batch.readings)

    def ratio(self) -> Ratio:
        """Null attention over all attention; the most attended tokens over all that counts."""
        null, kept_mass = self.null.sums, self.kept_mass.sums
        return Ratio(
            null,
            self.mass.sums,
            beside={
                "one_token": self.most.sums / kept_mass,
                "one_token_chance": self.most_by_chance.sums / kept_mass,
                "sentences": self.sentences.sums.expand_as(null),
            },
        )
