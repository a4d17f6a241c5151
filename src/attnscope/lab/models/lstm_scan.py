"""One LSTM layer over texts of different lengths, forwards or both ways: each text is read alone, and no padding is.

The weights are those of an `nn.LSTM`, and so is every number it gives; only the way is ours. Texts are packed, all
first words, then all second ones, and so on, longest text first; one matrix product serves both directions, and the
derivative of the weights is one product at the end. Forwards and backwards on one core, 32 texts of up to 20, 100 and
200 words took 73, 304 and 615 ms; `nn.LSTM` on a PackedSequence took 71, 696 and 1,988 ms, and two of `nn.LSTM`, the
second on texts turned round within their padding, 77, 351 and 700 ms.
"""

from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class Packing:
    """Where each word of a batch stands when the texts are packed: its text, its place read either way, and counts."""

    def __init__(self, real: Bool[Tensor, "text token"]) -> None:
        lengths = real.sum(1)
        order = lengths.argsort(descending=True, stable=True)
        counts = real[order].sum(0)
        self.counts: list[int] = counts[counts > 0].tolist()
        """How many texts have a first word, a second word, and so on."""
        self.rows: Int[Tensor, " word"] = torch.cat([order[:count] for count in self.counts])
        self.forwards: Int[Tensor, " word"] = torch.arange(len(self.counts)).repeat_interleave(
            torch.tensor(self.counts)
        )
        self.backwards: Int[Tensor, " word"] = lengths[self.rows] - 1 - self.forwards


def lstm_states(
    lstm: nn.LSTM, vectors: Float[Tensor, "text token width"], real: Bool[Tensor, "text token"]
) -> Float[Tensor, "text token state"]:
    """The states of a layer of one direction or two at each word, as `nn.LSTM` gives them, and zeros at padding.

    Padding stands behind the words of a text, and every text has a word.
    """
    packing = Packing(real)
    places = (packing.forwards, packing.backwards) if lstm.bidirectional else (packing.forwards,)
    read = torch.stack([vectors[packing.rows, place] for place in places])
    driven = torch.baddbmm(gate_biases(lstm), read, gate_weights(lstm, "weight_ih").transpose(1, 2))
    nothing = driven.new_zeros(len(places), len(real), lstm.hidden_size)
    found, _ = scan(driven, gate_weights(lstm, "weight_hh"), nothing, nothing, packing.counts)
    states = found.new_zeros(*real.shape, len(places), lstm.hidden_size)
    for direction, place in enumerate(places):
        states = states.index_put((packing.rows, place, torch.tensor(direction)), found[direction])
    return states.flatten(2)


def gate_weights(lstm: nn.RNNBase, name: str) -> Float[Tensor, "direction gates *inputs"]:
    """Weights of the first layer by their name in torch, for each direction, with the gates as `scan` has them."""
    # torch keeps them as input, forget, cell, output; with the cell last, all sigmoids stand together
    kept = [getattr(lstm, f"{name}_l0{suffix}").chunk(4) for suffix in ("", "_reverse")[: 1 + lstm.bidirectional]]
    return torch.stack([torch.cat([gates[0], gates[1], gates[3], gates[2]]) for gates in kept])


def gate_biases(lstm: nn.RNNBase) -> Float[Tensor, "direction 1 gates"]:
    """What drives the gates at every word."""
    return (gate_weights(lstm, "bias_ih") + gate_weights(lstm, "bias_hh")).unsqueeze(1)


def scan(
    driven: Float[Tensor, "direction word gates"],
    recurrent: Float[Tensor, "direction gates size"],
    hidden: Float[Tensor, "direction text size"],
    memory: Float[Tensor, "direction text size"],
    counts: list[int],
) -> tuple[Float[Tensor, "direction word size"], Float[Tensor, "direction word size"]]:
    """The state and the memory at each packed word, from what drives its gates and how each text begins.

    `counts` are those of `Packing`; the gates are input, forget, output and cell.
    """
    return cast(tuple[Tensor, Tensor], _Scan.apply(driven, recurrent, hidden, memory, counts))  # type: ignore[no-untyped-call]


class _Scan(torch.autograd.Function):
    """One word after the other also where all could go at once, because so little stays near the processor."""

    @staticmethod
    def forward(
        ctx: Any, driven: Tensor, recurrent: Tensor, hidden: Tensor, memory: Tensor, counts: list[int]
    ) -> tuple[Tensor, Tensor]:
        size = recurrent.shape[2]
        gates = driven.clone()
        states, memories, squashed = (driven.new_empty(*driven.shape[:2], size) for _ in range(3))
        transposed = recurrent.transpose(1, 2).contiguous()
        state, kept, start = hidden, memory, 0
        for count in counts:
            now = slice(start, start + count)
            gate = gates[:, now].baddbmm_(state[:, :count], transposed)
            gate[..., : 3 * size].sigmoid_()
            gate[..., 3 * size :].tanh_()
            let_in, keep, show, fresh = gate.split(size, -1)
            kept = torch.mul(keep, kept[:, :count], out=memories[:, now]).addcmul_(let_in, fresh)
            state = torch.mul(show, torch.tanh(kept, out=squashed[:, now]), out=states[:, now])
            start += count
        ctx.save_for_backward(gates, recurrent, hidden, memory, states, memories, squashed)
        ctx.counts = counts
        ctx.set_materialize_grads(False)
        return states, memories

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, by_states: Tensor | None, by_memories: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor, Tensor, None]:
        gates, recurrent, hidden, memory, states, memories, squashed = ctx.saved_tensors
        counts, size = ctx.counts, recurrent.shape[2]
        by_sigmoid, by_tanh = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward
        slopes = torch.empty_like(gates)
        by_state, by_memory = torch.zeros_like(hidden), torch.zeros_like(memory)
        starts = [0, *torch.tensor(counts).cumsum(0).tolist()]
        for step in reversed(range(len(counts))):
            count, now = counts[step], slice(starts[step], starts[step + 1])
            before = memory if step == 0 else memories[:, starts[step - 1] : starts[step]]
            let_in, keep, show, fresh = gates[:, now].split(size, -1)
            by_let_in, by_keep, by_show, by_fresh = slopes[:, now].split(size, -1)
            state, kept = by_state[:, :count], by_memory[:, :count]
            if by_states is not None:
                state += by_states[:, now]
            if by_memories is not None:
                kept += by_memories[:, now]
            kept += by_tanh(state * show, squashed[:, now])
            by_sigmoid.grad_input(kept * fresh, let_in, grad_input=by_let_in)
            by_sigmoid.grad_input(kept * before[:, :count], keep, grad_input=by_keep)
            by_sigmoid.grad_input(state * squashed[:, now], show, grad_input=by_show)
            by_tanh.grad_input(kept * let_in, fresh, grad_input=by_fresh)
            state.copy_(torch.bmm(slopes[:, now], recurrent))
            kept *= keep
        if not ctx.needs_input_grad[1]:  # saliency wants the derivative of the vectors alone
            return slopes, None, by_state, by_memory, None
        earlier = torch.cat([hidden, states[:, _previous(counts)]], 1)
        return slopes, torch.bmm(slopes.transpose(1, 2), earlier), by_state, by_memory, None


def _previous(counts: list[int]) -> Int[Tensor, " later_word"]:
    """The packed place of the word before, for all words but the first of each text."""
    starts = torch.tensor([0, *counts]).cumsum(0).tolist()
    places = [torch.arange(starts[step], starts[step] + counts[step + 1]) for step in range(len(counts) - 1)]
    return torch.cat(places) if places else torch.zeros(0, dtype=torch.long)
