"""How far a head's attention follows dependency relations (Vig & Belinkov 2019, Eq. 4 and Fig. 8).

Beside each figure stands what it is worth: the share of token pairs that are linked (chance), and the alignment of a
head that always looks at one fixed offset, because syntax is mostly near.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from .batch import Batch, Frame
from .layer import LayerAttention
from .pairs import Pairs, link_labels, wider_labels
from .statistic import PARSE, Caption, Ratio, RatioStatistic
from .tally import SOLE, Tally

REACH = 10
"""Fixed offsets are tried up to so many tokens away."""
OFFSETS = torch.tensor(sorted((o for o in range(-REACH, REACH + 1) if o), key=lambda offset: (abs(offset), offset)))
"""Key minus query, the nearest first: of two equally good ones the nearer is named."""


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
    needs: ClassVar[tuple[str, ...]] = (PARSE,)
    errors: ClassVar[Mapping[str, str]] = {"value": "error", "focus": "focus_error"}

    linked: Tally
    asking: Tally
    others: Tally
    mass: Tally
    linked_pairs: Tally
    askers: Tally
    linked_at_offset: Tally
    pairs_at_offset: Tally
    pairs: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "DependencyAlignment":
        """One that has seen nothing."""
        labels = [" ".join(label) for label in link_labels(frame.relations)]
        size = (frame.layers, frame.heads)
        return cls(
            linked=Tally.zeros(labels, *size),
            asking=Tally.zeros(labels, *size),
            others=Tally.zeros(labels, *size),
            mass=Tally.zeros(SOLE, *size),
            linked_pairs=Tally.zeros(labels, 1, 1),
            askers=Tally.zeros(labels, 1, 1),
            linked_at_offset=Tally.zeros(labels, len(OFFSETS)),
            pairs_at_offset=Tally.zeros(SOLE, len(OFFSETS)),
            pairs=Tally.zeros(SOLE, 1, 1),
        )

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        links = attention.batch.links
        weights = attention.along(links.pairs)
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
        self.pairs.sums += batch.kept.sum()
        self.askers.count(links.asking_label)
        offsets = _offset_places(Pairs.where(batch.kept))
        self.pairs_at_offset.sums[0] += torch.bincount(offsets, minlength=len(OFFSETS) + 1)[:-1]
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
