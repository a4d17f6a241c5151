"""Scores that know nothing of the model's answer: a method must beat them before it explains anything."""

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..record import AttentionRecord

BASELINES = ("random", "position", "frequency")


def random_scores(count: int, seed: int, text: int) -> Float[Tensor, " token"]:
    """Even random numbers: the same for the same seed and number of the text, whatever was computed before."""
    return torch.from_numpy(np.random.default_rng([seed, text]).random(count))


def position_scores(readout: Float[Tensor, " query"], count: int) -> Float[Tensor, " token"]:
    """The nearer to the read-out, the higher: minus the distance to it, expected under the read-out.

    For a classifier that reads [CLS] the first words are highest, for a language model the last ones.
    """
    distance = (torch.arange(len(readout)).unsqueeze(1) - torch.arange(count)).abs().double()
    return -(readout.double() @ distance)


def frequency_scores(tokens: Iterable[str], counts: Mapping[str, int]) -> Float[Tensor, " token"]:
    """The rarer among the texts given, the higher: minus how often the token occurs in them."""
    return -torch.tensor([counts.get(token, 0) for token in tokens], dtype=torch.float64)


def baseline_scores(
    record: AttentionRecord, counts: Mapping[str, int], seed: int, text: int
) -> dict[str, Float[Tensor, " token"]]:
    """Every baseline on one record, in the order of BASELINES."""
    count = len(record.key_tokens)
    scores = (
        random_scores(count, seed, text),
        position_scores(record.readout, count),
        frequency_scores(record.key_tokens, counts),
    )
    return dict(zip(BASELINES, scores, strict=True))
