"""One sentence of Tables 1 and 2: what raw attention, rollout and flow give each token, and what the model uses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from ...attribution import blank_out, flow, gradient, raw, rollout
from ...attribution.agreement import ranks, rounded
from ...engine import Store
from ...evaluation.erasure import position_scores, random_scores
from ...lab.data import AgreementExample
from ...lab.models import AgreementTransformer
from ...record import AttentionRecord, Model

METHODS = ("raw", "rollout", "flow")
BASELINES = ("random", "position")
REFERENCES = ("blank_out", "gradient", "gradient_sum")
"""Blank-out; the length of the gradient; and the size of its sum over dimensions, which is what the authors take.

LayerNorm takes out what all dimensions have in common, and in GPT-2's blocks one stands on every way from the input to
the answer: that sum is 0, and what a computer gives for it is rounding.
"""


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of one sentence; a token is [CLS], a word, or the verb's place."""

    methods: Float64[Tensor, "method layer token"]
    """The row of [CLS] at every layer, in the order of METHODS; flows are divided by their sum."""
    baselines: Float64[Tensor, "baseline token"]
    references: Float64[Tensor, "reference token"]
    saturated: Float64[Tensor, " layer"]
    """The share of the flows from [CLS] that are just their trivial cut."""
    subject: int
    """The position of the subject among the tokens, -1 where nobody knows."""
    attractors: int


def scored(
    example: AgreementExample, record: AttentionRecord, model: Model, *, seed: int = 0, number: int = 0
) -> Scored:
    """All scores of a sentence whose record holds the gradient of p(right) - p(wrong).

    `seed` and the sentence's `number` make its random scores. Blank-out puts [UNK] in the place of each token, [CLS]
    and the verb's place too, and follows the probability of the right number, as the authors do.
    """
    tokens = len(record.tokens)
    flows = flow(record, queries=[0])
    reaching = flows.map[:, 0]
    rows = (raw(record).map[:, 0].double(), rollout(record).map[:, 0].double(), shares(reaching))
    removed = blank_out(record, model, replacement="unk", target=example.number, batch_size=tokens + 1)
    lengths, sums = (gradient(record, reduce).scores.double() for reduce in ("norm", "abs_sum"))
    longest = lengths.max()  # as shares of it, sums that are only rounding still have an order
    chance = random_scores(tokens, seed, number)
    return Scored(
        methods=torch.stack(rows),
        baselines=torch.stack([chance, position_scores(record.readout, tokens)]),
        references=torch.stack([removed.scores.double(), lengths / longest, sums / longest]),
        saturated=flows.saturated,
        subject=example.subject + 1 if example.subject >= 0 else -1,
        attractors=example.attractors,
    )


def shares(flows: Float64[Tensor, "layer token"]) -> Float64[Tensor, "layer token"]:
    """Flows divided by their sum, as the paper shows them."""
    return flows / flows.sum(-1, keepdim=True)


# All sentences of Tables 1 and 2, scored for one model.


PART = 100
"""Sentences between two looks at the disk: some seconds of work."""

State = dict[str, Any]


def scored_sentences(
    model: AgreementTransformer,
    weights: str,
    examples: Sequence[AgreementExample],
    folder: Path,
    seed: int,
    watch: Callable[[int, int], None],
) -> list[Scored]:
    """The scores of all sentences in their order; each part of them is kept in `folder`.

    `weights` tells this model from others.
    """
    work = partial(_scored, model, seed)
    store = Store(folder, "model", {"weights": weights})
    parts = store.in_parts(examples, PART, work, AgreementExample.to_dict, watch)
    return [Scored(**state) for state in chain.from_iterable(parts)]


def _scored(model: AgreementTransformer, seed: int, examples: Sequence[AgreementExample], start: int) -> list[State]:
    """The scores of some sentences; gradients are of p(right) - p(wrong), one target to a run."""
    instrumented = model.instrumented()
    found: dict[int, State] = {}
    for number in sorted({example.number for example in examples}):
        places = [place for place, example in enumerate(examples) if example.number == number]
        texts = [list(examples[place].words) for place in places]
        records = instrumented.records(texts, gradients=True, target=number, quantity="difference")
        for place, record in zip(places, records, strict=True):
            found[place] = vars(scored(examples[place], record, instrumented, seed=seed, number=start + place))
    return [found[place] for place in range(len(examples))]


# How scores and references agree on the order of a sentence's tokens: by average ranks, and as the authors ranked.
# The authors' code puts dense ranks (ties share a rank, and the next rank follows at once) into the formula for
# scores without ties. Scores that are often tied then seem to agree: with half the tokens tied, independent ones get
# about +.22.


RANKS = ("authors", "average")
"""The authors' formula on dense ranks, and Spearman's correlation proper: Pearson's of average ranks."""


def dense_ranks(scores: Float[np.ndarray, " token"]) -> Int64[np.ndarray, " token"]:
    """Ranks from 1 for the smallest without gaps: ties share one, and the next score has the next.

    >>> dense_ranks(np.array([0.2, 0.7, 0.2, 0.9]))
    array([1, 2, 1, 3])
    """
    places: Int64[np.ndarray, " token"] = np.unique(rounded(scores), return_inverse=True)[1] + 1
    return places


def by_authors(
    scores: Float[np.ndarray, "row token"], references: Float[np.ndarray, "reference token"]
) -> Float64[np.ndarray, "reference row"]:
    """1 - 6 Σ d² / (n (n² - 1)) with d the difference of dense ranks, as the authors' code has it; NaN below two."""
    count = scores.shape[1]
    if count < 2:
        return np.full((len(references), len(scores)), np.nan)
    of_scores, of_references = (np.array([dense_ranks(row) for row in table]) for table in (scores, references))
    apart = of_references[:, None, :] - of_scores[None, :, :]
    found: Float64[np.ndarray, "reference row"] = 1 - 6 * (apart**2).sum(-1) / (count * (count**2 - 1))
    return found


def by_average_ranks(
    scores: Float[np.ndarray, "row token"], references: Float[np.ndarray, "reference token"]
) -> Float64[np.ndarray, "reference row"]:
    """Spearman's correlation of each row with each reference; NaN where one of them is all ties."""
    of_scores, of_references = (np.array([ranks(row) for row in table]) for table in (scores, references))
    of_scores, of_references = (table - table.mean(1, keepdims=True) for table in (of_scores, of_references))
    together = of_references @ of_scores.T
    spread = np.sqrt(np.outer((of_references**2).sum(1), (of_scores**2).sum(1)))
    found: Float64[np.ndarray, "reference row"] = np.full_like(together, np.nan)
    np.divide(together, spread, out=found, where=spread > 0)
    return found


def correlations(
    scores: Float[np.ndarray, "row token"], references: Float[np.ndarray, "reference token"]
) -> Float64[np.ndarray, "ranks reference row"]:
    """Every row with every reference, in both ways of RANKS."""
    return np.stack([by_authors(scores, references), by_average_ranks(scores, references)])
