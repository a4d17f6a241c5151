"""Gradient: how fast the model's answer changes with each token's embedding."""

from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, Target, TokenScores
from ..record.schema import checked
from ..record.scores import scores_of
from .rerunning import say_lacking

REDUCTIONS = ("norm", "squared", "abs_sum")
CANCELLED = 1e-5
"""The share of a gradient's length below which the sum of its dimensions is rounding: real sums are far above it."""


def reduce_gradients(gradients: Float[Tensor, "key width"], reduce: str) -> Float[Tensor, " key"]:
    """One number for each token: |Σ_d g_d| (abs_sum), Σ_d g_d² (squared) or (Σ_d g_d²)^½ (norm)."""
    if reduce == "abs_sum":
        return gradients.sum(-1).abs()
    if reduce == "squared":
        return gradients.square().sum(-1)
    if reduce == "norm":
        return gradients.square().sum(-1).sqrt()
    raise BadInput(f"reduce={reduce!r} is not one of {', '.join(REDUCTIONS)}.")


def captured_gradients(
    record: AttentionRecord, target: Target | int | str | None
) -> tuple[Float[Tensor, "key width"], Float[Tensor, "key width"]]:
    """The embeddings of a record and the gradients at them, if they are of this target (None: of whichever it is)."""
    if record.embeddings is None or record.embedding_gradients is None or record.target is None:
        sentence = "This record holds no gradients: take it with model.record(text, gradients=True)."
        raise BadInput(say_lacking(record, sentence))
    captured = record.target
    alone = () if captured.against else (captured.outcome, captured.index)
    if target is not None and target not in (captured, *alone):
        raise BadInput(
            f"The gradients of this record are of {captured}, not of {target!r}:"
            f" take it with model.record(text, gradients=True, target={target!r})."
        )
    return record.embeddings, record.embedding_gradients


@checked
def gradient(
    record: AttentionRecord,
    reduce: str = "norm",
    target: Target | int | str | None = None,
    normalize: str | None = None,
) -> TokenScores:
    """The gradient of the captured target with respect to each key token's embedding, as one number.

    Abnar & Zuidema 2020, section 2 and their code: `reduce="abs_sum"`, |Σ_d ∂(p₀ - p₁)/∂x_d|, of a record taken with
    `quantity="difference"`. Wu, Nguyen & Ong 2020, Eq. 13: `reduce="squared"`, Σ_d (∂y/∂x_d)², with
    `normalize="softmax"` over all tokens, of a record taken with `target="sum"` and `quantity="probability"`. x is the
    token's embedding (`record.embeddings`), d its dimensions. The target is fixed at capture; `target` only makes sure
    of it.

    The default is the gradient's length, not Abnar and Zuidema's sum: LayerNorm takes out what all dimensions have in
    common, so that in a model with one on every way (BERT, GPT-2) the sum is 0 but for rounding. Scores then say so.
    """
    _, gradients = captured_gradients(record, target)
    scores = reduce_gradients(gradients, reduce)
    if normalize not in (None, "softmax"):
        raise BadInput(f'normalize is "softmax" or None, not {normalize!r}.')
    return scores_of(
        record,
        "gradient",
        scores if normalize is None else scores.softmax(-1),
        warnings=_cancellation(gradients) if reduce == "abs_sum" else (),
    )


def _cancellation(gradients: Float[Tensor, "key width"]) -> tuple[str, ...]:
    """A sentence where the dimensions of every token's gradient add up to nothing."""
    if bool((reduce_gradients(gradients, "abs_sum") > CANCELLED * reduce_gradients(gradients, "norm")).any()):
        return ()
    sentence = 'The gradients sum to 0 over dimensions, as LayerNorm makes them: these scores are rounding; use "norm".'
    return (sentence,)
