"""Gradient-weighted rollout: only attention that speaks for the answer is rolled out."""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, TokenScores, VectorRecord
from ..record.schema import checked
from ..record.scores import scores_of
from .heads import refuse_cross, square_weights
from .rerunning import say_lacking
from .rollout import rolled_out
from .without_matrix import scores_by_rows, speak_down


@checked
def gradient_rollout(record: AttentionRecord) -> TokenScores:
    """Attention times its gradient, positive part, mean over heads, added to the identity and multiplied through.

    Chefer, Gur & Wolf 2021 (Generic Attention-model Explainability), Eq. 5 and 6: with Ā = mean_h((∇A ⊙ A)⁺), R_l = (I
    + Ā_l) R_{l-1}; scores and map are R - I (their Eq. 8), because the one that a token begins with on itself would
    outshine all that attention brings. The gradient is of the target that was captured. Abnar & Zuidema 2020 (section
    5) name gradients as the next step.
    """
    if isinstance(record, VectorRecord):
        refuse_cross(record)
        row = partial(speak_down, record)
        return scores_by_rows(record, "gradient_rollout", row, row(record.shape[0] - 1, record.readout))
    if record.attention_gradients is None:
        sentence = "This needs attention gradients: take the record with model.record(text, gradients=True)."
        raise BadInput(say_lacking(record, sentence))
    weights = square_weights(record)
    speaking: Float[Tensor, "layer token token"] = (weights * record.attention_gradients).clamp_min(0).mean(1)
    # in float64, as little is left of float32 beside the one
    rolled = rolled_out(speaking.double(), mixed=1.0, carried=1.0) - torch.eye(speaking.shape[-1], dtype=torch.float64)
    return scores_of(
        record,
        "gradient_rollout",
        record.readout.double() @ rolled[-1],
        compute_map=lambda: rolled,
        compute_row=lambda layer, query: rolled[layer, query],
    )
