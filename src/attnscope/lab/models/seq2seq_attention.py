"""Dot attention from a decoder's states to a source, of one head or several (Snell et al. 2021, Eq. 1, 2, 20, 21)."""

from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F


class AttentionHead(nn.Module):
    """The two maps of a head: `query` is W of a_tl = (W s_t + b) · h_l, and `context` maps what it has read.

    Together they are what the paper calls the initialisation of a head.
    """

    def __init__(self, width: int, source_width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, source_width)
        self.context = nn.Linear(source_width, width)


class SourceAttention(nn.Module):
    """The context vectors c_t of a decoder's states, summed over heads or averaged, and the weights α of each head."""

    def __init__(self, width: int, source_width: int, heads: int, contexts: str, attention: str) -> None:
        super().__init__()
        self.heads = nn.ModuleList(AttentionHead(width, source_width) for _ in range(heads))
        self.uniform = attention == "uniform"
        self.share = 1.0 if contexts == "sum" else 1.0 / heads
        """What each head counts in the context."""

    def forward(
        self,
        states: Float[Tensor, "batch step width"],
        source: Float[Tensor, "batch source source_width"],
        real: Bool[Tensor, "batch source"],
        given: Float[Tensor, "batch #head step source"] | None = None,
    ) -> tuple[Float[Tensor, "batch step width"], Float[Tensor, "batch heads step source"]]:
        """Contexts and weights; weights that are given take the place of the model's own."""
        weights = self.weights(states, source, real) if given is None else given.expand(-1, len(self.heads), -1, -1)
        read = torch.einsum("bhts,bsw->bthw", weights, source).flatten(2)
        return self._mapped(read), weights

    def weights(
        self,
        states: Float[Tensor, "batch step width"],
        source: Float[Tensor, "batch source source_width"],
        real: Bool[Tensor, "batch source"],
    ) -> Float[Tensor, "batch head step source"]:
        """α: the share of each source token, none for padding."""
        batch, steps, heads = len(states), states.shape[1], len(self.heads)
        if self.uniform:
            even = real / real.sum(1, keepdim=True).to(source)
            return even[:, None, None].expand(-1, heads, steps, -1)
        maps = [cast(AttentionHead, head).query for head in self.heads]
        # All heads in one product: many small ones take longer.
        queries = F.linear(states, torch.cat([each.weight for each in maps]), torch.cat([each.bias for each in maps]))
        scores = queries.view(batch, steps * heads, -1) @ source.transpose(1, 2)
        scores = scores.view(batch, steps, heads, -1).transpose(1, 2)
        return scores.masked_fill(~real[:, None, None], -torch.inf).softmax(-1)

    def alone(self, source: Float[Tensor, "batch source source_width"]) -> Float[Tensor, "batch source width"]:
        """The context vector of each source token when every head attends to nothing else."""
        return self._mapped(source.repeat(1, 1, len(self.heads)))

    def _mapped(self, read: Float[Tensor, "batch place heads_by_width"]) -> Float[Tensor, "batch place width"]:
        maps = [cast(AttentionHead, head).context for head in self.heads]
        bias = torch.stack([each.bias for each in maps]).sum(0)
        return F.linear(read, torch.cat([each.weight for each in maps], 1), bias) * self.share
