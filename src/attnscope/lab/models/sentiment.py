"""SentimentTransformer: reads words as vectors, and tells the sentiment of a text or the valence of a story over time.

The model of Wu, Nguyen & Ong 2020, section 2, as its parameter counts tell it: a width of 300 (512 is that of all heads
together), no positions, LayerNorm on queries only.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ...errors import BadInput
from ..vocabulary import Vocabulary
from ..word_vectors import WordVectors
from .word_model import Ids, Real, Shares, Vectors, WordModel, real_tokens

CLASSES = ("very negative", "negative", "neutral", "positive", "very positive")
"""What the labels 0 to 4 of the Stanford Sentiment Treebank mean."""
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]"}
UNKNOWN_VECTORS = "No word vectors were given: every word is read as the same."
LEARNED_VECTORS = "The word vectors are learned with the model, from scratch."

Loss = Callable[[Float[Tensor, "text outcome"], Int[Tensor, " text"]], Float[Tensor, ""]]


def _each_alone(logits: Float[Tensor, "text outcome"], classes: Int[Tensor, " text"]) -> Float[Tensor, ""]:
    """Binary cross-entropy of every class by itself, as in the authors' code, added up."""
    right = F.one_hot(classes, logits.shape[-1]).to(logits)
    return F.binary_cross_entropy_with_logits(logits, right, reduction="sum")


LOSSES: Mapping[str, Loss] = {"sigmoid": _each_alone, "softmax": partial(F.cross_entropy, reduction="sum")}
"""How a class is learned, by what makes the logits probabilities; the first is the authors'."""
ANSWERS = ("classes", "series")


@dataclass(frozen=True)
class Settings:
    """The size of the model, its dropout, and what it answers; the defaults are the authors' for SST-5."""

    layers: int = 6
    heads: int = 8
    head_width: int = 64
    width: int = 300
    dropout: float = 0.1
    """Of input, attention weights, and what attention and feed-forward give."""
    decoder_dropout: float = 0.3
    """In local attention and decoder."""
    answer: str = "classes"
    probabilities: str = "sigmoid"
    vector_width: int = 300
    learned_vectors: bool = False
    source: str = UNKNOWN_VECTORS
    """A sentence about the word vectors."""

    def __post_init__(self) -> None:
        if self.answer not in ANSWERS:
            raise BadInput(f"The model answers with {' or '.join(ANSWERS)}, not with {self.answer!r}.")
        if self.probabilities not in LOSSES:
            raise BadInput(f"Probabilities are made by {' or '.join(LOSSES)}, not by {self.probabilities!r}.")


class SentimentTransformer(WordModel):
    """Words as vectors, layers of self-attention, and a local attention that pools them for the answer.

    `SentimentTransformer.for_sst5(vectors)` tells one of five classes, `SentimentTransformer.for_send(vectors)` the
    valence of each window of a story. Vectors that are given stay as they are; if they are narrower than the model, a
    linear layer without bias widens them, which is learned. `instrumented()` gives records whose read-out is the local
    attention α^c.

    >>> model = SentimentTransformer(Vocabulary(["a", "good", "film"]), layers=2, learned_vectors=True)
    >>> record = model.instrumented().record("a good film")
    >>> record.tokens, tuple(record.weights.shape), round(record.readout.sum().item(), 4)
    (('a', 'good', 'film'), (2, 8, 3, 3), 1.0)
    """

    Settings = Settings

    def __init__(self, vocabulary: Vocabulary, **settings: Any) -> None:
        super().__init__(vocabulary, settings)
        chosen = self.settings
        self.words = nn.Embedding(len(vocabulary), chosen.vector_width, padding_idx=vocabulary.number("pad"))
        if not chosen.learned_vectors:
            self.words.requires_grad_(False).weight.zero_()
        narrow = chosen.vector_width != chosen.width
        self.widening = nn.Linear(chosen.vector_width, chosen.width, bias=False) if narrow else nn.Identity()
        self.dropout = nn.Dropout(chosen.dropout)
        self.layers = nn.ModuleList(
            Layer(chosen.width, chosen.heads, chosen.head_width, chosen.dropout) for _ in range(chosen.layers)
        )
        self.norm = nn.LayerNorm(chosen.width, eps=EPSILON)
        self.local_attention = LocalAttention(chosen.width, chosen.decoder_dropout)
        self.decoder: ClassDecoder | SeriesDecoder = (
            ClassDecoder(chosen.width, len(CLASSES), chosen.decoder_dropout)
            if chosen.answer == "classes"
            else SeriesDecoder(chosen.width, chosen.decoder_dropout)
        )

    @classmethod
    def reading(cls, vectors: WordVectors, **settings: Any) -> "SentimentTransformer":
        """A model that reads words as these vectors, which are not trained; any other word is the zero vector."""
        vocabulary = Vocabulary(vectors.words, special=SPECIAL)
        model = cls(vocabulary, **{**settings, "vector_width": vectors.width, "source": vectors.source})
        with torch.no_grad():
            model.words.weight[len(SPECIAL) :] = vectors.table
        return model

    @classmethod
    def learning(cls, vocabulary: Vocabulary, **settings: Any) -> "SentimentTransformer":
        """A model that learns the vectors of its words from scratch."""
        width = settings.get("width", Settings.width)
        return cls(
            vocabulary, **{"vector_width": width, **settings, "learned_vectors": True, "source": LEARNED_VECTORS}
        )

    @classmethod
    def for_sst5(cls, vectors: WordVectors | None = None, **settings: Any) -> "SentimentTransformer":
        """The model for the five classes of SST: 3,993,222 trained parameters with vectors of 300 dimensions.

        Without vectors it knows no word.
        """
        return cls._made(vectors, {**settings, "answer": "classes"})

    @classmethod
    def for_send(cls, vectors: WordVectors | None = None, **settings: Any) -> "SentimentTransformer":
        """The model for the valence of stories: 4,715,362 trained parameters with vectors of 300 dimensions.

        Without vectors it knows no word.
        """
        return cls._made(vectors, {**settings, "answer": "series"})

    @classmethod
    def _made(cls, vectors: WordVectors | None, settings: dict[str, Any]) -> "SentimentTransformer":
        return cls(Vocabulary((), special=SPECIAL), **settings) if vectors is None else cls.reading(vectors, **settings)

    def forward(self, input_ids: Ids, attention_mask: Tensor | None = None) -> Float[Tensor, "batch outcome"]:
        """The logits of the classes, or the valence of a story of one window; the mask is 1 where a token is."""
        real = real_tokens(input_ids, attention_mask)
        return self.decoder(self.contexts(self.words(input_ids), real))  # type: ignore[no-any-return]

    def contexts(self, vectors: Float[Tensor, "batch token vector"], real: Real) -> Float[Tensor, "batch width"]:
        """What is read of each text: c = Σ_i α^c_i x_i over its tokens (Eq. 6)."""
        stream = self.dropout(self.widening(vectors))
        for layer in self.layers:
            stream = layer(stream, real)
        hidden = self.norm(stream)
        return torch.einsum("bt,btw->bw", self.local_attention(hidden, real), hidden)

    def loss(self, logits: Float[Tensor, "text outcome"], classes: Int[Tensor, " text"]) -> Float[Tensor, ""]:
        """How wrong the logits are, added up over the texts, by the loss that goes with the model's probabilities."""
        return LOSSES[self.settings.probabilities](logits, classes)

    def spell(self, words: Sequence[str]) -> list[str]:
        """The words as the model looks them up: as they are, or in lower case where only that has a vector."""
        return [word if word in self.vocabulary else word.lower() for word in words]

    def _reading(self) -> dict[str, Any]:
        """Of a story, a record shows one window."""
        series = self.settings.answer == "series"
        return {
            "attention": SelfAttention,
            "embeddings": "words",
            "labels": ("valence",) if series else CLASSES,
            "probabilities": "softmax" if series else self.settings.probabilities,
            "readout": "local_attention",
        }


# The parts of the sentiment model of Wu, Nguyen & Ong 2020: its self-attention, its local attention, its decoders.
# Symbols of the paper: X^l is `stream`, α^s(l) the weights of `SelfAttention`, α^c those of `LocalAttention`, c_t the
# contexts. Sizes and dropouts are those of the authors' model, not all of which the text tells.


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

    def forward(self, stream: Vectors, real: Real) -> tuple[Vectors, Float[Tensor, "batch head token token"]]:
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

    def forward(self, stream: Vectors, real: Real) -> Vectors:
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

    def forward(self, hidden: Vectors, real: Real) -> Shares:
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
        """One row for each text."""
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
