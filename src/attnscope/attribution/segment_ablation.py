"""What an answer loses without some segments of its context: each left out in turn, exactly; or many by chance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..errors import BadInput, check_number
from ..record import AnsweringModel, AttentionRecord
from ..record.model import EMBEDDINGS, Inputs
from .blank_out import REPLACEMENTS, blank_rows, without
from .rerunning import blank_embeddings

if TYPE_CHECKING:
    import pandas as pd

IDS = "input_ids"
Groups = tuple[list[list[int]], tuple[str, ...], tuple[str, ...]]
"""The places of each segment in the inputs, what it is called, and of what kind it is."""
PENALTY = 0.01
"""The Lasso's alpha, on log-odds for each answer token: that of ContextCite."""
RESAMPLED = 200
"""How many times masks are drawn again for an interval."""
BETWEEN = (0.025, 0.975)
SURE = 1e-12
"""A probability that is nearer to one than this has this one's log-odds."""


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked again and again: how likely is this answer without some of what stands before it?"""

    record: AttentionRecord
    model: AnsweringModel
    count: int
    """How many tokens the answer has, which are the last."""
    replacement: str

    def ask(self, runs: Sequence[Sequence[int]], batch_size: int) -> Float[Tensor, "run answer_token"]:
        """The log-probability of each answer token, in each run without some places of the inputs."""
        if self.replacement not in REPLACEMENTS:
            raise BadInput(f"There is no replacement {self.replacement!r}: choose one of {', '.join(REPLACEMENTS)}.")
        return self.model.answer_log_probabilities([self._inputs(some) for some in runs], self.count, batch_size)

    def _inputs(self, places: Sequence[int]) -> Inputs:
        if not places:
            return self.record.inputs
        if self.replacement == "delete":
            left = without(self.record.inputs, IDS, places)
            if len(left[IDS]) <= self.count:
                raise BadInput("Without this segment nothing stands before the answer: choose a finer level.")
            return left
        if self.replacement != "zero":
            ids = self.record.inputs[IDS].clone()
            ids[list(places)] = self._blank_id
            return {**self.record.inputs, IDS: ids}
        rows = blank_rows(self._embeddings, torch.zeros_like(self._embeddings), places)
        return {**self.record.inputs, EMBEDDINGS[IDS]: rows}

    @cached_property
    def _blank_id(self) -> int:
        blank_embeddings(self.record, self.model, self.replacement)  # refuses what the model has not
        return self.model.blank_ids[self.replacement]

    @cached_property
    def _embeddings(self) -> Float[Tensor, "key width"]:
        return self.model.embedded(self.record.inputs)[EMBEDDINGS[IDS]]


@dataclass(frozen=True, eq=False)
class Ablation:
    """The log-probability of every answer token, with the whole context and without each segment."""

    segments: tuple[str, ...]
    kinds: tuple[str, ...]
    before: Float[Tensor, " answer_token"]
    after: Float[Tensor, "segment answer_token"]

    @property
    def drops(self) -> Float[Tensor, "segment answer_token"]:
        """By how much each segment's absence lets each token's log-probability fall."""
        return self.before - self.after

    def of_tokens(self, wanted: Sequence[Sequence[int]]) -> Float[Tensor, "row segment"]:
        """The fall of the log-probability of each set of tokens, which is the sum of those of its tokens."""
        return torch.stack([self.drops[:, list(some)].sum(-1) for some in wanted])


def leave_one_out(question: Question, groups: Groups, batch_size: int = 16) -> Ablation:
    """Each segment in turn is taken away, and the answer's tokens are asked for again: a run for each, and one more."""
    places, labels, kinds = groups
    found = question.ask([[], *places], batch_size)
    return Ablation(labels, kinds, found[0], found[1:])


# ---- many at once, by chance


@dataclass(frozen=True, eq=False)
class Sample:
    """What an answer's tokens are worth under masks that keep segments by chance, and the linear model of it."""

    segments: tuple[str, ...]
    kinds: tuple[str, ...]
    masks: Bool[Tensor, "mask segment"]
    """True where a segment was kept."""
    log_probabilities: Float[Tensor, "mask answer_token"]
    seed: int

    def of_tokens(self, wanted: Sequence[Sequence[int]]) -> Float[Tensor, "row segment"]:
        """The weight of each segment for each set of tokens."""
        return torch.stack([self.weights(some) for some in wanted])

    def weights(self, tokens: Sequence[int] | None = None) -> Float[Tensor, " segment"]:
        """What each segment adds to the log-odds of the answer, or of some of its tokens, where it is kept."""
        response, count = self._response(tokens)
        return torch.from_numpy(fit_sparse(self.masks.numpy(), response / count, PENALTY) * count)

    def intervals(self, tokens: Sequence[int] | None = None) -> Float[Tensor, "segment 2"]:
        """Where 95% of these weights lie when the masks are drawn again from themselves, with replacement."""
        response, count = self._response(tokens)
        random = np.random.default_rng(self.seed)
        masks = self.masks.numpy()
        drawn = [random.integers(len(masks), size=len(masks)) for _ in range(RESAMPLED)]
        weights = np.stack([fit_sparse(masks[some], response[some] / count, PENALTY) * count for some in drawn])
        return torch.from_numpy(np.quantile(weights, BETWEEN, axis=0).T.copy())

    def _response(self, tokens: Sequence[int] | None) -> tuple[np.ndarray, int]:
        """The log-odds of all these tokens together, under each mask; and how many tokens they are."""
        chosen = self.log_probabilities if tokens is None else self.log_probabilities[:, list(tokens)]
        together = chosen.double().sum(-1).clamp_max(math.log1p(-SURE))
        return (together - torch.log(-torch.expm1(together))).numpy(), chosen.shape[1]

    def to_frame(self) -> "pd.DataFrame":
        """A table of segment, weight, and the interval of the weight, low to high."""
        import pandas as pd

        low, high = self.intervals().unbind(-1)
        columns = {"weight": self.weights(), "low": low, "high": high}
        return pd.DataFrame(
            {"segment": list(self.segments), **{name: values.tolist() for name, values in columns.items()}}
        )


def sampled_ablation(
    question: Question, groups: Groups, masks: int = 64, seed: int = 0, batch_size: int = 16
) -> Sample:
    """Ask for the answer under masks that keep each segment by chance 1/2.

    Cohen-Wang et al. 2024 (ContextCite: Attributing Model Generation to Context), section 3: the surrogate is
    logit p(answer | mask) ≈ weights · mask + bias, fitted with an l1 penalty, 0.01 on standardised masks and log-odds
    for each answer token. Our `Sample.weights` are their attribution scores.
    """
    check_number("masks", masks, 2, 10_000)
    check_number("seed", seed, 0)
    places, labels, kinds = groups
    random = np.random.default_rng(seed)
    kept = random.random((masks, len(places))) < 1 / 2
    runs = [[place for some, keep in zip(places, mask, strict=True) if not keep for place in some] for mask in kept]
    found = question.ask([[], *runs], batch_size)[1:]
    return Sample(labels, kinds, torch.from_numpy(kept), found, seed)


def fit_sparse(masks: np.ndarray, response: np.ndarray, penalty: float, rounds: int = 1000) -> np.ndarray:
    """The weights of masks in a Lasso: least squares over 2n, plus `penalty` times the weights of standardised masks.

    By coordinate descent: each weight in turn is what is left for it, moved towards zero by the penalty. A mask that is
    always the same has no weight.
    """
    features = masks.astype(np.float64)
    spread = features.std(0)
    varies = spread > 0
    scaled = np.where(varies, (features - features.mean(0)) / np.where(varies, spread, 1.0), 0.0)
    left = response - response.mean()
    weights = np.zeros(features.shape[1])
    for _ in range(rounds):
        moved = 0.0
        for place in np.flatnonzero(varies):
            aim = weights[place] + scaled[:, place] @ left / len(left)
            new = np.sign(aim) * max(abs(aim) - penalty, 0.0)
            left -= (new - weights[place]) * scaled[:, place]
            moved = max(moved, abs(new - weights[place]))
            weights[place] = new
        if moved < 1e-10 * max(1.0, float(np.abs(weights).max(initial=0.0))):
            break
    return weights / np.where(varies, spread, 1.0)
