"""AgreementTransformer: reads a sentence up to its verb, and tells from [CLS] whether the verb is singular or plural.

The model of Abnar & Zuidema 2020, section 4: blocks as in GPT-2 (Radford et al. 2019), without the causal mask.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ...errors import BadInput
from ..data import NUMBERS
from ..vocabulary import Vocabulary
from .word_model import Ids, Real, Vectors, WordModel, real_tokens


@dataclass(frozen=True)
class Settings:
    """The size of the model, its dropout and the spread of its first weights; the defaults are the paper's."""

    layers: int = 6
    heads: int = 8
    width: int = 128
    positions: int = 64
    residual_dropout: float = 0.4
    attention_dropout: float = 0.6
    embedding_dropout: float = 0.2
    deviation: float = 0.05

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise BadInput(f"A width of {self.width} cannot be shared by {self.heads} heads.")


class SelfAttention(nn.Module):
    """Attention of all tokens to all real ones, A = softmax(Q Kᵀ / √d); it returns A beside its output."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.heads = settings.heads
        self.queries_keys_values = nn.Linear(settings.width, 3 * settings.width)
        self.projection = nn.Linear(settings.width, settings.width)
        self.dropout = nn.Dropout(settings.attention_dropout)

    def forward(self, hidden: Vectors, real: Real) -> tuple[Vectors, Float[Tensor, "batch head token token"]]:
        """What the tokens gather, and from where."""
        split = self.queries_keys_values(hidden).unflatten(-1, (3, self.heads, -1))
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        weights = scores.masked_fill(~real[:, None, None, :], -torch.inf).softmax(-1)
        gathered = (self.dropout(weights) @ values).transpose(1, 2).flatten(2)
        return self.projection(gathered), weights


class Block(nn.Module):
    """Attention and a feed-forward net of four times the width, each behind a LayerNorm and added to the residual."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        width = settings.width
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(settings)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(settings.residual_dropout)

    def forward(self, hidden: Vectors, real: Real) -> Vectors:
        """One layer."""
        hidden = hidden + self.dropout(self.attention(self.attention_norm(hidden), real)[0])
        return hidden + self.dropout(self.feed_forward(self.feed_forward_norm(hidden)))  # type: ignore[no-any-return]


class AgreementTransformer(WordModel):
    """[CLS], the words before the verb, and [EOS] in the verb's place; the answer is read at [CLS].

    Six layers of eight heads and a width of 128 unless `settings` say otherwise. Padding is masked. `instrumented()`
    gives records.

    >>> model = AgreementTransformer(Vocabulary(["the", "key", "keys"]), layers=2)
    >>> record = model.instrumented().record("the keys")
    >>> record.tokens, tuple(record.weights.shape)
    (('[CLS]', 'the', 'keys', '[EOS]'), (2, 8, 4, 4))
    """

    Settings = Settings
    before, behind = "cls", "eos"

    def __init__(self, vocabulary: Vocabulary, **settings: Any) -> None:
        super().__init__(vocabulary, settings)
        width = self.settings.width
        self.words = nn.Embedding(len(vocabulary), width)
        self.positions = nn.Embedding(self.settings.positions, width)
        self.dropout = nn.Dropout(self.settings.embedding_dropout)
        self.blocks = nn.ModuleList(Block(self.settings) for _ in range(self.settings.layers))
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, len(NUMBERS))
        self.apply(self._begin)

    def _begin(self, module: nn.Module) -> None:
        """First weights: normal, cut at two deviations, biases zero."""
        if isinstance(module, (nn.Linear, nn.Embedding)):
            spread = self.settings.deviation
            nn.init.trunc_normal_(module.weight, std=spread, a=-2 * spread, b=2 * spread)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def forward(self, input_ids: Ids, attention_mask: Tensor | None = None) -> Float[Tensor, "batch number"]:
        """The logits of singular and plural; `attention_mask` is 1 where a token is."""
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        real = real_tokens(input_ids, attention_mask)
        hidden = self.dropout(self.words(input_ids) + self.positions(places))
        for block in self.blocks:
            hidden = block(hidden, real)
        return self.classifier(self.norm(hidden)[:, 0])  # type: ignore[no-any-return]

    def spell(self, words: Sequence[str]) -> list[str]:
        """The words as they are, since tags in capitals stand for rare ones."""
        return list(words)

    def _reading(self) -> dict[str, Any]:
        return {
            "attention": SelfAttention,
            "embeddings": "words",
            "labels": NUMBERS,
            "readout": "first",
            "longest": self.settings.positions,
        }
