"""The encoders of several runs at once, forwards and backwards in closed form: additive keys, and a two-way LSTM.

The arrays of R runs are stacked in a leading axis, so that one batched product serves them all.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from ...attribution.compiling import compiled
from .kernels import SUMS

Vectors = Float[Tensor, "run token width"]
OUTER = ("context", "output.weight")
"""V and W, which every variant has behind its encoder."""


class Encoder(ABC):
    """What turns the embeddings of a batch into keys and values; it remembers one batch for the way back.

    `weights` are those of the encoder, by their `names`, and of what is behind it.
    """

    names: tuple[str, ...]

    def __init__(self, runs: Sequence[Mapping[str, np.ndarray]]) -> None:
        self.weights = {name: self.stacked(runs, name) for name in (*OUTER, *self.names)}

    def stacked(self, runs: Sequence[Mapping[str, np.ndarray]], name: str) -> Tensor:
        """The array of that name of all runs."""
        return torch.from_numpy(np.stack([run[name] for run in runs]))

    def unstacked(self, name: str, stack: Tensor, run: int) -> dict[str, np.ndarray]:
        """The arrays of one run, under the names of the model."""
        return {name: stack[run].numpy()}

    @abstractmethod
    def rows(self, lengths: Int64[np.ndarray, " text"]) -> Int64[np.ndarray, " token"]:
        """Lay out a batch of texts of these lengths; where each token is put."""

    @abstractmethod
    def forward(self, inputs: Vectors) -> tuple[Vectors, Vectors]:
        """Keys and values; one and the same tensor where they do not differ."""

    @abstractmethod
    def backward(self, keys: Vectors, values: Vectors) -> tuple[Vectors, dict[str, Tensor]]:
        """From the gradients of keys and values, those of the inputs and of the weights."""


class Additive(Encoder):
    """AD: keys tanh(M e + b), values e."""

    names = ("affine.weight", "affine.bias")

    def rows(self, lengths: Int64[np.ndarray, " text"]) -> Int64[np.ndarray, " token"]:
        """Text by text."""
        return np.arange(lengths.sum())

    def forward(self, inputs: Vectors) -> tuple[Vectors, Vectors]:
        """One product a run."""
        self.inputs = inputs
        matrix, bias = self.weights["affine.weight"], self.weights["affine.bias"]
        self.keys = torch.baddbmm(bias[:, None], inputs, matrix.mT).tanh_()
        return self.keys, inputs

    def backward(self, keys: Vectors, values: Vectors) -> tuple[Vectors, dict[str, Tensor]]:
        """The slope of tanh is 1 - tanh²."""
        slopes = keys.addcmul_(keys * self.keys, self.keys, value=-1)
        gradients = {"affine.weight": torch.bmm(slopes.mT, self.inputs), "affine.bias": slopes.sum(1)}
        return values.baddbmm_(slopes, self.weights["affine.weight"]), gradients


class Recurrent(Encoder):
    """DP-L: h is what an LSTM gives in both directions, as keys and as values; gates in PyTorch's order i, f, g, o."""

    names = ("lstm.weight_ih_l0", "lstm.weight_hh_l0", "lstm.bias_ih_l0", "lstm.bias_hh_l0")

    def stacked(self, runs: Sequence[Mapping[str, np.ndarray]], name: str) -> Tensor:
        """Of the LSTM, forwards and backwards of all runs, one after the other."""
        ends = ("", "_reverse") if name in self.names else ("",)
        return torch.from_numpy(np.stack([run[name + end] for run in runs for end in ends]))

    def unstacked(self, name: str, stack: Tensor, run: int) -> dict[str, np.ndarray]:
        """Of the LSTM, both directions of one run."""
        if name not in self.names:
            return super().unstacked(name, stack, run)
        return {name: stack[2 * run].numpy(), f"{name}_reverse": stack[2 * run + 1].numpy()}

    def rows(self, lengths: Int64[np.ndarray, " text"]) -> Int64[np.ndarray, " token"]:
        """Moment by moment."""
        self.moments: Moments = by_moment(lengths)
        self.mirror = torch.from_numpy(self.moments.mirror)
        return self.moments.rows

    def forward(self, inputs: Vectors) -> tuple[Vectors, Vectors]:
        """One product for all that comes from outside, then one a moment for what comes from the moment before."""
        first, second, one, other = (self.weights[name] for name in self.names)
        self.inputs = torch.stack([inputs, inputs[:, self.mirror]], 1).flatten(0, 1)
        self.gates = torch.baddbmm((one + other)[:, None], self.inputs, first.mT)
        half = second.shape[2]
        self.cells = self.gates.new_empty(*self.gates.shape[:2], half)
        self.curves, self.hidden = torch.empty_like(self.cells), torch.empty_like(self.cells)
        recurrent, last = second.mT.contiguous(), 0
        for offset, count in zip(self.moments.offsets.tolist(), self.moments.counts.tolist(), strict=True):
            here, there = slice(offset, offset + count), slice(last, last + count)
            gates, cells, curves = self.gates[:, here], self.cells[:, here], self.curves[:, here]
            if offset:
                gates.baddbmm_(self.hidden[:, there], recurrent)
            gates[..., : 2 * half].sigmoid_()
            gates[..., 2 * half : 3 * half].tanh_()
            gates[..., 3 * half :].sigmoid_()
            torch.mul(gates[..., :half], gates[..., 2 * half : 3 * half], out=cells)
            if offset:
                cells.addcmul_(gates[..., half : 2 * half], self.cells[:, there])
            torch.tanh(cells, out=curves)
            torch.mul(gates[..., 3 * half :], curves, out=self.hidden[:, here])
            last = offset
        both = self.hidden.unflatten(0, (-1, 2))
        out = torch.cat([both[:, 0], both[:, 1, self.mirror]], -1)
        return out, out

    def backward(self, keys: Vectors, values: Vectors) -> tuple[Vectors, dict[str, Tensor]]:
        """Moment by moment from the last; `keys` is `values`, and holds the sum of both gradients."""
        del keys
        first, second, *_ = (self.weights[name] for name in self.names)
        half = second.shape[2]
        hidden = torch.stack([values[..., :half], values[:, self.mirror, half:]], 1).flatten(0, 1)
        carried = torch.zeros_like(hidden[:, : self.moments.counts[0]])
        offsets = self.moments.offsets.tolist()
        parts = (self.gates.numpy(), self.cells.numpy(), self.curves.numpy(), hidden.numpy(), carried.numpy())
        for moment in range(len(offsets) - 1, -1, -1):
            offset, count = offsets[moment], int(self.moments.counts[moment])
            before = offsets[moment - 1] if moment else -1
            gates_backward(*parts, offset, count, before)
            if moment:
                hidden[:, before : before + count].baddbmm_(self.gates[:, offset : offset + count], second)
        slopes, later = self.gates, len(self.moments.before)
        since = slopes.shape[1] - later
        came = self.hidden[:, torch.from_numpy(self.moments.before)]
        bias = slopes.sum(1)
        gradients = dict(
            zip(
                self.names,
                (torch.bmm(slopes.mT, self.inputs), torch.bmm(slopes[:, since:].mT, came), bias, bias.clone()),
                strict=True,
            )
        )
        inputs = torch.bmm(slopes, first).unflatten(0, (-1, 2))
        return inputs[:, 0] + inputs[:, 1, self.mirror], gradients


@compiled(nogil=True, error_model="numpy", fastmath=SUMS)
@no_type_check
def gates_backward(gates, cells, curves, hidden, carried, offset, count, before):
    """One moment backwards: gates become their slopes, `carried` is dloss/dcell on its way to the moment before."""
    half = cells.shape[2]
    one = gates.dtype.type(1)
    for r in range(gates.shape[0]):
        for i in range(count):
            row = offset + i
            gate, curve, slope, carry = gates[r, row], curves[r, row], hidden[r, row], carried[r, i]
            opens, forgets, news, shows = (
                gate[:half],
                gate[half : 2 * half],
                gate[2 * half : 3 * half],
                gate[3 * half :],
            )
            previous = cells[r, before + i] if before >= 0 else cells[r, row]
            there = one if before >= 0 else one - one
            for k in range(half):
                a, f, g, o = opens[k], forgets[k], news[k], shows[k]
                cell = slope[k] * o * (one - curve[k] * curve[k]) + carry[k]
                shows[k] = slope[k] * curve[k] * o * (one - o)
                opens[k] = cell * g * a * (one - a)
                news[k] = cell * a * (one - g * g)
                forgets[k] = there * cell * previous[k] * f * (one - f)
                carry[k] = cell * f


# How the tokens of a batch are laid out in memory: text by text, or moment by moment for an encoder that reads in time.


@dataclass(frozen=True, eq=False)
class Moments:
    """First the first tokens of all texts, then the second ones, …, without padding; the longest text comes first.

    The texts that have a token at a moment are then the first so many of those at the moment before: a recurrent step
    works on one block. Read backwards, a text has as many moments, so that both directions share the blocks.
    """

    rows: Int64[np.ndarray, " token"]
    """Where each token is; tokens are counted text by text."""
    counts: Int64[np.ndarray, " moment"]
    """How many texts have a token at each moment."""
    offsets: Int64[np.ndarray, " moment"]
    """Where the block of each moment begins."""
    mirror: Int64[np.ndarray, " token"]
    """For each place, the place of the token as far from the end of its text as this one is from the start."""
    before: Int64[np.ndarray, " later"]
    """For each place behind the first block, the place of the token before it."""


def by_moment(lengths: Int64[np.ndarray, " text"]) -> Moments:
    """Lay out texts of these lengths.

    >>> moments = by_moment(np.array([1, 3]))
    >>> moments.rows.tolist(), moments.counts.tolist(), moments.mirror.tolist(), moments.before.tolist()
    ([1, 0, 2, 3], [2, 1, 1], [3, 1, 2, 0], [0, 2])
    """
    rank = np.empty(len(lengths), np.int64)
    rank[np.argsort(-lengths, kind="stable")] = np.arange(len(lengths))
    longest = int(lengths.max())
    counts = len(lengths) - np.searchsorted(np.sort(lengths), np.arange(longest), side="right")
    offsets = np.cumsum(counts) - counts
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    position = np.arange(len(first)) - first
    rows = offsets[position] + np.repeat(rank, lengths)
    mirror = np.empty_like(rows)
    mirror[rows] = rows[first + np.repeat(lengths, lengths) - 1 - position]
    before = np.empty_like(rows)
    later = np.flatnonzero(position)
    before[rows[later]] = rows[later - 1]
    return Moments(rows, counts, offsets, mirror, before[counts[0] :])
