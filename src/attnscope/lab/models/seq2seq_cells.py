"""Recurrent layers over padded batches, and a quick LSTM for texts with few different words."""

from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .lstm_scan import gate_biases, gate_weights, scan

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


def may_look_up(cells: nn.RNNBase, embeddings: nn.Embedding, ids: Int[Tensor, "batch token"]) -> bool:
    """Whether `run_looked_up` knows these layers and saves work."""
    plain = isinstance(cells, nn.LSTM) and cells.num_layers == 1 and not cells.bidirectional
    return plain and ids.numel() > 2 * embeddings.num_embeddings
