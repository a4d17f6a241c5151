"""Several runs of one encoder (AD or DP-L) and one seed through an epoch together: same texts, same masks, one product.

What has a large table or a text at a time is compiled and per run (sweep_attention.py); what multiplies matrices is
batched over the runs (sweep_encoders.py). The embeddings stay one table per run: a run that stops leaves the batch.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from ..data.packed import PackedTexts
from .attention import attend, count_right, gather, scatter
from .encoders import Additive, Encoder, Recurrent
from .runs import Recipe, RunState

ENCODERS: dict[str, type[Encoder]] = {"additive": Additive, "dot_lstm": Recurrent}
LOOKED_AT = 200
"""How many texts are read at once where nothing is learned."""
OUTER = ("context", "output.weight")


def train_batched(
    states: Sequence[RunState], texts: PackedTexts, order: Int64[np.ndarray, " text"], recipe: Recipe
) -> None:
    """One epoch of runs of one variant and one seed."""
    encoder = ENCODERS[states[0].settings.variant]([state.weights for state in states])
    squares = ENCODERS[states[0].settings.variant]([state.squares for state in states])
    outer = {name: _stacked(states, "weights", name) for name in OUTER}
    outer_squares = {name: _stacked(states, "squares", name) for name in OUTER}
    kind = states[0].weights["context"].dtype.type
    packed = (texts.tokens, texts.starts, texts.labels)
    lengths = texts.lengths
    for begin in range(0, len(order), recipe.batch):
        chosen = order[begin : begin + recipe.batch]
        masks = (states[0].settings.seed, states[0].step, recipe.dropout > 0)
        rows = encoder.rows(lengths[chosen])
        inputs = outer["context"].new_empty(len(states), len(rows), recipe.width)
        for number, state in enumerate(states):
            gather(packed, chosen, rows, masks, state.weights["embeddings.weight"], inputs[number].numpy())
        keys, values = encoder.forward(inputs)
        key_gradient = torch.zeros_like(keys)
        value_gradient = key_gradient if keys is values else torch.zeros_like(values)
        slopes = {name: torch.zeros_like(weight) for name, weight in outer.items()}
        for number, state in enumerate(states):
            attend(
                packed,
                chosen,
                rows,
                masks,
                keys[number].numpy(),
                values[number].numpy(),
                tuple(outer[name][number].numpy() for name in OUTER),
                kind(state.settings.scaling),
                key_gradient[number].numpy(),
                value_gradient[number].numpy(),
                tuple(slopes[name][number].numpy() for name in OUTER),
            )
        _add_penalty(states, outer, slopes)
        gradient, inner = encoder.backward(key_gradient, value_gradient)
        rate = recipe.rate_at(states[0].step)
        for number, state in enumerate(states):
            embeddings, sums = (group["embeddings.weight"] for group in (state.weights, state.squares))
            found = gradient[number].numpy()
            scatter(packed, chosen, rows, masks, embeddings, sums, found, kind(rate), kind(recipe.epsilon))
            state.step += 1
        for name, slope in (slopes | inner).items():
            now, past = (outer, outer_squares) if name in outer else (encoder.weights, squares.weights)
            _update(states, now[name], past[name], slope, rate, recipe.epsilon)
    _put_back(states, encoder, outer, "weights")
    _put_back(states, squares, outer_squares, "squares")


def right_batched(states: Sequence[RunState], texts: PackedTexts) -> list[int]:
    """How many texts each of these runs gets right, without dropout."""
    encoder = ENCODERS[states[0].settings.variant]([state.weights for state in states])
    packed = (texts.tokens, texts.starts, texts.labels)
    order = np.argsort(texts.lengths, kind="stable")
    right = [0] * len(states)
    for begin in range(0, len(order), LOOKED_AT):
        chosen = order[begin : begin + LOOKED_AT]
        rows = encoder.rows(texts.lengths[chosen])
        first = states[0].weights["embeddings.weight"]
        inputs = torch.from_numpy(np.empty((len(states), len(rows), first.shape[1]), first.dtype))
        for number, state in enumerate(states):
            embeddings = state.weights["embeddings.weight"]
            gather(packed, chosen, rows, (0, 0, False), embeddings, inputs[number].numpy())
        keys, values = encoder.forward(inputs)
        for number, state in enumerate(states):
            outer = tuple(state.weights[name] for name in OUTER)
            scaling = first.dtype.type(state.settings.scaling)
            read = (keys[number].numpy(), values[number].numpy())
            right[number] += int(count_right(packed, chosen, rows, *read, outer, scaling))
    return right


def _stacked(states: Sequence[RunState], group: str, name: str) -> Tensor:
    return torch.from_numpy(np.stack([getattr(state, group)[name] for state in states]))


def _put_back(states: Sequence[RunState], encoder: Encoder, outer: dict[str, Tensor], group: str) -> None:
    """Give every run its part of the stacks."""
    for number, state in enumerate(states):
        arrays = getattr(state, group)
        for name, stack in outer.items():
            arrays[name][...] = stack[number].numpy()
        for name, stack in encoder.weights.items():
            for own, array in encoder.unstacked(name, stack, number).items():
                arrays[own][...] = array


def _per_run(values: Sequence[int | float], like: Tensor) -> Tensor:
    """One number for each run, shaped so that it multiplies a stack; a stack of both directions has two of each."""
    column = torch.tensor(values, dtype=like.dtype).repeat_interleave(len(like) // len(values))
    return column.reshape(-1, *[1] * (like.ndim - 1))


def _add_penalty(states: Sequence[RunState], outer: dict[str, Tensor], slopes: dict[str, Tensor]) -> None:
    """The slope of c · Σ_k |V·W_k| or of its square; see `sweep_arithmetic.add_penalty`."""
    if not any(state.settings.penalty for state in states):
        return
    context, output = (outer[name] for name in OUTER)
    products = (output @ context[..., None])[..., 0]
    square = torch.tensor([state.settings.penalty_kind == "square" for state in states])[:, None]
    factor = torch.where(square, 2 * products, products.sign())
    factor = factor * _per_run([state.settings.penalty for state in states], products)
    slopes["context"] += (factor[..., None] * output).sum(1)
    slopes["output.weight"] += factor[..., None] * context[:, None]


def _update(
    states: Sequence[RunState], weights: Tensor, squares: Tensor, slopes: Tensor, rate: float, epsilon: float
) -> None:
    """Adagrad with L2 on a stack of small arrays."""
    if any(state.settings.l2 for state in states):
        slopes = slopes + _per_run([state.settings.l2 for state in states], weights) * weights
    squares.addcmul_(slopes, slopes)
    weights.addcdiv_(slopes, squares.sqrt().add_(epsilon), value=-rate)
