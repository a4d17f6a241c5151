"""Whether a label is attended to, or one token that has it: what all its tokens of a sentence have, and the largest.

A head may rest on one token of each sentence, the first "the" say. Counted by parts of speech it would seem to look at
determiners. It does not: the other determiners of the sentence get nothing.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor


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
