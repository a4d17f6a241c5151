"""AttentionClassifier: one attention from a fixed query pools the words of a text, and a linear layer tells its class.

The models of Sun & Lu 2020, section 3. Symbols of the paper: e_j is a row of `embeddings`, V is `context`, W is
`output.weight`, λ is `scaling`; a_j = h_j · V / λ, α = softmax(a), h = Σ α_j h_j, s = h · W.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ...errors import BadInput
from ..vocabulary import Vocabulary
from .word_model import Ids, Real, Shares, Vectors, WordModel, real_tokens

VARIANTS = ("dot", "dot_lstm", "dot_affine", "additive")
"""DP, DP-L, DP-A and AD of the paper."""
SPREAD = 0.1
"""Embeddings begin uniform between minus this and this."""


@dataclass(frozen=True)
class Settings:
    """How the model attends and what it tells apart; the defaults are the authors' for SST."""

    variant: str = "dot"
    scaling: int | float = 10.0
    classes: Sequence[str] = ("negative", "positive")
    width: int = 100
    dropout: int | float = 0.5

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise BadInput(f"The model attends as {', '.join(VARIANTS)}, not as {self.variant!r}.")
        if not self.scaling > 0:
            raise BadInput(f"Attention scores are divided by scaling, which is above 0, not {self.scaling}.")
        if len(self.classes) < 2:
            raise BadInput("A classifier tells at least two classes apart: give their names as classes=.")


class FixedQueryAttention(nn.Module):
    """α = softmax(a) over the words of a text; it returns α, and α again as the row of every query of one head."""

    def forward(self, scores: Shares, real: Real) -> tuple[Shares, Float[Tensor, "batch 1 token token"]]:
        """The share of each word."""
        weights = scores.masked_fill(~real, -torch.inf).softmax(-1)
        tokens = weights.shape[1]
        return weights, weights[:, None, None, :].expand(-1, 1, tokens, tokens)


class PooledClassifier(WordModel):
    """What classifiers share whose one attention, a `FixedQueryAttention`, pools the words of a text.

    Two classes have one logit s, that of the second: its probability is σ(s). More have one logit each.
    """

    classes: tuple[str, ...]

    def loss(self, logits: Float[Tensor, "text logit"], classes: Int[Tensor, " text"]) -> Float[Tensor, ""]:
        """The mean cross-entropy: -log σ(y s) with y = ±1 for two classes, that of a softmax for more."""
        if len(self.classes) == 2:
            return F.binary_cross_entropy_with_logits(logits.squeeze(-1), classes.to(logits))
        return F.cross_entropy(logits, classes)

    def predicted(self, logits: Float[Tensor, "text logit"]) -> Int[Tensor, " text"]:
        """The number of the class that each row of logits tells."""
        return (logits.squeeze(-1) > 0).long() if len(self.classes) == 2 else logits.argmax(-1)

    def _reading(self) -> dict[str, Any]:
        return {
            "attention": "attention",
            "embeddings": "embeddings",
            "labels": self.classes,
            "readout": "attention",
            "answer": both_sides if len(self.classes) == 2 else None,
        }


def both_sides(logits: Float[Tensor, "batch 1"]) -> Float[Tensor, "batch 2"]:
    """One logit s as two, -s/2 and s/2: their softmax is 1 - σ(s) and σ(s), and each has a gradient of its own."""
    return torch.cat([-logits / 2, logits / 2], -1)


class AttentionClassifier(PooledClassifier):
    """Words as learned vectors, pooled by one attention: variants "dot", "dot_lstm", "dot_affine" and "additive".

    In a record, the one query that all words share is one head of one layer in which every row is α, and α is the
    read-out too: raw attention, rollout, tracing and flow all give α.

    >>> model = AttentionClassifier(Vocabulary(["a", "good", "film"]), scaling=5)
    >>> record = model.instrumented().record("a good film")
    >>> record.tokens, tuple(record.weights.shape), [label for label, _ in sorted(record.prediction)]
    (('a', 'good', 'film'), (1, 1, 3, 3), ['negative', 'positive'])
    """

    Settings = Settings

    def __init__(self, vocabulary: Vocabulary, **settings: Any) -> None:
        super().__init__(vocabulary, settings)
        chosen = self.settings
        self.classes = tuple(chosen.classes)
        self.embeddings = nn.Embedding(len(vocabulary), chosen.width)
        nn.init.uniform_(self.embeddings.weight, -SPREAD, SPREAD)
        self.context = nn.Parameter(torch.randn(chosen.width))
        self.output = nn.Linear(chosen.width, 1 if len(self.classes) == 2 else len(self.classes), bias=False)
        if chosen.variant in {"dot_affine", "additive"}:
            self.affine = nn.Linear(chosen.width, chosen.width)
        elif chosen.variant == "dot_lstm":
            self.lstm = two_way_lstm(chosen.width)
        self.attention = FixedQueryAttention()
        self.embedding_dropout, self.output_dropout = nn.Dropout(chosen.dropout), nn.Dropout(chosen.dropout)

    def forward(self, input_ids: Ids, attention_mask: Tensor | None = None) -> Float[Tensor, "batch logit"]:
        """The logits, one for two classes and one each for more; the mask is 1 where a word is."""
        real = real_tokens(input_ids, attention_mask)
        values, scores = self.values_and_scores(self.embedding_dropout(self.embeddings(input_ids)), real)
        pooled = torch.einsum("bt,btw->bw", self.attention(scores, real)[0], values)
        return self.output(self.output_dropout(pooled))  # type: ignore[no-any-return]

    def values_and_scores(self, vectors: Vectors, real: Real) -> tuple[Vectors, Shares]:
        """What attention adds up, h_j, and the attention score of each word, a_j = key_j · V / λ.

        With x_j the vector of a word: h = x for DP, what an LSTM reads both ways for DP-L, and M x + b for DP-A, each
        the key too; for AD h = x, and the key is tanh(M x + b).
        """
        values = keys = vectors
        match self.settings.variant:
            case "dot_lstm":
                values = keys = run_without_padding(self.lstm, vectors, real)
            case "dot_affine":
                values = keys = self.affine(vectors)
            case "additive":
                keys = self.affine(vectors).tanh()
        return values, keys @ self.context / self.settings.scaling

    def weights(self, input_ids: Ids, attention_mask: Tensor | None = None) -> Shares:
        """α: the share of each word, without dropout; none has padding."""
        real = real_tokens(input_ids, attention_mask)
        return self.attention(self.values_and_scores(self.embeddings(input_ids), real)[1], real)[0]  # type: ignore[no-any-return]


def two_way_lstm(width: int) -> nn.LSTM:
    """Half the width each way; matrices are orthogonal and biases zero, as the authors begin."""
    if width % 2:
        raise BadInput(f"An LSTM that reads both ways needs an even width, not {width}.")
    lstm = nn.LSTM(width, width // 2, bidirectional=True, batch_first=True)
    for weights in lstm.parameters():
        if weights.ndim == 2:
            nn.init.orthogonal_(weights)
        else:
            nn.init.zeros_(weights)
    return lstm


def run_without_padding(lstm: nn.LSTM, vectors: Vectors, real: Real) -> Vectors:
    """What an LSTM reads at each word; padding at the end of a text is not read."""
    packed = nn.utils.rnn.pack_padded_sequence(vectors, real.sum(1).cpu(), batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=real.shape[1])[0]
