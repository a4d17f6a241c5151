"""The scores of every key for many answer tokens at once: all their rows go down the layers together.

Attention methods take one record and no further pass of the model. On a record of vectors so many rows as vectors are
wide cost one pass of fused attention a layer. Gradients take one forward pass and a backward pass for each row.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..progress import tell
from ..record import AnsweringModel, AttentionRecord, VectorRecord
from ..record.model import EMBEDDINGS
from ..record.vectors import carry, rows
from .effective import effective_of
from .flow import flow
from .gradient import reduce_gradients
from .heads import pooled_maps
from .integrated_gradients import FLAT, INCOMPLETE, STEEP, path_points
from .raw import raw
from .rerunning import blank_embeddings
from .value_weighted import value_weighted
from .without_matrix import value_lengths

BACKWARD = ("gradient", "gradient_x_input", "integrated_gradients")
METHODS_OF_ANSWERS = (
    "raw",
    "rollout",
    "layerwise_tracing",
    "flow",
    "value_weighted",
    "effective",
    *BACKWARD,
    "blank_out",
    "sampled_ablation",
)
"""What `Answer.scores` takes."""
TOGETHER = 64
"""Rows that go down the layers at once: as many as the vectors of most models are wide."""
MOST_FLOWS, LONGEST_FLOW = 32, 512
"""Of so many answer tokens, over a text of so many, exact flows are computed."""
STEPS = 16


def attention_rows(record: AttentionRecord, queries: Sequence[int], method: str) -> Float[Tensor, "row key"]:
    """The score of every key for each of these queries, by a method that follows attention."""
    asked = list(queries)
    if method == "flow":
        return _flows(record, asked)
    if method in ("rollout", "layerwise_tracing"):
        down = rolled_rows if method == "rollout" else traced_rows
        parts = []
        for first in range(0, len(asked), TOGETHER):
            tell(first, len(asked))
            parts.append(down(record, asked[first : first + TOGETHER]))
        return torch.cat(parts)
    if isinstance(record, VectorRecord) and method in ("raw", "value_weighted"):
        top = len(record.layers) - 1
        seen = rows(record.layer(top), asked)
        return (seen if method == "raw" else seen * value_lengths(record, top).unsqueeze(-2)).mean(0)
    if method == "effective":
        some = [asked[first : first + TOGETHER] for first in range(0, len(asked), TOGETHER)]
        return torch.cat([effective_of(record, part).float() for part in some])
    scores = raw(record) if method == "raw" else value_weighted(record)
    return torch.stack([scores.at(query).float() for query in asked])


def rolled_rows(record: AttentionRecord, queries: Sequence[int]) -> Float[Tensor, "row key"]:
    """Rows of the rollout with heads averaged and half a residual (abnar2020, Eq. 1), from the top layer down."""
    asked, count = list(queries), len(record.key_tokens)
    row = torch.eye(count)[asked] if count < 2 else torch.nn.functional.one_hot(torch.tensor(asked), count).float()
    if not isinstance(record, VectorRecord):
        for weights in reversed(pooled_maps(record.weights, "mean").unbind()):
            row = (row @ weights + row) / 2
        return row
    top = len(record.layers) - 1
    row = (rows(record.layer(top), asked).mean(0) + row) / 2
    for layer in reversed(range(top)):
        mixed = carry(record.layer(layer), row.unsqueeze(1).expand(-1, record.shape[1], -1)).mean(1)
        row = (mixed + row) / 2
    return row


def traced_rows(record: AttentionRecord, queries: Sequence[int]) -> Float[Tensor, "row key"]:
    """What each of these queries has traced down every layer, head by head, summed over heads (wu2020, Eq. 8 to 11)."""
    asked = list(queries)
    if not isinstance(record, VectorRecord):
        held = record.weights[-1][:, asked]
        for weights in reversed(record.weights[:-1].unbind()):
            held = held @ weights
        return held.sum(0)
    top = len(record.layers) - 1
    traced = rows(record.layer(top), asked).transpose(0, 1)
    for layer in reversed(range(top)):
        traced = carry(record.layer(layer), traced)
    return traced.sum(1)


def _flows(record: AttentionRecord, queries: list[int]) -> Float[Tensor, "row key"]:
    """Exact flows, of few queries over a text that is not long."""
    tokens = len(record.key_tokens)
    if len(queries) > MOST_FLOWS or tokens > LONGEST_FLOW:
        raise BadInput(
            f"Flow is exact, and so for at most {MOST_FLOWS} tokens of an answer over at most {LONGEST_FLOW} in all,"
            f" not {len(queries)} over {tokens}: give a shorter span=, or choose rollout."
        )
    full = record.full() if isinstance(record, VectorRecord) else record
    found = flow(full, layers=[-1], queries=queries)
    return found.map[-1, queries].float()


def gradient_rows(
    record: AttentionRecord,
    model: AnsweringModel,
    count: int,
    wanted: Sequence[Sequence[int]],
    method: str,
    *,
    signed: bool = False,
    steps: int = STEPS,
    baseline: str | None = None,
) -> tuple[Float[Tensor, "row key"], tuple[str, ...]]:
    """Scores by the gradient of the log-probability of each set of answer tokens at the embeddings of all tokens.

    `gradient` is its length, `gradient_x_input` |Σ_d x_d ∂y/∂x_d|; `integrated_gradients` averages it over so many
    `steps` on the way from a `baseline` at every position. `signed` keeps the signs of the last two.
    """
    given = model.embedded(record.inputs)
    name = EMBEDDINGS["input_ids"]
    end = given[name]
    said: tuple[str, ...] = ()
    if method == "integrated_gradients":
        found, said = _integrated(record, model, count, wanted, end, steps, baseline)
    elif method == "gradient":
        found = torch.stack(
            [reduce_gradients(slope, "norm") for _, slope in model.answer_gradients(given, count, wanted)]
        )
    else:
        found = torch.stack([(end * slope).sum(-1) for _, slope in model.answer_gradients(given, count, wanted)])
    scores = found if signed and method != "gradient" else found.abs()
    return torch.nn.functional.pad(scores, (record.added_tokens, 0)), said


def _integrated(
    record: AttentionRecord,
    model: AnsweringModel,
    count: int,
    wanted: Sequence[Sequence[int]],
    end: Float[Tensor, "key width"],
    steps: int,
    baseline: str | None,
) -> tuple[Float[Tensor, "row key"], tuple[str, ...]]:
    """Sundararajan, Taly & Yan 2017, Eq. 1, by Gauss-Legendre steps; one forward pass a step serves all rows."""
    if steps < 1:
        raise BadInput(f"steps must be at least 1, not {steps}.")
    name = EMBEDDINGS["input_ids"]
    chosen = baseline or _sound_baseline(record, model, count, end)
    start = blank_embeddings(record, model, chosen)
    found = torch.zeros(len(wanted), len(end))
    fractions, shares = path_points(steps)
    for fraction, share in zip(fractions.tolist(), shares.tolist(), strict=True):
        point = {**record.inputs, name: start + fraction * (end - start)}
        for row, (_, slope) in enumerate(model.answer_gradients(point, count, wanted)):
            found[row] += share * ((end - start) * slope).sum(-1)
    likely = [model.answer_log_probabilities([{**record.inputs, name: place}], count)[0] for place in (start, end)]
    changes = torch.stack([(likely[1] - likely[0])[list(some)].sum() for some in wanted])
    missed = (found.sum(-1) - changes).abs()
    worst = int((missed / changes.abs().clamp_min(1e-6)).argmax())
    if not bool(found.isfinite().all()):
        raise BadInput(f"The gradient at {chosen} embeddings is not finite: give another baseline=.")
    if float(missed[worst]) <= INCOMPLETE * abs(float(changes[worst])):
        return found, ()
    sentence = (
        f"with {steps} steps from {chosen} attributions miss the change of a log-probability,"
        f" {float(changes[worst]):.3g}, by up to {float(missed[worst]):.3g}: take more steps="
    )
    return found, (sentence,)


def _sound_baseline(record: AttentionRecord, model: AnsweringModel, count: int, end: Float[Tensor, "key width"]) -> str:
    """The first of unk, mask, pad and the mean embedding at which the model does not jump, as norms do at zero."""
    name = EMBEDDINGS["input_ids"]

    def length(embeddings: Float[Tensor, "key width"]) -> float:
        given = {**record.inputs, name: embeddings}
        return max(float(slope.norm()) for _, slope in model.answer_gradients(given, count, [range(count)]))

    most = STEEP * max(length(end), FLAT)
    for chosen in [*model.blank_ids, "mean"]:
        if length(blank_embeddings(record, model, chosen)) <= most:  # which no NaN is
            return chosen
    raise BadInput("Integrated gradients has no baseline here: the gradient of this model is not finite at any.")
