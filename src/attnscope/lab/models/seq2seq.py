"""Seq2Seq: a recurrent encoder and decoder with dot attention between them, for copying and for translation.

The model of Snell et al. 2021, sections 2.1 and 5.2. Symbols of the paper: h_l is `Encoded.values`, s_t (also d_t) is
`Decoded.states`, α is `Decoded.weights`, W of Eq. 1 is `query` of a head, N of Eq. 2 is `output`, β is `lexical`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ...capture import Tokenized
from ...capture.watching import in_evaluation
from ...errors import BadInput
from ...record import AttentionRecord
from ..vocabulary import FRAMED, Vocabulary
from .lstm_scan import gate_biases, gate_weights, scan
from .seq2seq_output import OUTPUTS, SourceAttention
from .word_model import WordModel

# Recurrent layers over padded batches, and a quick LSTM for texts with few different words.


Source = Int[Tensor, "batch source"]
Target = Int[Tensor, "batch step"]
Real = Bool[Tensor, "batch source"]
"""Where tokens of the source are, and no padding."""
GivenAttention = Float[Tensor, "batch #head step source"]
Logits = Float[Tensor, "batch step vocabulary"]
State = tuple[Float[Tensor, "cell_layer batch cell_width"], ...]
"""What a recurrent network hands on: (h, c) of an LSTM, (h,) of a GRU."""


def run_cells(
    cells: nn.RNNBase,
    vectors: Float[Tensor, "batch token width"],
    start: State | None = None,
    real: Bool[Tensor, "batch token"] | None = None,
) -> tuple[Float[Tensor, "batch token states"], State]:
    """The state at every token, and the state after the last real one, of every layer and direction.

    A text in a padded batch gives what it gives alone: padding is not read, and its states are zero.
    """
    given: Any = None if start is None else (start if isinstance(cells, nn.LSTM) else start[0])
    if real is None or bool(real.all()):
        states, end = cells(vectors, given)
    else:
        packed = pack_padded_sequence(vectors, real.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        states, end = cells(packed, given)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=vectors.shape[1])
    return states, end if isinstance(cells, nn.LSTM) else (end,)


def run_looked_up(
    cells: nn.RNNBase, embeddings: nn.Embedding, ids: Int[Tensor, "batch token"], start: State | None = None
) -> tuple[Float[Tensor, "batch token states"], State]:
    """The same as `run_cells` on the embeddings of `ids`, for an LSTM of one layer and one direction.

    What an input adds to the gates depends on the word alone, so it is computed once for each word of the vocabulary
    and looked up. This halves the arithmetic where a batch has many more tokens than the vocabulary has words.
    """
    width, (batch, tokens) = cells.hidden_size, ids.shape
    of_input, recurrent, bias = gate_weights(cells, "weight_ih"), gate_weights(cells, "weight_hh"), gate_biases(cells)
    table = embeddings.weight @ of_input[0].T + bias[0]
    driven = table[ids.T.reshape(-1)].unsqueeze(0)
    hidden, memory = (driven.new_zeros(1, batch, width),) * 2 if start is None else start
    states, memories = scan(driven, recurrent, hidden, memory, [batch] * tokens)
    return states.view(tokens, batch, width).transpose(0, 1), (states[:, -batch:], memories[:, -batch:])


CELLS: dict[str, Callable[..., nn.RNNBase]] = {"lstm": nn.LSTM, "gru": nn.GRU}
CHOICES = {
    "cell": tuple(CELLS),
    "contexts": ("sum", "mean"),
    "activation": ("tanh", "relu"),
    "output": tuple(OUTPUTS),
    "attention": ("learned", "uniform"),
}
TRANSLATION = {"layers": 2, "bidirectional": True, "activation": "relu", "dropout": 0.5}
"""The settings of the paper's translation model; those of its copying model are the defaults."""
HEADS = {"cell": "gru", "heads": 8, "contexts": "mean", "shared_embeddings": False}
"""The settings of the authors' code for several heads; in the paper it is an LSTM, and contexts are summed."""
GREEDY_WORDS = 128
"""How far the model writes by itself where the user gives no output."""
LONGEST = 100
"""Words at most that a search writes, eos not counted."""
BEAMS = 5


@dataclass(frozen=True)
class Settings:
    """How the model reads, attends and answers; the defaults are those of the copying task."""

    cell: str = "lstm"
    layers: int = 1
    bidirectional: bool = False
    width: int = 256
    heads: int = 1
    contexts: str = "sum"
    shared_embeddings: bool = True
    activation: str = "tanh"
    dropout: int | float = 0.0
    output: str = "network"
    attention: str = "learned"

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise BadInput(f"{name}= is {' or '.join(choices)}, not {getattr(self, name)!r}.")
        for name in ("layers", "width", "heads"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name}= is at least 1, not {getattr(self, name)}.")
        if not 0 <= self.dropout < 1:
            raise BadInput(f"dropout= is a share from 0 to below 1, not {self.dropout}.")


@dataclass(frozen=True, eq=False)
class Encoded:
    """A batch of sources as the decoder sees them: states h_l, where tokens are, and the state it starts from."""

    values: Float[Tensor, "batch source source_width"]
    real: Real
    start: State


@dataclass(frozen=True, eq=False)
class Decoded:
    """What the decoder gives: logits, α, its states s_t, and the state from which the next token continues."""

    logits: Logits
    weights: Float[Tensor, "batch head step source"]
    states: Float[Tensor, "batch step width"]
    end: State


class Seq2Seq(WordModel):
    """From a source to an output, word by word, by a recurrent network that attends to the source.

    The defaults are the paper's copying model: one LSTM layer of 256 each side, one embedding for both;
    `TRANSLATION` and `HEADS` in this module are the settings of its other experiments. In a record, decoder inputs are
    the queries, and the read-out is the last of them.

    >>> words = Vocabulary(["the", "key"], special=FRAMED)
    >>> record = Seq2Seq(words, width=8).eval().record("key the", "the key")
    >>> record.stack, record.query_tokens, record.key_tokens
    ('cross', ('[BOS]', 'the', 'key'), ('key', 'the', '[EOS]'))
    """

    Settings = Settings

    def __init__(self, vocabulary: Vocabulary, **settings: Any) -> None:
        super().__init__(vocabulary, settings)
        if missing := [name for name in FRAMED if name not in vocabulary.special]:
            raise BadInput(
                f"The vocabulary of a Seq2Seq needs the special token {missing[0]}: make it with special="
                "attnscope.lab.vocabulary.FRAMED."
            )
        chosen = self.settings
        width, words, make = chosen.width, len(vocabulary), CELLS[chosen.cell]
        dropout = chosen.dropout if chosen.layers > 1 else 0
        recurrent = {"num_layers": chosen.layers, "batch_first": True, "dropout": dropout}
        self.embeddings = nn.Embedding(words, width)
        self.own_embeddings = None if chosen.shared_embeddings else nn.Embedding(words, width)
        self.encoder = make(width, width, bidirectional=chosen.bidirectional, **recurrent)
        self.decoder = make(width, width, **recurrent)
        source_width = 2 * width if chosen.bidirectional else width
        self.attention = SourceAttention(width, source_width, chosen.heads, chosen.contexts, chosen.attention)
        self.output = OUTPUTS[chosen.output](width, words, chosen.activation)

    @property
    def target_embeddings(self) -> nn.Embedding:
        """The embeddings of outputs: those of sources too, unless the model has others."""
        return self.embeddings if self.own_embeddings is None else self.own_embeddings

    def forward(
        self,
        source: Source,
        target_in: Target,
        source_mask: Real | None = None,
        attention: GivenAttention | None = None,
    ) -> Logits:
        """The logits of the next word at each step; `attention`, where given, takes the place of the model's own."""
        return self.decode(self.encode(source, source_mask), target_in, attention).logits

    def encode(
        self,
        source: Source,
        source_mask: Real | None = None,
        vectors: Float[Tensor, "batch source width"] | None = None,
    ) -> Encoded:
        """Read the sources; the mask is true where a token is. `vectors` may replace the embeddings of the tokens."""
        real = torch.ones_like(source).bool() if source_mask is None else source_mask
        if vectors is None and self._looks_up(self.encoder, self.embeddings, source) and bool(real.all()):
            values, end = run_looked_up(self.encoder, self.embeddings, source)
        else:
            values, end = run_cells(self.encoder, self.embeddings(source) if vectors is None else vectors, real=real)
        if self.settings.bidirectional:
            end = tuple(part.unflatten(0, (-1, 2)).mean(1) for part in end)
        return Encoded(values, real, end)

    def decode(self, encoded: Encoded, target_in: Target, attention: GivenAttention | None = None) -> Decoded:
        """Read the outputs so far, each step the word before the one it tells."""
        if self._looks_up(self.decoder, self.target_embeddings, target_in):
            states, end = run_looked_up(self.decoder, self.target_embeddings, target_in, encoded.start)
        else:
            # contiguous, because the means over directions and the rows that a beam keeps are not
            start = tuple(part.contiguous() for part in encoded.start)
            states, end = run_cells(self.decoder, self.target_embeddings(target_in), start)
        contexts, weights = self.attention(states, encoded.values, encoded.real, attention)
        return Decoded(self.output(contexts, states), weights, states, end)

    def weights(
        self, source: Source, target_in: Target, source_mask: Real | None = None
    ) -> Float[Tensor, "batch head step source"]:
        """α: where each step looks."""
        return self.decode(self.encode(source, source_mask), target_in).weights

    def lexical(
        self, source: Source, target_in: Target, target_out: Target, source_mask: Real | None = None
    ) -> Float[Tensor, "batch step source"]:
        """Log β_tl: the log probability of the right word with all attention on one source token (Eq. 4).

        Padding of the source has minus infinity.
        """
        encoded = self.encode(source, source_mask)
        states = self.decode(encoded, target_in).states
        found = self.output.right_for_pairs(self.attention.alone(encoded.values), states, target_out)
        return found.masked_fill(~encoded.real.unsqueeze(1), -torch.inf)

    def loss(self, logits: Logits, target_out: Target) -> Float[Tensor, ""]:
        """The mean cross-entropy of the right words; padding does not count (the paper's Eq. 3 is the sum)."""
        return F.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=self.vocabulary.number("pad"))

    def accuracy(self, logits: Logits, target_out: Target) -> float:
        """The share of right words; padding does not count."""
        counted = target_out != self.vocabulary.number("pad")
        return float((logits.argmax(-1) == target_out)[counted].float().mean())

    def record(self, text: Any, text_target: Any = None, **options: Any) -> AttentionRecord:
        """The cross-attention on a text and its output, each a text or a list of words; by default the greedy one."""
        found: AttentionRecord = self.instrumented().record(
            text if text_target is None else (text, text_target), **options
        )
        return found

    def _reading(self) -> dict[str, Any]:
        """The logits are those of the last step."""
        return {
            "attention": "attention",
            "embeddings": "embeddings",
            "labels": self.vocabulary.tokens,
            "readout": "last",
            "answer": lambda logits: logits[:, -1],
        }

    def tokenize(self, text: Any) -> Tokenized:
        """A source, or a pair of a source and its output, each a text with spaces or a list of words, with its ids.

        Where no output is given, it is what the model writes by itself.
        """
        source, target = text if isinstance(text, tuple) and len(text) == 2 else (text, None)
        begin, end = (self.vocabulary.special[name] for name in ("bos", "eos"))
        tokens = [*_words(source), end]
        if len(tokens) == 1:
            raise BadInput("The source is empty; give at least one word.")
        ids = self.vocabulary.encode(tokens)
        if target is None:
            source_ids = torch.tensor([ids], device=self.embeddings.weight.device)
            (written,) = greedy(self, source_ids, torch.ones_like(source_ids).bool(), GREEDY_WORDS)
            shown = self.vocabulary.decode(written)
        else:
            shown = _words(target)
            written = self.vocabulary.encode(shown)
        return Tokenized(
            tokens=tokens,
            inputs={"input_ids": ids, "target_in": [self.vocabulary.number("bos"), *written]},
            special=[False] * (len(tokens) - 1) + [True],
            word_ids=[*range(len(tokens) - 1), None],
            query_tokens=[begin, *shown],
        )

    def _looks_up(self, cells: nn.RNNBase, embeddings: nn.Embedding, ids: Int[Tensor, "batch token"]) -> bool:
        """Whether `run_looked_up` knows these layers and saves work.

        It does so only in training, because others may watch or replace the embeddings.
        """
        plain = isinstance(cells, nn.LSTM) and cells.num_layers == 1 and not cells.bidirectional
        return self.training and plain and ids.numel() > 2 * embeddings.num_embeddings


def _words(text: str | Sequence[str]) -> list[str]:
    return text.split() if isinstance(text, str) else list(text)


# What a Seq2Seq writes by itself: the likeliest word at each step, or the best of several beams.


def greedy(model: Seq2Seq, source: Source, real: Real, longest: int = LONGEST) -> list[list[int]]:
    """The likeliest word at each step but padding, up to eos, of every source."""
    return beam_search(model, source, real, beams=1, longest=longest)


def beam_search(
    model: Seq2Seq, source: Source, real: Real, beams: int = BEAMS, longest: int = LONGEST
) -> list[list[int]]:
    """The output of the highest mean log probability per word, eos counted, among those that the beams came to.

    All beams of all sources continue together, and those with the highest sum are kept; padding is never written. A
    beam that writes eos is finished and keeps its place, and a source is done when all its beams are; outputs that come
    to no end within `longest` words are taken as they are.
    """
    if beams < 1 or longest < 1:
        raise BadInput(f"Decoding needs at least one beam and one word, not {beams} and {longest}.")
    with torch.no_grad(), in_evaluation(model, model):
        encoded = _repeated(model.encode(source, real), beams)
        return _searched(model, encoded, len(source), beams, longest)


def _searched(model: Seq2Seq, encoded: Encoded, sources: int, beams: int, longest: int) -> list[list[int]]:
    end, pad = (model.vocabulary.number(name) for name in ("eos", "pad"))
    words = encoded.real.new_full((sources * beams, 1), model.vocabulary.number("bos"), dtype=torch.long)
    # in the beginning all beams of a source are the same: only the first counts
    total = torch.full((sources, beams), -torch.inf)
    total[:, 0] = 0.0
    done = torch.zeros(sources, beams, dtype=torch.bool)
    base = torch.arange(sources)[:, None] * beams
    for _ in range(longest):
        step = model.decode(encoded, words[:, -1:])
        gains = step.logits[:, -1].log_softmax(-1).view(sources, beams, -1)
        # a finished beam continues with padding, which costs nothing
        gains = gains.masked_fill(done[..., None], -torch.inf)
        gains[..., pad] = torch.where(done, 0.0, -torch.inf)
        total, flat = (total[..., None] + gains).flatten(1).topk(beams, dim=1)
        kept, word = flat // gains.shape[-1], flat % gains.shape[-1]
        done = done.gather(1, kept) | (word == end)
        rows = (base + kept).flatten()
        words = torch.cat([words[rows], word.view(-1, 1)], 1)
        encoded = replace(encoded, start=tuple(part[:, rows] for part in step.end))
        if done.all():
            break
    return _best(words[:, 1:].view(sources, beams, -1), total, (end, pad))


def _best(
    words: Int[Tensor, "batch beam step"], total: Float[Tensor, "batch beam"], ending: tuple[int, int]
) -> list[list[int]]:
    """The words of the best beam of each source, without eos and padding."""
    end, pad = ending
    lengths = (words != pad).sum(-1)
    best = (total / lengths).argmax(1)
    return [
        [word for word in row[place].tolist() if word not in (end, pad)]
        for row, place in zip(words, best.tolist(), strict=True)
    ]


def _repeated(encoded: Encoded, beams: int) -> Encoded:
    """Each source once for every beam, behind each other."""
    return replace(
        encoded,
        values=encoded.values.repeat_interleave(beams, 0),
        real=encoded.real.repeat_interleave(beams, 0),
        start=tuple(part.repeat_interleave(beams, 1) for part in encoded.start),
    )
