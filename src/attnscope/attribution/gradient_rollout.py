"""Gradient-weighted rollout: only attention that speaks for the answer is rolled out."""

from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, TokenScores
from ..record.schema import checked
from ..record.scores import scores_of
from .heads import square_weights
from .rollout import rolled_out


@checked
def gradient_rollout(record: AttentionRecord) -> TokenScores:
    """Attention times its gradient, positive part, mean over heads, added to the identity and multiplied through.

    Chefer, Gur & Wolf 2021 (Generic Attention-model Explainability), Eq. 5 and 6: with Ā = mean_h((∇A ⊙ A)⁺), R_l = (I
    + Ā_l) R_{l-1}. The gradient is of the target that was captured. Abnar & Zuidema 2020 (section 5) name gradients as
    the next step.
    """
    if record.attention_gradients is None:
        raise BadInput("This needs attention gradients: take the record with model.record(text, gradients=True).")
    weights = square_weights(record)
    speaking: Float[Tensor, "layer token token"] = (weights * record.attention_gradients).clamp_min(0).mean(1)
    rolled = rolled_out(speaking, mixed=1.0, carried=1.0)
    return scores_of(
        record,
        "gradient_rollout",
        record.readout @ rolled[-1],
        compute_map=lambda: rolled,
        compute_row=lambda layer, query: rolled[layer, query],
    )
