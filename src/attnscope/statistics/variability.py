"""Whether a head looks at positions or at content: how its attention varies over texts (Vig & Belinkov 2019, Eq. 5)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64
from torch import Tensor

from .batch import Frame
from .layer import LayerAttention
from .statistic import Caption, Ratio, RatioStatistic
from .tally import SOLE, Additive, Tally

POSITIONS = 10
"""The first N tokens are looked at, so that there are enough texts for every position."""


def _blocks(attention: LayerAttention) -> Float64[Tensor, "sentence head query key"] | None:
    """The attention among the first tokens of each sentence that has as many; None if none has."""
    readings, starts = attention.batch.readings, attention.batch.first_counted
    skips_special = attention.batch.frame.null == "special"
    blocks = [
        attention.kept[sentence, :, start : start + POSITIONS, start : start + POSITIONS]
        for sentence, (reading, start) in enumerate(zip(readings, starts, strict=True))
        if start + POSITIONS <= len(reading) and not (skips_special and any(reading.special[start : start + POSITIONS]))
    ]
    return torch.stack(blocks).to("cpu", torch.float64) if blocks else None


@dataclass
class Deviations(RatioStatistic):
    """The second pass: absolute deviations from the means, over twice the attention; 0 for one same map, at most 1.

    Without some of the texts the means would be others. `signs` says how the deviations follow the means, to first
    order, so that standard errors by leaving out texts are right though the corpus is not read again for each.
    """

    first_tokens: ClassVar[int] = POSITIONS

    means: Float64[Tensor, "layer head query key"]
    deviations: Tally
    mass: Tally
    maps: Tally
    signs: Tally
    sentences: Tally

    @classmethod
    def after(cls, first: "Variability", frame: Frame) -> "Deviations":
        """One that has seen nothing, for the means of the first pass."""
        size, maps = (frame.layers, frame.heads), first.maps.blank()
        return cls(
            means=first.means(),
            deviations=Tally.zeros(SOLE, *size),
            mass=Tally.zeros(SOLE, *size),
            maps=maps,
            signs=maps.blank(),
            sentences=Tally.zeros(SOLE, 1, 1),
        )

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        blocks = _blocks(attention)
        if blocks is not None:
            away = blocks - self.means[attention.layer]
            self.deviations.add(attention.layer, away.abs().sum((0, 2, 3)))
            self.mass.add(attention.layer, blocks.sum((0, 2, 3)))
            self.maps.sums[0, attention.layer] += blocks.sum(0)
            self.signs.sums[0, attention.layer] += away.sign().sum(0)
            self.sentences.sums += len(blocks) * (attention.layer == 0)

    def ratio(self) -> Ratio:
        """Deviations over twice the attention."""
        sentences = self.sentences.sums
        shift = self.maps.sums / sentences.flatten() - self.means
        deviations = self.deviations.sums - (shift * self.signs.sums).sum((-2, -1))
        return Ratio(deviations, 2 * self.mass.sums, beside={"sentences": sentences.expand_as(deviations)})


@dataclass
class Variability(Additive):
    """The first pass: the mean attention between the first tokens of a text, over all texts that have as many.

    Low variability: the head looks at positions, whatever stands there. High variability: it looks at content.
    """

    caption: ClassVar[Caption] = Caption(
        "Variability",
        "share",
        "How much the pattern changes with the text: 0 is bound to position alone, 1 to content.",
    )
    needs: ClassVar[tuple[str, ...]] = ()
    second_pass: ClassVar[type[Deviations]] = Deviations

    maps: Tally
    sentences: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "Variability":
        """One that has seen nothing."""
        return cls(Tally.zeros(SOLE, frame.layers, frame.heads, POSITIONS, POSITIONS), Tally.zeros(SOLE, 1, 1))

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        blocks = _blocks(attention)
        if blocks is not None:
            self.maps.sums[0, attention.layer] += blocks.sum(0)
            self.sentences.sums += len(blocks) * (attention.layer == 0)

    def means(self) -> Float64[Tensor, "layer head query key"]:
        """The mean map of each head; all NaN where no text was long enough."""
        return self.maps.sums[0] / self.sentences.sums.flatten()
