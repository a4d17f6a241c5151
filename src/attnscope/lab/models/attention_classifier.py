"""AttentionClassifier: one attention from a fixed query pools the words of a text, and a linear layer tells its class.

The models of Sun & Lu 2020, section 3. Symbols of the paper: e_j is a row of `embeddings`, V is `context`, W is
`output.weight`, λ is `scaling`; a_j = h_j · V / λ, α = softmax(a), h = Σ α_j h_j, s = h · W.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ...capture import InstrumentedModel, Tokenized, instrument
from ...errors import BadInput
from ..vocabulary import Vocabulary
from .storage import load_model, save_model, settings_of

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

    def forward(
        self, scores: Float[Tensor, "batch token"], real: Bool[Tensor, "batch token"]
    ) -> tuple[Float[Tensor, "batch token"], Float[Tensor, "batch 1 token token"]]:
        """The share of each word."""
        weights = scores.masked_fill(~real, -torch.inf).softmax(-1)
        tokens = weights.shape[1]
        return weights, weights[:, None, None, :].expand(-1, 1, tokens, tokens)


class AttentionClassifier(nn.Module):
    """Words as learned vectors, pooled by one attention: variants "dot", "dot_lstm", "dot_affine" and "additive".

    Two classes have one logit s, that of the second: its probability is σ(s). More have one logit each. In a record,
    the one query that all words share is one head of one layer in which every row is α, and α is the read-out too: raw
    attention, rollout, tracing and flow all give α.

    >>> model = AttentionClassifier(Vocabulary(["a", "good", "film"]), scaling=5)
    >>> record = model.instrumented().record("a good film")
    >>> record.tokens, tuple(record.weights.shape), [label for label, _ in sorted(record.prediction)]
    (('a', 'good', 'film'), (1, 1, 3, 3), ['negative', 'positive'])
    """

    def __init__(self, vocabulary: Vocabulary, **settings: Any) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.settings = said = settings_of(Settings, settings)
        self.classes = tuple(said.classes)
        made, self._encode = VARIANTS[said.variant]
        self.embeddings = nn.Embedding(len(vocabulary), said.width)
        nn.init.uniform_(self.embeddings.weight, -SPREAD, SPREAD)
        self.context = nn.Parameter(torch.randn(said.width))
        self.output = nn.Linear(said.width, 1 if len(self.classes) == 2 else len(self.classes), bias=False)
        layers = made(said.width)
        self._layer_names = tuple(layers)
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.attention = FixedQueryAttention()
        self.embedding_dropout, self.output_dropout = nn.Dropout(said.dropout), nn.Dropout(said.dropout)

    def forward(
        self, input_ids: Int[Tensor, "batch token"], attention_mask: Tensor | None = None
    ) -> Float[Tensor, "batch logit"]:
        """The logits, one for two classes and one each for more; the mask is 1 where a word is."""
        real = torch.ones_like(input_ids).bool() if attention_mask is None else attention_mask.bool()
        values, scores = self.values_and_scores(self.embedding_dropout(self.embeddings(input_ids)), real)
        pooled = torch.einsum("bt,btw->bw", self.attention(scores, real)[0], values)
        return self.output(self.output_dropout(pooled))  # type: ignore[no-any-return]

    def values_and_scores(
        self, vectors: Float[Tensor, "batch token width"], real: Bool[Tensor, "batch token"]
    ) -> tuple[Float[Tensor, "batch token width"], Float[Tensor, "batch token"]]:
        """What attention adds up, h_j, and the attention score of each word, a_j."""
        layers = {name: self.get_submodule(name) for name in self._layer_names}
        values, keys = self._encode(layers, vectors, real)
        return values, keys @ self.context / self.settings.scaling

    def weights(
        self, input_ids: Int[Tensor, "batch token"], attention_mask: Tensor | None = None
    ) -> Float[Tensor, "batch token"]:
        """α: the share of each word, without dropout; none has padding."""
        real = torch.ones_like(input_ids).bool() if attention_mask is None else attention_mask.bool()
        return self.attention(self.values_and_scores(self.embeddings(input_ids), real)[1], real)[0]  # type: ignore[no-any-return]

    def loss(self, logits: Float[Tensor, "text logit"], classes: Int[Tensor, " text"]) -> Float[Tensor, ""]:
        """The mean cross-entropy: -log σ(y s) for two classes, that of a softmax for more."""
        if len(self.classes) == 2:
            return F.binary_cross_entropy_with_logits(logits.squeeze(-1), classes.to(logits))
        return F.cross_entropy(logits, classes)

    def predicted(self, logits: Float[Tensor, "text logit"]) -> Int[Tensor, " text"]:
        """The number of the class that each row of logits tells."""
        return (logits.squeeze(-1) > 0).long() if len(self.classes) == 2 else logits.argmax(-1)

    def tokenize(self, text: str | list[str]) -> Tokenized:
        """The words of a text with spaces between them, or of a list; they are looked up in lower case."""
        words = text.split() if isinstance(text, str) else list(text)
        if not words:
            raise BadInput("The text is empty; give at least one word.")
        return Tokenized(
            tokens=words,
            inputs=self.vocabulary.encode(word.lower() for word in words),
            special=[False] * len(words),
            word_ids=list(range(len(words))),
        )

    def batch(self, texts: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """What `forward` takes for several texts, each given as its words."""
        ids, real = self.vocabulary.pad([self.vocabulary.encode(word.lower() for word in words) for words in texts])
        return {"input_ids": ids, "attention_mask": real}

    def instrumented(self) -> InstrumentedModel:
        """The model as `attnscope` records it and runs it again."""
        return instrument(
            self,
            tokenize=self.tokenize,
            attention="attention",
            embeddings="embeddings",
            labels=self.classes,
            readout="attention",
            answer=both_sides if len(self.classes) == 2 else None,
            blanks={name: self.vocabulary.number(name) for name in ("unk", "pad")},
            padding=self.vocabulary.number("pad"),
        )

    def save(self, folder: str | Path) -> Path:
        """Write weights, settings and vocabulary into a folder."""
        return save_model(Path(folder), self, asdict(self.settings), self.vocabulary)

    @classmethod
    def load(cls, folder: str | Path) -> "AttentionClassifier":
        """The model that `save` has written, ready to answer."""
        return load_model(Path(folder), cls)


def both_sides(logits: Float[Tensor, "batch 1"]) -> Float[Tensor, "batch 2"]:
    """One logit s as two, -s/2 and s/2: their softmax is 1 - σ(s) and σ(s), and each has a gradient of its own."""
    return torch.cat([-logits / 2, logits / 2], -1)


# What an attention classifier makes of the vectors of its words: the values it adds up, and the keys it scores.
# The four variants of Sun & Lu 2020. Symbols of the paper: x_j is a word's vector, h_j its value, and the attention
# score is a_j = key_j · V / λ. Except for additive attention, the key is the value.


Vectors = Float[Tensor, "batch token width"]
Encoder = Callable[[Mapping[str, nn.Module], Vectors, Bool[Tensor, "batch token"]], tuple[Vectors, Vectors]]
"""From the layers of the variant, the vectors and where words are, to values and keys."""


def _as_they_are(
    _layers: Mapping[str, nn.Module], vectors: Float[Tensor, "batch token width"], _real: Bool[Tensor, "batch token"]
) -> tuple[Float[Tensor, "batch token width"], Float[Tensor, "batch token width"]]:
    """DP: h = x."""
    return vectors, vectors


def _in_context(
    layers: Mapping[str, nn.Module], vectors: Float[Tensor, "batch token width"], real: Bool[Tensor, "batch token"]
) -> tuple[Float[Tensor, "batch token width"], Float[Tensor, "batch token width"]]:
    """DP-L: h is what an LSTM reads, forwards and backwards; padding at the end of a text is not read."""
    packed = nn.utils.rnn.pack_padded_sequence(vectors, real.sum(1).cpu(), batch_first=True, enforce_sorted=False)
    read, _ = nn.utils.rnn.pad_packed_sequence(layers["lstm"](packed)[0], batch_first=True, total_length=real.shape[1])
    return read, read


def _mapped(
    layers: Mapping[str, nn.Module], vectors: Float[Tensor, "batch token width"], _real: Bool[Tensor, "batch token"]
) -> tuple[Float[Tensor, "batch token width"], Float[Tensor, "batch token width"]]:
    """DP-A: h = M x + b."""
    mapped = layers["affine"](vectors)
    return mapped, mapped


def _scored_behind_tanh(
    layers: Mapping[str, nn.Module], vectors: Float[Tensor, "batch token width"], _real: Bool[Tensor, "batch token"]
) -> tuple[Float[Tensor, "batch token width"], Float[Tensor, "batch token width"]]:
    """AD: h = x, and the key is tanh(M x + b)."""
    return vectors, layers["affine"](vectors).tanh()


def _no_layers(_width: int) -> dict[str, nn.Module]:
    return {}


def _affine(width: int) -> dict[str, nn.Module]:
    return {"affine": nn.Linear(width, width)}


def _lstm(width: int) -> dict[str, nn.Module]:
    """Half the width each way; matrices are orthogonal and biases zero, as the authors begin."""
    if width % 2:
        raise BadInput(f"An LSTM that reads both ways needs an even width, not {width}.")
    lstm = nn.LSTM(width, width // 2, bidirectional=True, batch_first=True)
    for weights in lstm.parameters():
        if weights.ndim == 2:
            nn.init.orthogonal_(weights)
        else:
            nn.init.zeros_(weights)
    return {"lstm": lstm}


VARIANTS: Mapping[str, tuple[Callable[[int], dict[str, nn.Module]], Encoder]] = {
    "dot": (_no_layers, _as_they_are),
    "dot_lstm": (_lstm, _in_context),
    "dot_affine": (_affine, _mapped),
    "additive": (_affine, _scored_behind_tanh),
}
"""Of each variant (DP, DP-L, DP-A and AD in the paper), the layers it has and what it does with them."""
