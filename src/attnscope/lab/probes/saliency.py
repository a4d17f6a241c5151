"""Saliency: how much the input word at each position helps a classifier with the right class (Snell et al. 2021, 5.1).

Δ_l = -∂loss/∂s_l, where s_l = 1 multiplies the vector of the word at position l, and the loss is that of its text
alone. It is signed: positive helps. (The authors' released code has it with the other sign; their published figures
have this one.)
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ..models.recurrent_classifier import Reading, RecurrentClassifier


def saliency(
    model: RecurrentClassifier,
    ids: Int[Tensor, "text token"],
    real: Bool[Tensor, "text token"],
    labels: Int[Tensor, " text"],
) -> Float[Tensor, "text token"]:
    """Δ of every position, zero at padding."""
    return read_with_saliency(model, ids, real, labels)[1]


def read_with_saliency(
    model: RecurrentClassifier,
    ids: Int[Tensor, "text token"],
    real: Bool[Tensor, "text token"],
    labels: Int[Tensor, " text"],
) -> tuple[Reading, Float[Tensor, "text token"]]:
    """What the model makes of the texts, and Δ: both from one pass."""
    with torch.enable_grad(), _held(model):
        vectors = model.embeddings(ids).detach().requires_grad_()
        reading = model.read(vectors, real)
        # a sum and not a mean, so that each text has its own derivative whatever the batch
        loss = F.binary_cross_entropy_with_logits(reading.logits.squeeze(-1), labels.to(vectors), reduction="sum")
        (slope,) = torch.autograd.grad(loss, vectors)
    found = -(slope * vectors).sum(-1).masked_fill(~real, 0.0).detach()
    return Reading(*(tensor.detach() for tensor in reading)), found


@contextmanager
def _held(model: nn.Module) -> Iterator[None]:
    """Within this the weights want no derivatives, which are half of the work."""
    wanting = [weights for weights in model.parameters() if weights.requires_grad]
    for weights in wanting:
        weights.requires_grad_(False)
    try:
        yield
    finally:
        for weights in wanting:
            weights.requires_grad_(True)
