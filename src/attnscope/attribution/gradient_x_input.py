"""Gradient times input: what each token's embedding adds to the answer, to first order."""

from ..record import AttentionRecord, Target, TokenScores
from ..record.schema import checked
from ..record.scores import scores_of
from .gradient import captured_gradients


@checked
def gradient_x_input(
    record: AttentionRecord, target: Target | int | str | None = None, signed: bool = False
) -> TokenScores:
    """The gradient of the captured target times the embedding, summed over dimensions: |Σ_d x_d ∂y/∂x_d|.

    Shrikumar et al. 2016 (Not Just a Black Box). x is the embedding of a key token (`record.embeddings`), y the target;
    `signed=True` keeps the sign, positive where the token speaks for the target. It is not the "input gradients" of
    Abnar & Zuidema 2020, which are not multiplied by the input: that is `gradient`.
    """
    embeddings, gradients = captured_gradients(record, target)
    products = (embeddings * gradients).sum(-1)
    return scores_of(record, "gradient_x_input", products if signed else products.abs())
