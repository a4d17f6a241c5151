"""What a Seq2Seq makes of a context and a decoder state: N of Eq. 2, or the plain sum of Eq. 31 (Snell et al. 2021)."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

TOGETHER = 1 << 23
"""Numbers in one table of logits when the right word is looked for under every source token."""
States = Float[Tensor, "batch step width"]
Source = Float[Tensor, "batch source source_width"]
Real = Bool[Tensor, "batch source"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu}


class Output(nn.Module, ABC):
    """Logits from hidden vectors; how context c and state s make a hidden vector is what kinds of output differ in."""

    words: nn.Linear

    def forward(self, contexts: States, states: States) -> Float[Tensor, "batch step vocabulary"]:
        """The logits of each word."""
        from_contexts, from_states = self.parts(contexts, states)
        return self.words(self.joined(from_contexts + from_states))  # type: ignore[no-any-return]

    @abstractmethod
    def parts(self, contexts: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """What contexts and states add to hidden vectors, before `joined`."""

    @abstractmethod
    def joined(self, added: Tensor) -> Tensor:
        """The hidden vectors."""

    def right_for_pairs(
        self, contexts: Float[Tensor, "batch source width"], states: States, right: Int[Tensor, "batch step"]
    ) -> Float[Tensor, "batch step source"]:
        """The log probability of the right word of each step with each of these contexts.

        Every pair of a step and a context has its own distribution over the vocabulary, so only some are there at once.
        """
        from_contexts, from_states = self.parts(contexts, states)
        sources, steps = from_contexts.shape[1], from_states.shape[1]
        rows = max(1, TOGETHER // (sources * self.words.out_features))
        flat_states, flat_right = from_states.flatten(0, 1), right.flatten()
        text = torch.arange(len(right), device=right.device).repeat_interleave(steps)
        found = []
        for begin in range(0, len(flat_right), rows):
            part = slice(begin, begin + rows)
            hidden = self.joined(from_contexts[text[part]] + flat_states[part].unsqueeze(1))
            logits = self.words(hidden)
            picked = flat_right[part, None, None].expand(-1, sources, 1)
            found.append(logits.gather(-1, picked).squeeze(-1) - logits.logsumexp(-1))
        return torch.cat(found).view(len(right), steps, sources)


class NetworkOutput(Output):
    """N([c, s]): a hidden layer on both, then the vocabulary (Eq. 2)."""

    def __init__(self, width: int, words: int, activation: str) -> None:
        super().__init__()
        self.hidden = nn.Linear(2 * width, width)
        self.words = nn.Linear(width, words)
        self.activation = ACTIVATIONS[activation]

    def parts(self, contexts: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """The hidden layer's two halves, so that each is computed once however many pairs there are."""
        of_contexts, of_states = self.hidden.weight.chunk(2, 1)
        return F.linear(contexts, of_contexts), F.linear(states, of_states, self.hidden.bias)

    def joined(self, added: Tensor) -> Tensor:
        """Through the activation."""
        return self.activation(added)


class SumOutput(Output):
    """W (c + s), in which the best attention is a convex problem (Eq. 31)."""

    def __init__(self, width: int, words: int, activation: str) -> None:  # noqa: ARG002 - as every output is made
        super().__init__()
        self.words = nn.Linear(width, words, bias=False)

    def parts(self, contexts: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """Both as they are."""
        return contexts, states

    def joined(self, added: Tensor) -> Tensor:
        """Nothing more."""
        return added


OUTPUTS: dict[str, type[NetworkOutput] | type[SumOutput]] = {"network": NetworkOutput, "sum": SumOutput}


# Dot attention from a decoder's states to a source, of one head or several (Snell et al. 2021, Eq. 1, 2, 20, 21).


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
        states: States,
        source: Source,
        real: Real,
        given: Float[Tensor, "batch #head step source"] | None = None,
    ) -> tuple[States, Float[Tensor, "batch heads step source"]]:
        """Contexts and weights; weights that are given take the place of the model's own."""
        weights = self.weights(states, source, real) if given is None else given.expand(-1, len(self.heads), -1, -1)
        read = torch.einsum("bhts,bsw->bthw", weights, source).flatten(2)
        return self._mapped(read), weights

    def weights(self, states: States, source: Source, real: Real) -> Float[Tensor, "batch head step source"]:
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

    def alone(self, source: Source) -> Float[Tensor, "batch source width"]:
        """The context vector of each source token when every head attends to nothing else."""
        return self._mapped(source.repeat(1, 1, len(self.heads)))

    def _mapped(self, read: Float[Tensor, "batch place heads_by_width"]) -> Float[Tensor, "batch place width"]:
        maps = [cast(AttentionHead, head).context for head in self.heads]
        bias = torch.stack([each.bias for each in maps]).sum(0)
        return F.linear(read, torch.cat([each.weight for each in maps], 1), bias) * self.share
