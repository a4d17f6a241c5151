"""One sentence of Tables 1 and 2: what raw attention, rollout and flow give each token, and what the model uses."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from ...attribution import blank_out, flow, gradient, raw, rollout
from ...evaluation.baselines import position_scores, random_scores
from ...lab.data import AgreementExample
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
