"""What drives the scores of words in any attention classifier: one exact term for each group of its weights.

Along minus the gradient of the loss over all texts, without dropout, the scores of a word alone change by

    ds_e/dτ = - Σ_g ∂s_e/∂g · ∂ℓ/∂g    and    da_e/dτ = - Σ_g ∂a_e/∂g · ∂ℓ/∂g

over the groups g: embeddings, encoder (affine layer or LSTM), output (W) and context (V). Nothing is approximated,
where Sun & Lu 2020 take tanh x for x.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...capture.watching import evaluated
from ..data.packed import PackedTexts
from ..models.attention_classifier import AttentionClassifier
from ..polarity import TEXTS, padded_batches, scores_alone
from .score_terms import penalty_value

GROUPS = ("embeddings", "encoder", "output", "context")


@dataclass(frozen=True, eq=False)
class GroupTerms:
    """The terms of the chosen words by group; their sums are the true derivatives."""

    tokens: Int[Tensor, " token"]
    polarity: Mapping[str, Float[Tensor, "token logit"]]
    attention: Mapping[str, Float[Tensor, " token"]]


def group_terms(
    model: AttentionClassifier,
    texts: PackedTexts,
    tokens: Sequence[int] | Int[Tensor, " token"],
    *,
    penalty: int | float = 0.0,
    penalty_kind: str = "absolute",
) -> GroupTerms:
    """The terms for these words, by their numbers, over all of these texts; `penalty` is c of that on V·W.

    It takes one backward pass for each word and score, so choose few words.
    """
    chosen = torch.as_tensor(tokens, dtype=torch.long)
    with torch.enable_grad(), evaluated(model, model):
        slopes = loss_slopes(model, texts, penalty=penalty, penalty_kind=penalty_kind)
        own = slopes.pop("embeddings.weight")[chosen]
        shared = {name: weights for name, weights in model.named_parameters() if name in slopes}
        vectors = model.embeddings.weight.detach()[chosen].requires_grad_()
        polarity, attention = scores_alone(model, vectors)
        rows = []
        # words alone do not touch each other: only its own vector and the shared weights move a score
        for place in range(len(chosen)):
            for score in (*polarity[place], attention[place]):
                found = torch.autograd.grad(score, [vectors, *shared.values()], retain_graph=True, allow_unused=True)
                row = dict.fromkeys(GROUPS, polarity.new_zeros(()))
                if found[0] is not None:
                    row["embeddings"] = -(found[0][place] * own[place]).sum()
                for name, slope in zip(shared, found[1:], strict=True):
                    if slope is not None:
                        row[_group(name)] = row[_group(name)] - (slope * slopes[name]).sum()
                rows.append(torch.stack([row[group] for group in GROUPS]))
    table = torch.stack(rows).detach().reshape(len(chosen), -1, len(GROUPS))
    return GroupTerms(
        tokens=chosen,
        polarity={group: table[:, :-1, place] for place, group in enumerate(GROUPS)},
        attention={group: table[:, -1, place] for place, group in enumerate(GROUPS)},
    )


def loss_slopes(
    model: AttentionClassifier, texts: PackedTexts, *, penalty: int | float = 0.0, penalty_kind: str = "absolute"
) -> dict[str, Tensor]:
    """∂ℓ/∂ of every weight by its name, over all texts; the model is as it is, so put it in evaluation mode before."""
    weights = dict(model.named_parameters())
    slopes = {name: torch.zeros_like(tensor) for name, tensor in weights.items()}
    labels = torch.from_numpy(texts.labels)
    for place, (ids, real) in enumerate(padded_batches(texts, TEXTS)):
        of = labels[place * TEXTS : place * TEXTS + len(ids)]
        loss = model.loss(model(ids, real), of) * len(ids) / len(texts)
        _add(slopes, torch.autograd.grad(loss, list(weights.values())))
    if penalty:
        loss = penalty_value(model.output.weight @ model.context, penalty, penalty_kind)
        _add(slopes, torch.autograd.grad(loss, list(weights.values()), allow_unused=True))
    return slopes


def _add(slopes: dict[str, Tensor], found: Sequence[Tensor | None]) -> None:
    for name, slope in zip(slopes, found, strict=True):
        if slope is not None:
            slopes[name] += slope


def _group(name: str) -> str:
    """The group of a weight: affine and LSTM are the encoder."""
    first = name.partition(".")[0]
    return first if first in GROUPS else "encoder"
