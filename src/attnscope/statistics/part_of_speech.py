"""Which parts of speech a head attends to, and from (Vig & Belinkov 2019, Eq. 3)."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from .batch import Batch, Frame
from .layer import LayerAttention
from .statistic import TAGS, Caption, Ratio, RatioStatistic
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

    caption: ClassVar[Caption] = Caption(
        "Part of speech",
        "share of attention",
        "How much of the head’s attention goes to, or comes from, tokens of a tag.",
    )
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


# Whether a label is attended to, or one token that has it: what all its tokens of a sentence have, and the largest.
# A head may rest on one token of each sentence, the first "the" say. Counted by parts of speech it would seem to look
# at determiners. It does not: the other determiners of the sentence get nothing.


class OfLabels(NamedTuple):
    """What the tokens of each label have, what the largest of them in each sentence has, and what it would by chance.

    By chance is if the tokens of a label in a sentence shared what they have by the pairs each of them is in.
    """

    sums: Float64[Tensor, "label head"]
    largest: Float64[Tensor, "label head"]
    largest_by_chance: Float64[Tensor, "label head"]


def of_labels(
    numbers: Float[Tensor, "sentence head token"],
    pairs: Int[Tensor, "sentence token"],
    labels: Int[Tensor, "sentence token"],
    count: int,
) -> OfLabels:
    """Attention by the labels of tokens, with each token's number of pairs; labels past the last are no label."""
    numbers, weights = numbers.to("cpu", torch.float64), pairs.double().unsqueeze(1)
    sums = _by_label("sum", numbers, labels, count)
    largest = _by_label("amax", numbers, labels, count)
    all_pairs = _by_label("sum", weights, labels, count)
    share = _by_label("amax", weights, labels, count) / all_pairs.clamp_min(1)
    return OfLabels(sums.sum(0).T, largest.sum(0).T, (sums * share).sum(0).T)


def _by_label(
    how: str, numbers: Float64[Tensor, "sentence head token"], labels: Int[Tensor, "sentence token"], count: int
) -> Float64[Tensor, "sentence head label"]:
    places = labels.unsqueeze(1).expand(numbers.shape)
    unlabelled = numbers.new_zeros(*numbers.shape[:2], count + 1)
    return unlabelled.scatter_reduce_(2, places, numbers, how)[..., :-1]
