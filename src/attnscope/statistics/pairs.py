"""Pairs of an attending and an attended token: as such, and linked by a dependency."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT, EITHER = "dependent_to_head", "head_to_dependent", "either"
DIRECTIONS = (DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT, EITHER)
"""From the attending token to the attended one: the attended is the parent, the attending is, or one of the two."""
ANY = "any"
"""Stands for all relations together."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of tokens in the sentences of a batch."""

    sentence: Int[Tensor, " pair"]
    query: Int[Tensor, " pair"]
    key: Int[Tensor, " pair"]

    @classmethod
    def where(cls, mask: Bool[Tensor, "sentence query key"]) -> "Pairs":
        """The pairs that a mask marks."""
        return cls(*mask.nonzero(as_tuple=True))

    def __len__(self) -> int:
        return len(self.sentence)


@dataclass(frozen=True, eq=False)
class Links:
    """The linked pairs of both directions, each with its label: a position in `link_labels`.

    The askers are the tokens that have a link of some label, once for each. Every link has three labels more, for its
    relation in either direction, its direction with any relation, and for both.
    """

    pairs: Pairs
    labels: Int[Tensor, " pair"]
    asking_sentence: Int[Tensor, " asker"]
    asking_query: Int[Tensor, " asker"]
    asking_label: Int[Tensor, " asker"]


def link_labels(relations: Sequence[str]) -> list[tuple[str, str]]:
    """Every direction with every relation, and with any."""
    return [(direction, relation) for direction in DIRECTIONS for relation in (ANY, *relations)]


def links_of(
    dependent_to_head: Bool[Tensor, "sentence query key"],
    kept: Bool[Tensor, "sentence query key"],
    relations: Int[Tensor, "sentence token"],
    relation_count: int,
) -> Links:
    """The links among the pairs that count."""
    to_head = Pairs.where(dependent_to_head & kept)
    to_dependent = Pairs.where(dependent_to_head.transpose(1, 2) & kept)
    relation = torch.cat(
        [relations[to_head.sentence, to_head.query], relations[to_dependent.sentence, to_dependent.key]]
    )
    width = 1 + relation_count
    direction = torch.cat([torch.zeros(len(to_head)), torch.ones(len(to_dependent))]).long() * width
    either = torch.full_like(direction, DIRECTIONS.index(EITHER) * width)
    all_labels = torch.cat([direction, direction + 1 + relation, either, either + 1 + relation])
    pairs = Pairs(
        torch.cat([to_head.sentence, to_dependent.sentence]),
        torch.cat([to_head.query, to_dependent.query]),
        torch.cat([to_head.key, to_dependent.key]),
    )
    # each asker as one number, since those are found once much faster than columns are
    length, count = kept.shape[1], len(DIRECTIONS) * width
    askers = (((pairs.sentence * length + pairs.query) * count).repeat(4) + all_labels).unique()
    return Links(pairs, direction + 1 + relation, askers // count // length, askers // count % length, askers % count)


def wider_labels(labels: Sequence[tuple[str, str]]) -> Float64[Tensor, "label narrow"]:
    """Which labels of single links each label covers: either covers both directions, any all relations."""
    covers = [
        [direction in (EITHER, own) and relation in (ANY, of_link) for own, of_link in labels]
        for direction, relation in labels
    ]
    narrow = torch.tensor([own != EITHER and of_link != ANY for own, of_link in labels])
    return (torch.tensor(covers) & narrow).double()
