"""How far a head reaches (Vig & Belinkov 2019, Eq. 6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from .batch import Frame
from .layer import LayerAttention
from .statistic import Caption, Ratio, RatioStatistic
from .tally import SOLE, Tally


@dataclass
class Distance(RatioStatistic):
    """The mean of |i - j| in tokens, weighted by attention; `signed` is that of i - j, positive for looking back."""

    caption: ClassVar[Caption] = Caption(
        "Distance", "tokens", "How far the head looks: the mean distance of attending and attended token."
    )
    errors: ClassVar[Mapping[str, str]] = {"value": "error", "signed": "signed_error"}

    before: Tally
    behind: Tally
    mass: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "Distance":
        """One that has seen nothing."""
        size = (frame.layers, frame.heads)
        return cls(before=Tally.zeros(SOLE, *size), behind=Tally.zeros(SOLE, *size), mass=Tally.zeros(SOLE, *size))

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        # each side by itself, row by row: large numbers that cancel lose digits, and so do long sums in float32
        for side, distances in zip((self.before, self.behind), attention.batch.distances, strict=False):
            rows = (attention.kept * distances.to(attention.kept)).sum(-1)
            side.add(attention.layer, rows.double().sum((0, 2)))
        self.mass.add(attention.layer, attention.mass)

    def ratio(self) -> Ratio:
        """Weighted distances over all attention."""
        before, behind, mass = self.before.sums, self.behind.sums, self.mass.sums
        return Ratio(before + behind, mass, beside={"signed": (before - behind) / mass})
