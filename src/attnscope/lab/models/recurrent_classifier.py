"""RecurrentClassifier: an LSTM reads a text both ways, attention pools its states, and one logit tells the class.

The model of Snell et al. 2021, section 2.4, after Wiegreffe & Pinter 2019. Symbols of the paper: h_l is a row of
`states`, a_l = vᵀ ReLU(Q h_l) with Q `attention_map` and v `attention_score`, α = softmax(a), W is `output`,
p(positive) = σ(Σ α_l Wᵀh_l), and β_l = σ((2y - 1) Wᵀh_l). All maps have biases, as the authors' have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ...errors import BadInput
from ..vocabulary import Vocabulary
from .attention_classifier import FixedQueryAttention, PooledClassifier
from .lstm_scan import lstm_states
from .word_model import Ids, Real, Shares, Vectors, real_tokens

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
    weights: Shares
    logits: Float[Tensor, "batch 1"]


class RecurrentClassifier(PooledClassifier):
    """A BiLSTM whose states are pooled by attention, learned or the same everywhere.

    In a record, the attention is one head of one layer in which every row is α, and α is the read-out too, as in
    `AttentionClassifier`; its tokens are the words between bos and eos, where the vocabulary has these.

    >>> from attnscope.lab.vocabulary import FRAMED
    >>> model = RecurrentClassifier(Vocabulary(["a", "good", "film"], special=FRAMED), width=8, hidden=4)
    >>> record = model.instrumented().record("a good film")
    >>> record.tokens, tuple(record.weights.shape), [label for label, _ in sorted(record.prediction)]
    (('[BOS]', 'a', 'good', 'film', '[EOS]'), (1, 1, 5, 5), ['negative', 'positive'])
    """

    Settings = Settings
    before, behind = "bos", "eos"

    def __init__(self, vocabulary: Vocabulary, **settings: Any) -> None:
        super().__init__(vocabulary, settings)
        chosen = self.settings
        self.classes = tuple(chosen.classes)
        self.embeddings = nn.Embedding(len(vocabulary), chosen.width)
        self.lstm = nn.LSTM(chosen.width, chosen.hidden, bidirectional=chosen.bidirectional, batch_first=True)
        state = chosen.hidden * (2 if chosen.bidirectional else 1)
        self.attention_map = nn.Linear(state, chosen.attention_width)
        self.attention_score = nn.Linear(chosen.attention_width, 1)
        self.attention = FixedQueryAttention()
        self.output = nn.Linear(state, 1)

    def forward(
        self, input_ids: Ids, attention_mask: Tensor | None = None, attention: Shares | None = None
    ) -> Float[Tensor, "batch 1"]:
        """The logit of the second class; the mask is 1 where a word is, and `attention` stands in for α if given."""
        return self.read(self.embeddings(input_ids), real_tokens(input_ids, attention_mask), attention).logits

    def read(self, vectors: Vectors, real: Real, attention: Shares | None = None) -> Reading:
        """All that the model makes of texts whose words are given as vectors."""
        states = lstm_states(self.lstm, vectors, real)
        weights = self.attention(self.scores(states), real)[0] if attention is None else attention
        return Reading(states, weights, self.output(torch.einsum("bt,bts->bs", weights, states)))

    def states(self, input_ids: Ids, attention_mask: Tensor | None = None) -> Float[Tensor, "batch token state"]:
        """h: what the LSTM has read at each word, forwards and backwards behind each other; zeros at padding."""
        return lstm_states(self.lstm, self.embeddings(input_ids), real_tokens(input_ids, attention_mask))

    def scores(self, states: Float[Tensor, "batch token state"]) -> Shares:
        """a: the attention score of each state; the same for all where attention is uniform."""
        if self.settings.attention == "uniform":
            return states.new_zeros(states.shape[:2])
        return self.attention_score(self.attention_map(states).relu()).squeeze(-1)  # type: ignore[no-any-return]

    def weights(self, input_ids: Ids, attention_mask: Tensor | None = None) -> Shares:
        """α: the share of each word; none has padding."""
        return self.read(self.embeddings(input_ids), real_tokens(input_ids, attention_mask)).weights

    def word_logits(self, input_ids: Ids, attention_mask: Tensor | None = None) -> Shares:
        """Wᵀh_l + b: the logit with all attention on one word; (2y - 1) times it is the logit of β_l."""
        return self.output(self.states(input_ids, attention_mask)).squeeze(-1)  # type: ignore[no-any-return]
