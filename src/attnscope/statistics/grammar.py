"""The grammar a head follows: parts of speech, and dependencies between words (Vig & Belinkov 2019, section 5.3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from torch import Tensor

from .batch import Batch, Frame, Pairs, link_labels, wider_labels
from .statistic import (
    PARSE,
    ROWS,
    SOLE,
    TAGS,
    Additive,
    Caption,
    LayerAttention,
    Need,
    Ratio,
    RatioStatistic,
    Reads,
    Tally,
    per_corpus,
    per_head,
)

# Which parts of speech a head attends to, and from (Vig & Belinkov 2019, Eq. 3).


TO_AND_FROM = ("to", "from")


def _tag_labels(frame: Frame) -> list[str]:
    return [f"{direction} {tag}" for direction in TO_AND_FROM for tag in frame.tags]


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
    needs: ClassVar[tuple[Need, ...]] = (TAGS,)
    reads: ClassVar[Reads] = ("given", "received")

    along: Tally = per_head(_tag_labels)
    largest: Tally = per_head(_tag_labels)
    largest_by_chance: Tally = per_head(_tag_labels)
    mass: Tally = per_head()
    pairs_along: Tally = per_corpus(_tag_labels)
    pairs: Tally = per_corpus()

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
        self.pairs.sums += batch.pairs_to.sum()

    def ratio(self) -> Ratio:
        """Attention to and from each tag over all attention."""
        # directions have no space in them; merging appends labels, so they are put in order again
        labels = [label.partition(" ") for label in self.along.labels]
        order = sorted(range(len(labels)), key=lambda place: TO_AND_FROM.index(labels[place][0]))
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


# How far a head's attention follows dependency relations (Vig & Belinkov 2019, Eq. 4 and Fig. 8).
# Beside each figure stands what it is worth: the share of token pairs that are linked (chance), and the alignment of a
# head that always looks at one fixed offset, because syntax is mostly near.


REACH = 10
"""Fixed offsets are tried up to so many tokens away."""
OFFSETS = torch.tensor(sorted((o for o in range(-REACH, REACH + 1) if o), key=lambda offset: (abs(offset), offset)))
"""Key minus query, the nearest first: of two equally good ones the nearer is named."""


def _link_labels(frame: Frame) -> list[str]:
    return [" ".join(label) for label in link_labels(frame.relations)]


@dataclass
class DependencyAlignment(RatioStatistic):
    """DepAl: the share of a head's attention between linked tokens, by direction and relation.

    Self-attention and attention within a word count as not linked. `focus` asks less of a head: of the attention given
    by tokens that have such a link, the share that follows it (after Clark et al. 2019, who take the largest weight).
    `focus_of_others` is what the other tokens of the sentence give, on average, to the same targets: a head that looks
    at the verb from everywhere follows no relation. `links` counts the pairs behind it.
    """

    caption: ClassVar[Caption] = Caption(
        "Dependency alignment",
        "share of attention",
        "How much of the head’s attention runs along a syntactic dependency.",
    )
    needs: ClassVar[tuple[Need, ...]] = (PARSE,)
    reads: ClassVar[Reads] = ("given", "received", "linked")
    errors: ClassVar[Mapping[str, str]] = {"value": "error", "focus": "focus_error"}

    linked: Tally = per_head(_link_labels)
    asking: Tally = per_head(_link_labels)
    others: Tally = per_head(_link_labels)
    mass: Tally = per_head()
    linked_pairs: Tally = per_corpus(_link_labels)
    askers: Tally = per_corpus(_link_labels)
    linked_at_offset: Tally = per_corpus(_link_labels, len(OFFSETS))
    pairs_at_offset: Tally = per_corpus(SOLE, len(OFFSETS))
    pairs: Tally = per_corpus()

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        links, weights = attention.batch.links, attention.linked
        others = attention.received[links.pairs.sentence, :, links.pairs.key] - weights
        others = others / attention.batch.other_queries(links.pairs).unsqueeze(1).to(others.device)
        self.linked.add_rows(attention.layer, links.labels, weights)
        self.others.add_rows(attention.layer, links.labels, others)
        asking = attention.given[links.asking_sentence, :, links.asking_query]
        self.asking.add_rows(attention.layer, links.asking_label, asking)
        self.mass.add(attention.layer, attention.mass)
        if attention.layer == 0:
            self._count(attention.batch)

    def _count(self, batch: Batch) -> None:
        """What the corpus says by itself."""
        links = batch.links
        self.pairs.sums += batch.pairs_to.sum()
        self.askers.count(links.asking_label)
        self.pairs_at_offset.sums[0] += torch.tensor([_pairs_at(offset, batch) for offset in OFFSETS.tolist()])
        offsets = _offset_places(links.pairs)
        self.linked_pairs.count(links.labels)
        cells = self.linked_at_offset.sums.new_zeros(len(self.linked.labels), len(OFFSETS) + 1)
        cells.index_put_((links.labels, offsets), cells.new_ones(len(offsets)), accumulate=True)
        self.linked_at_offset.sums += cells[:, :-1]

    def ratio(self) -> Ratio:
        """Linked attention over all attention, beside chance and the best fixed offset."""
        # directions have no space in them, relations may
        labels = [(label.partition(" ")[0], label.partition(" ")[2]) for label in self.linked.labels]
        wider = wider_labels(labels)
        linked, others, linked_pairs, linked_at_offset = (
            torch.einsum("ln,n...->l...", wider, tally.sums)
            for tally in (self.linked, self.others, self.linked_pairs, self.linked_at_offset)
        )
        best_offset, offset_value = _best(linked_at_offset / self.pairs_at_offset.sums)
        focus_offset, focus_offset_value = _best(linked_at_offset / self.askers.sums.flatten(1))
        return Ratio(
            above=linked,
            below=self.mass.sums.expand_as(linked),
            labels={"direction": [label[0] for label in labels], "relation": [label[1] for label in labels]},
            beside={
                "chance": (linked_pairs / self.pairs.sums).flatten(),
                "best_offset": best_offset,
                "offset_value": offset_value,
                "focus": linked / self.asking.sums,
                "focus_of_others": others / self.asking.sums,
                "focus_offset": focus_offset,
                "focus_offset_value": focus_offset_value,
                "links": linked_pairs.flatten(),
            },
        )


def _pairs_at(offset: int, batch: Batch) -> int:
    """How many pairs count whose key stands so far behind the query: the sum of a diagonal of `kept`."""
    if batch.frame.causal and offset > 0:
        return 0
    width = max(0, batch.longest - abs(offset))
    queries = batch.kept_queries[:, max(0, -offset) :][:, :width]
    return int((queries & batch.kept_keys[:, max(0, offset) :][:, :width]).sum())


def _offset_places(pairs: Pairs) -> Int64[Tensor, " pair"]:
    """The place of each pair's offset in `OFFSETS`, past the last where it is too far or none."""
    places = torch.full((2 * REACH + 1,), len(OFFSETS))
    places[OFFSETS + REACH] = torch.arange(len(OFFSETS))
    offset = pairs.key - pairs.query
    return torch.where(offset.abs() <= REACH, places[offset.clamp(-REACH, REACH) + REACH], len(OFFSETS))


def _best(
    values: Float64[Tensor, "label offset"],
) -> tuple[Int64[Tensor, " label"], Float64[Tensor, " label"]]:
    """The offset of the largest value, and that value; offsets that never occur are no candidates."""
    best = values.nan_to_num(nan=-1.0).max(1)
    return OFFSETS[best.indices], best.values.clamp_min(0.0)


# What the attended tokens are in their sentence: subjects, determiners, … (Vig & Belinkov 2019, Fig. 9).


def _relations(frame: Frame) -> tuple[str, ...]:
    return frame.relations


@dataclass
class DependencyType(RatioStatistic):
    """Eq. 3 with the relation of the attended token to its own head in place of its tag."""

    caption: ClassVar[Caption] = Caption(
        "Relation attended to",
        "share of attention",
        "How much of the head’s attention goes to tokens that bear a relation.",
    )
    needs: ClassVar[tuple[Need, ...]] = (PARSE,)
    reads: ClassVar[Reads] = ("given", "received")

    to: Tally = per_head(_relations)
    mass: Tally = per_head()
    pairs_to: Tally = per_corpus(_relations)
    pairs: Tally = per_corpus()

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        batch, relations = attention.batch, attention.batch.relations.flatten()
        self.to.add_rows(attention.layer, relations, attention.received.transpose(1, 2).flatten(0, 1))
        self.mass.add(attention.layer, attention.mass)
        if attention.layer == 0:
            self.pairs_to.count(relations, batch.pairs_to.flatten().double())
            self.pairs.sums += batch.pairs_to.sum()

    def ratio(self) -> Ratio:
        """Attention to tokens of each relation over all attention."""
        return Ratio(
            above=self.to.sums,
            below=self.mass.sums.expand_as(self.to.sums),
            labels={"relation": self.to.labels},
            beside={"chance": (self.pairs_to.sums / self.pairs.sums).flatten()},
        )


# How likely two tokens are linked, by their distance: what the corpus itself says of position and syntax.


@dataclass
class DependencyByDistance(Additive):
    """P(linked | distance) over pairs of tokens that count, whichever of the two is the head.

    A head that always looks at the token before has as its dependency alignment the first figure of this curve
    (Vig & Belinkov 2019, section 5.3.3: .42, .07 and .02 at distances 1, 5 and 10).
    """

    caption: ClassVar[Caption] = Caption(
        "Dependency by distance",
        "share of pairs",
        "A property of the corpus: how likely two tokens are linked, by their distance.",
    )
    needs: ClassVar[tuple[Need, ...]] = (PARSE,)
    reads: ClassVar[Reads] = ROWS

    linked: Tally = field(default_factory=lambda: Tally.zeros(()))
    pairs: Tally = field(default_factory=lambda: Tally.zeros(()))

    @classmethod
    def empty(cls, frame: Frame) -> "DependencyByDistance":  # noqa: ARG003 -- statistics are all made alike
        """One that has seen nothing."""
        return cls()

    def update(self, attention: LayerAttention) -> None:
        """Take in one batch; its attention does not matter, so only the first layer does it."""
        if attention.layer == 0:
            batch = attention.batch
            back = batch.kept.tril(batch.queries.start - 1)
            linked = batch.dependent_to_head | batch.head_to_dependent
            self.pairs = self.pairs.plus(_by_distance(back, batch))
            self.linked = self.linked.plus(_by_distance(back & linked, batch))

    def result(self) -> pd.DataFrame:
        """The table: distance, value, and the counts behind it."""
        linked = dict(zip(self.linked.labels, self.linked.sums.tolist(), strict=True))
        pairs = dict(zip(self.pairs.labels, self.pairs.sums.tolist(), strict=True))
        distances = sorted(pairs, key=int)
        table = pd.DataFrame(
            {
                "distance": np.array([int(distance) for distance in distances], dtype=np.int64),
                "pairs": np.array([pairs[distance] for distance in distances]),
                "linked": np.array([linked.get(distance, 0.0) for distance in distances]),
            }
        )
        table.insert(1, "value", table["linked"] / table["pairs"])
        return table

    def by_layer(self) -> None:
        """It is the same for every layer."""


def _by_distance(pairs: Bool[Tensor, "sentence query key"], batch: Batch) -> Tally:
    _, query, key = pairs.nonzero(as_tuple=True)
    distances, counts = (query + batch.queries.start - key).unique(return_counts=True)
    return Tally(tuple(str(distance) for distance in distances.tolist()), counts.double())
