"""Erasure: what happens to the answer when the tokens a method puts first are taken away, or alone are kept.

DeYoung et al. 2020 (ERASER), section 4, with p the probability of the predicted class: comprehensiveness is
p(text) - p(text without the first tokens), sufficiency is p(text) - p(the first tokens alone). Both are averaged over
the shares of tokens in SHARES, the area over the perturbation curve (AOPC), as in the authors' code; the formula in
their paper also counts the share 0. A token is not deleted but replaced, as in blank-out, so that positions stay.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ..attribution.comparing import Scores, round_scores
from ..record import AttentionRecord

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""The shares of tokens that are taken away or kept, each rounded up to whole tokens."""

Positions = frozenset[int]


@dataclass(frozen=True)
class Erasure:
    """Which positions are replaced, for each share: those a method puts first, and all but those."""

    without_first: tuple[Positions, ...]
    first_alone: tuple[Positions, ...]

    def comprehensiveness(self, intact: float, probability: Mapping[Positions, float]) -> float:
        """How much of the probability goes with the first tokens; higher is better."""
        return _mean_loss(intact, [probability[positions] for positions in self.without_first])

    def sufficiency(self, intact: float, probability: Mapping[Positions, float]) -> float:
        """How much of the probability the first tokens alone do not hold; lower is better."""
        return _mean_loss(intact, [probability[positions] for positions in self.first_alone])


def token_counts(tokens: int) -> tuple[int, ...]:
    """How many tokens each share is.

    >>> token_counts(10), token_counts(200)
    ((1, 1, 1, 2, 5), (2, 10, 20, 40, 100))
    """
    # rounded before, because 0.1 * 30 is a little more than 3
    return tuple(math.ceil(round(share * tokens, 9)) for share in SHARES)


def erasure(scores: Scores, erasable: Sequence[int], lots: Float64[np.ndarray, " token"]) -> Erasure:
    """What to replace to see whether a method has put the right tokens first; only `erasable` positions are touched.

    `lots` decides between equal scores, since the order of the text would favour its beginning.
    """
    values = round_scores(scores)
    order = sorted(erasable, key=lambda position: (-values[position], lots[position]))
    counts = token_counts(len(order))
    return Erasure(
        without_first=tuple(frozenset(order[:count]) for count in counts),
        first_alone=tuple(frozenset(order[count:]) for count in counts),
    )


def distinct(erasures: Collection[Erasure]) -> list[Positions]:
    """Every set of positions once, since methods that agree ask for the same."""
    return list(dict.fromkeys(p for erased in erasures for p in (*erased.without_first, *erased.first_alone)))


def _mean_loss(intact: float, probabilities: Sequence[float]) -> float:
    return sum(intact - probability for probability in probabilities) / len(probabilities)


# Scores that know nothing of the model's answer: a method must beat them before it explains anything.


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
