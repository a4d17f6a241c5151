"""The parts of the sentiment model of Wu, Nguyen & Ong 2020: its self-attention, its local attention, its decoders.

Symbols of the paper: X^l is `stream`, α^s(l) the weights of `SelfAttention`, α^c those of `LocalAttention`, c_t the
contexts. Sizes and dropouts are those of the authors' model, not all of which the text tells.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

FEED_FORWARD = 64
LOCAL_ATTENTION = (128, 64)
DECODER = 64
EPSILON = 1e-6


class SelfAttention(nn.Module):
    """α = softmax(Q Kᵀ / √D_h) of all tokens over all real ones (Eq. 1-3); it returns α beside its output.

    Queries come from the normed stream, keys and values from the stream as it is. No projection has a bias.
    """

    def __init__(self, width: int, heads: int, head_width: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        inner = heads * head_width
        self.norm = nn.LayerNorm(width, eps=EPSILON)
        self.queries, self.keys, self.values = (nn.Linear(width, inner, bias=False) for _ in range(3))
        self.projection = nn.Linear(inner, width, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, stream: Float[Tensor, "batch token width"], real: Bool[Tensor, "batch token"]
    ) -> tuple[Float[Tensor, "batch token width"], Float[Tensor, "batch head token token"]]:
        """What the tokens gather, and from where."""
        queries = self._split(self.queries(self.norm(stream)))
        keys, values = self._split(self.keys(stream)), self._split(self.values(stream))
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        weights = scores.masked_fill(~real[:, None, None, :], -torch.inf).softmax(-1)
        gathered = (self.dropout(weights) @ values).transpose(1, 2).flatten(2)
        return self.projection(gathered), weights

    def _split(self, vectors: Float[Tensor, "batch token inner"]) -> Float[Tensor, "batch head token part"]:
        return vectors.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # type: ignore[no-any-return]


class Layer(nn.Module):
    """Self-attention, then a feed-forward net behind a LayerNorm, each added to the stream (Eq. 4)."""

    def __init__(self, width: int, heads: int, head_width: int, dropout: float) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads, head_width, dropout)
        self.norm = nn.LayerNorm(width, eps=EPSILON)
        self.feed_forward = nn.Sequential(nn.Linear(width, FEED_FORWARD), nn.ReLU(), nn.Linear(FEED_FORWARD, width))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, stream: Float[Tensor, "batch token width"], real: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch token width"]:
        """One layer: X^l to X^{l+1}."""
        stream = stream + self.dropout(self.attention(stream, real)[0])
        return stream + self.dropout(self.feed_forward(self.norm(stream)))  # type: ignore[no-any-return]


class LocalAttention(nn.Module):
    """α^c = softmax(f(X^{L+1})): how much of each token the answer is read from (Eq. 5); padding gets nothing."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        first, second = LOCAL_ATTENTION
        self.score = nn.Sequential(
            *(nn.Linear(width, first), nn.ReLU(), nn.Dropout(dropout)),
            *(nn.Linear(first, second), nn.ReLU(), nn.Dropout(dropout)),
            nn.Linear(second, 1),
        )

    def forward(
        self, hidden: Float[Tensor, "batch token width"], real: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch token"]:
        """The share of each token."""
        return self.score(hidden).squeeze(-1).masked_fill(~real, -torch.inf).softmax(-1)  # type: ignore[no-any-return]


def _perceptron(width: int, outcomes: int, dropout: float) -> nn.Sequential:
    """Two linear layers: the paper's Eq. 18-19 have a third, its parameter count and its code do not."""
    return nn.Sequential(nn.Linear(width, DECODER), nn.ReLU(), nn.Dropout(dropout), nn.Linear(DECODER, outcomes))


class ClassDecoder(nn.Module):
    """The logits of the classes, from the context of each text."""

    def __init__(self, width: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.answer = _perceptron(width, classes, dropout)

    def forward(self, contexts: Float[Tensor, "text width"]) -> Float[Tensor, "text outcome"]:
        """What is said of each text."""
        return self.answer(contexts)  # type: ignore[no-any-return]


class SeriesDecoder(nn.Module):
    """A valence for each window of a story, from the contexts of it and of all windows before (Eq. 16-17)."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.memory = nn.LSTM(width, width, batch_first=True)
        self.answer = _perceptron(width, 1, dropout)

    def forward(self, contexts: Float[Tensor, "text width"]) -> Float[Tensor, "text outcome"]:
        """The valence of each text as if it were a story of one window."""
        return self.series(contexts.unsqueeze(1))

    def series(self, contexts: Float[Tensor, "story window width"]) -> Float[Tensor, "story window"]:
        """The valence of each window; what follows behind the end of a story does not touch it."""
        return self.answer(self.memory(contexts)[0]).squeeze(-1)  # type: ignore[no-any-return]
