"""RecurrentClassifier: an LSTM reads a text both ways, attention pools its states, and one logit tells the class.

The model of Snell et al. 2021, section 2.4, after Wiegreffe & Pinter 2019. Symbols of the paper: h_l is a row of
`states`, a_l = vᵀ ReLU(Q h_l) with Q `attention_map` and v `attention_score`, α = softmax(a), W is `output`,
p(positive) = σ(Σ α_l Wᵀh_l), and β_l = σ((2y - 1) Wᵀh_l). All maps have biases, as the authors' have.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ...capture import InstrumentedModel, Tokenized, instrument
from ...errors import BadInput
from ..vocabulary import Vocabulary
from .attention_classifier import FixedQueryAttention, both_sides
from .lstm_scan import lstm_states
from .storage import load_model, save_model, settings_of

ATTENTIONS = ("learned", "uniform")


@dataclass(frozen=True)
class Settings:
    """How the model reads and attends, and what it tells apart; the defaults are the paper's."""

    width: int = 300
    hidden: int = 256
    attention_width: int = 256
    bidirectional: bool = True
    attention: str = "learned"
    classes: Sequence[str] = ("negative", "positive")

    def __post_init__(self) -> None:
        if self.attention not in ATTENTIONS:
            raise BadInput(f"Attention is {' or '.join(ATTENTIONS)}, not {self.attention!r}.")
        if min(self.width, self.hidden, self.attention_width) < 1:
            raise BadInput("Width, hidden and attention_width are at least 1.")
        if len(self.classes) != len(set(self.classes)) or len(self.classes) != 2:
            raise BadInput(f"The model tells two classes apart, the second is positive; it was given {self.classes}.")


class Reading(NamedTuple):
    """What the model makes of a batch: the state of each word, the attention on it, and the logit of each text."""

    states: Float[Tensor, "batch token state"]
    weights: Float[Tensor, "batch token"]
    logits: Float[Tensor, "batch 1"]


class RecurrentClassifier(nn.Module):
    """A BiLSTM whose states are pooled by attention, learned or the same everywhere.

    In a record, the attention is one head of one layer in which every row is α, and α is the read-out too, as in
    `AttentionClassifier`; its tokens are the words between bos and eos, where the vocabulary has these.

    >>> from attnscope.lab.vocabulary import FRAMED
    >>> model = RecurrentClassifier(Vocabulary(["a", "good", "film"], special=FRAMED), width=8, hidden=4)
    >>> record = model.instrumented().record("a good film")
    >>> record.tokens, tuple(record.weights.shape), [label for label, _ in sorted(record.prediction)]
    (('[BOS]', 'a', 'good', 'film', '[EOS]'), (1, 1, 5, 5), ['negative', 'positive'])
    """

    def __init__(self, vocabulary: Vocabulary, **settings: Any) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.settings = said = settings_of(Settings, settings)
        self.classes = tuple(said.classes)
        self.embeddings = nn.Embedding(len(vocabulary), said.width)
        self.lstm = nn.LSTM(said.width, said.hidden, bidirectional=said.bidirectional, batch_first=True)
        state = said.hidden * (2 if said.bidirectional else 1)
        self.attention_map = nn.Linear(state, said.attention_width)
        self.attention_score = nn.Linear(said.attention_width, 1)
        self.attention = FixedQueryAttention()
        self.output = nn.Linear(state, 1)

    def forward(
        self,
        input_ids: Int[Tensor, "batch token"],
        attention_mask: Tensor | None = None,
        attention: Float[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch 1"]:
        """The logit of the second class; the mask is 1 where a word is, and `attention` stands in for α if given."""
        return self.read(self.embeddings(input_ids), _real(input_ids, attention_mask), attention).logits

    def read(
        self,
        vectors: Float[Tensor, "batch token width"],
        real: Bool[Tensor, "batch token"],
        attention: Float[Tensor, "batch token"] | None = None,
    ) -> Reading:
        """All that the model makes of texts whose words are given as vectors."""
        states = lstm_states(self.lstm, vectors, real)
        weights = self.attention(self.scores(states), real)[0] if attention is None else attention
        return Reading(states, weights, self.output(torch.einsum("bt,bts->bs", weights, states)))

    def states(
        self, input_ids: Int[Tensor, "batch token"], attention_mask: Tensor | None = None
    ) -> Float[Tensor, "batch token state"]:
        """h: what the LSTM has read at each word, forwards and backwards behind each other; zeros at padding."""
        return lstm_states(self.lstm, self.embeddings(input_ids), _real(input_ids, attention_mask))

    def scores(self, states: Float[Tensor, "batch token state"]) -> Float[Tensor, "batch token"]:
        """a: the attention score of each state; the same for all where attention is uniform."""
        if self.settings.attention == "uniform":
            return states.new_zeros(states.shape[:2])
        return self.attention_score(self.attention_map(states).relu()).squeeze(-1)  # type: ignore[no-any-return]

    def weights(
        self, input_ids: Int[Tensor, "batch token"], attention_mask: Tensor | None = None
    ) -> Float[Tensor, "batch token"]:
        """α: the share of each word; none has padding."""
        return self.read(self.embeddings(input_ids), _real(input_ids, attention_mask)).weights

    def word_logits(
        self, input_ids: Int[Tensor, "batch token"], attention_mask: Tensor | None = None
    ) -> Float[Tensor, "batch token"]:
        """Wᵀh_l + b: the logit with all attention on one word; (2y - 1) times it is the logit of β_l."""
        return self.output(self.states(input_ids, attention_mask)).squeeze(-1)  # type: ignore[no-any-return]

    def loss(self, logits: Float[Tensor, "text 1"], classes: Int[Tensor, " text"]) -> Float[Tensor, ""]:
        """The mean cross-entropy, -log σ((2y - 1) logit)."""
        return F.binary_cross_entropy_with_logits(logits.squeeze(-1), classes.to(logits))

    def predicted(self, logits: Float[Tensor, "text 1"]) -> Int[Tensor, " text"]:
        """The number of the class that each logit tells."""
        return (logits.squeeze(-1) > 0).long()

    def tokenize(self, text: str | list[str]) -> Tokenized:
        """The words of a text with spaces between them, or of a list, looked up in lower case, between bos and eos."""
        words = text.split() if isinstance(text, str) else list(text)
        if not words:
            raise BadInput("The text is empty; give at least one word.")
        before, behind = self._ends()
        return Tokenized(
            tokens=[*before, *words, *behind],
            inputs=self._numbers(words),
            special=[True] * len(before) + [False] * len(words) + [True] * len(behind),
            word_ids=[*[None] * len(before), *range(len(words)), *[None] * len(behind)],
        )

    def batch(self, texts: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """What `forward` takes for several texts, each given as its words."""
        ids, real = self.vocabulary.pad([self._numbers(words) for words in texts])
        return {"input_ids": ids, "attention_mask": real}

    def _ends(self) -> tuple[list[str], list[str]]:
        special = self.vocabulary.special
        return [special["bos"]] if "bos" in special else [], [special["eos"]] if "eos" in special else []

    def _numbers(self, words: Sequence[str]) -> list[int]:
        before, behind = self._ends()
        return self.vocabulary.encode([*before, *(word.lower() for word in words), *behind])

    def instrumented(self) -> InstrumentedModel:
        """The model as `attnscope` records it and runs it again."""
        return instrument(
            self,
            tokenize=self.tokenize,
            attention="attention",
            embeddings="embeddings",
            labels=self.classes,
            readout="attention",
            answer=both_sides,
            blanks={name: self.vocabulary.number(name) for name in ("unk", "pad")},
            padding=self.vocabulary.number("pad"),
        )

    def save(self, folder: str | Path) -> Path:
        """Write weights, settings and vocabulary into a folder."""
        return save_model(Path(folder), self, asdict(self.settings), self.vocabulary)

    @classmethod
    def load(cls, folder: str | Path) -> "RecurrentClassifier":
        """The model that `save` has written, ready to answer."""
        return load_model(Path(folder), cls)


def _real(input_ids: Int[Tensor, "batch token"], attention_mask: Tensor | None) -> Bool[Tensor, "batch token"]:
    return torch.ones_like(input_ids).bool() if attention_mask is None else attention_mask.bool()
