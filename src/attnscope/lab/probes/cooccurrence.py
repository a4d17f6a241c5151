"""How the proxy's word translations begin to move, and what co-occurrence says of it (Snell et al. 2021, section 4.1).

Symbols of the paper: e is `embeddings`, W is `output`, θ̂ = W e are the logits of each input word and θ = softmax(θ̂);
C is the table of `WordTranslation.counts`. Under gradient flow on the loss of Eq. 14, at a random beginning of endless
width, dθ̂/dτ = 2(C - mean_o C) (Eq. 53). Eq. 15 says the same of θ, where by the chain rule it is that over |O|.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

Words = Sequence[Sequence[int]]
"""The numbers of the words of each sentence."""


def predicted_change(counts: Float[Tensor, "input output"]) -> Float[Tensor, "input output"]:
    """2(C - mean_o C), the right side of Eq. 15 and 53.

    >>> predicted_change(torch.tensor([[0.5, 0.0], [0.5, 0.5]])).tolist()
    [[0.5, -0.5], [0.0, 0.0]]
    """
    return 2 * (counts - counts.mean(1, keepdim=True))


def proxy_loss(
    embeddings: Float[Tensor, "input width"], output: Float[Tensor, "output width"], sources: Words, targets: Words
) -> Float[Tensor, ""]:
    """Eq. 14: minus the log probability of every output word, summed over all pairs of sentences."""
    total = embeddings.new_zeros(())
    for source, target in zip(sources, targets, strict=True):
        logits = output @ embeddings[list(source)].mean(0)
        total = total - logits.log_softmax(0)[list(target)].sum()
    return total


def initial_change(
    embeddings: Float[Tensor, "input width"], output: Float[Tensor, "output width"], sources: Words, targets: Words
) -> tuple[Float[Tensor, "input output"], Float[Tensor, "input output"]]:
    """dθ̂/dτ and dθ/dτ under gradient flow at these weights: how logits and probabilities of each input word move."""
    weights = [embeddings.detach().requires_grad_(), output.detach().requires_grad_()]
    by_embeddings, by_output = torch.autograd.grad(proxy_loss(weights[0], weights[1], sources, targets), weights)
    logits = -(by_embeddings @ output.T + embeddings @ by_output.T)
    chances = (embeddings @ output.T).softmax(1)
    return logits, chances * (logits - (chances * logits).sum(1, keepdim=True))
