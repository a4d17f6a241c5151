"""What comes before and after an encoder in one run, compiled: rows of embeddings, attention, rows updated sparsely.

A batch is the texts `chosen` behind each other. `rows` says where an encoder keeps each of their tokens, so that one
may lay them out as it likes. The symbols are those of kernels.py.
"""

from collections.abc import Sequence
from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from ...attribution.compiling import compiled
from ..data.packed import PackedTexts
from .encoders import OUTER, Additive, Encoder, Recurrent, Vectors
from .kernels import SUMS, add_scaled, dot, guess, key_of_text, turn_to_slopes, turn_to_softmax, update, write_factors
from .runs import Recipe, RunState


@compiled(nogil=True, error_model="numpy", fastmath=SUMS)
@no_type_check
def gather(texts, chosen, rows, masks, embeddings, out):
    """The embeddings of a batch, dropped; `masks` are seed, step and whether numbers are dropped at all."""
    tokens, starts, _ = texts
    seed, step, drop = masks
    kind = embeddings.dtype.type
    factors = np.full(embeddings.shape[1], kind(1))
    at = 0
    for text in chosen:
        key = key_of_text(seed, step, text)
        for j in range(starts[text + 1] - starts[text]):
            if drop:
                write_factors(key, j + 1, kind(2), factors)
            row, target = embeddings[tokens[starts[text] + j]], out[rows[at]]
            for k in range(row.shape[0]):
                target[k] = row[k] * factors[k]
            at += 1


@compiled(nogil=True, error_model="numpy", fastmath=SUMS)
@no_type_check
def scatter(texts, chosen, rows, masks, embeddings, squares, gradient, rate, epsilon):
    """Adagrad on the rows of the embeddings that a batch touched; the inverse of `gather`."""
    tokens, starts, _ = texts
    seed, step, drop = masks
    kind = embeddings.dtype.type
    width = embeddings.shape[1]
    factors = np.full(width, kind(1))
    slots = np.full(embeddings.shape[0], -1, np.int32)
    most = min(rows.shape[0], embeddings.shape[0])
    words = np.empty(most, np.int32)
    sums = np.empty((most, width), embeddings.dtype)
    used = at = 0
    for text in chosen:
        key = key_of_text(seed, step, text)
        for j in range(starts[text + 1] - starts[text]):
            word = tokens[starts[text] + j]
            if slots[word] < 0:
                slots[word] = used
                words[used] = word
                sums[used] = 0
                used += 1
            if drop:
                write_factors(key, j + 1, kind(2), factors)
            target, source = sums[slots[word]], gradient[rows[at]]
            for k in range(width):
                target[k] += factors[k] * source[k]
            at += 1
    for slot in range(used):
        update(embeddings[words[slot]], squares[words[slot]], sums[slot], rate, epsilon)


@compiled(nogil=True, error_model="numpy")
@no_type_check
def read_text(rows, keys, values, context, scaling, weights, mean):
    """The attention weights of one text, and the weighted mean h of its values."""
    for j in range(rows.shape[0]):
        weights[j] = dot(keys[rows[j]], context) / scaling
    turn_to_softmax(weights)
    mean[:] = 0
    for j in range(rows.shape[0]):
        add_scaled(mean, weights[j], values[rows[j]])


@compiled(nogil=True, error_model="numpy")
@no_type_check
def attend(texts, chosen, rows, masks, keys, values, weights, scaling, key_gradient, value_gradient, gradients):
    """Add the gradients of a batch to those of keys and values (which may be one array), of context and of output."""
    _, starts, labels = texts
    seed, step, drop = masks
    context, output = weights
    context_gradient, output_gradient = gradients
    kind = context.dtype.type
    kept = np.full(context.shape[0], kind(1))
    mean, back = np.empty_like(context), np.empty_like(context)
    logits = np.empty(output.shape[0], context.dtype)
    size = kind(chosen.shape[0])
    at = 0
    for text in chosen:
        n = starts[text + 1] - starts[text]
        own = rows[at : at + n]
        at += n
        alpha = np.empty(n, context.dtype)
        read_text(own, keys, values, context, scaling, alpha, mean)
        middle = kind(0)
        if drop:
            write_factors(key_of_text(seed, step, text), 0, kind(2), kept)
        mean *= kept
        for k in range(output.shape[0]):
            logits[k] = dot(output[k], mean)
        turn_to_slopes(logits, kind(labels[text]), size)
        back[:] = 0
        for k in range(output.shape[0]):
            add_scaled(back, logits[k], output[k])
            add_scaled(output_gradient[k], logits[k], mean)
            middle += logits[k] * dot(output[k], mean)  # = h·w̃, the mean of all x_j·w̃
        back *= kept
        for j in range(n):
            slope = alpha[j] * (dot(values[own[j]], back) - middle) / scaling
            add_scaled(context_gradient, slope, keys[own[j]])
            add_scaled(key_gradient[own[j]], slope, context)
            add_scaled(value_gradient[own[j]], alpha[j], back)


@compiled(nogil=True, error_model="numpy")
@no_type_check
def count_right(texts, chosen, rows, keys, values, weights, scaling):
    """How many texts of a batch are right, without dropout."""
    _, starts, labels = texts
    context, output = weights
    mean = np.empty_like(context)
    logits = np.empty(output.shape[0], context.dtype)
    right = at = 0
    for text in chosen:
        n = starts[text + 1] - starts[text]
        read_text(rows[at : at + n], keys, values, context, scaling, np.empty(n, context.dtype), mean)
        at += n
        for k in range(output.shape[0]):
            logits[k] = dot(output[k], mean)
        right += guess(logits) == labels[text]
    return right


# Several runs of one encoder (AD or DP-L) and one seed through an epoch together: same texts, same masks, one
# product.
# What has a large table or a text at a time is compiled and per run (above); what multiplies matrices is batched over
# the runs (encoders.py). The embeddings stay one table per run: a run that stops leaves the batch.


ENCODERS: dict[str, type[Encoder]] = {"additive": Additive, "dot_lstm": Recurrent}
TEXTS_AT_ONCE = 200
"""How many texts are read at once where nothing is learned."""
Numbers = Int64[np.ndarray, " text"]
Masks = tuple[int, int, bool]
"""Seed and step of the dropout masks, and whether numbers are dropped at all."""


def train_batched(states: Sequence[RunState], texts: PackedTexts, order: Numbers, recipe: Recipe) -> None:
    """One epoch of runs of one variant and one seed."""
    encoder, squares = (
        ENCODERS[states[0].settings.variant](group)
        for group in ([state.weights for state in states], [state.squares for state in states])
    )
    kind = states[0].weights["context"].dtype.type
    packed = (texts.tokens, texts.starts, texts.labels)
    for begin in range(0, len(order), recipe.batch):
        chosen = order[begin : begin + recipe.batch]
        masks = (states[0].settings.seed, states[0].step, recipe.dropout > 0)
        rows, keys, values = _encode(encoder, states, texts, chosen, masks)
        key_gradient = torch.zeros_like(keys)
        value_gradient = key_gradient if keys is values else torch.zeros_like(values)
        slopes = {name: torch.zeros_like(encoder.weights[name]) for name in OUTER}
        for number, state in enumerate(states):
            attend(
                packed,
                chosen,
                rows,
                masks,
                keys[number].numpy(),
                values[number].numpy(),
                tuple(encoder.weights[name][number].numpy() for name in OUTER),
                kind(state.settings.scaling),
                key_gradient[number].numpy(),
                value_gradient[number].numpy(),
                tuple(slopes[name][number].numpy() for name in OUTER),
            )
        _add_penalty(states, encoder.weights, slopes)
        gradient, inner = encoder.backward(key_gradient, value_gradient)
        rate = recipe.rate_at(states[0].step)
        for number, state in enumerate(states):
            embeddings, sums = (group["embeddings.weight"] for group in (state.weights, state.squares))
            found = gradient[number].numpy()
            scatter(packed, chosen, rows, masks, embeddings, sums, found, kind(rate), kind(recipe.epsilon))
            state.step += 1
        for name, slope in (slopes | inner).items():
            _update(states, encoder.weights[name], squares.weights[name], slope, rate, recipe.epsilon)
    for number, state in enumerate(states):
        for group, stacks in ((state.weights, encoder), (state.squares, squares)):
            for name, stack in stacks.weights.items():
                for own, array in stacks.unstacked(name, stack, number).items():
                    group[own][...] = array


def right_batched(states: Sequence[RunState], texts: PackedTexts) -> list[int]:
    """How many texts each of these runs gets right, without dropout."""
    encoder = ENCODERS[states[0].settings.variant]([state.weights for state in states])
    kind = states[0].weights["context"].dtype.type
    packed = (texts.tokens, texts.starts, texts.labels)
    order = np.argsort(texts.lengths, kind="stable")
    right = [0] * len(states)
    for begin in range(0, len(order), TEXTS_AT_ONCE):
        chosen = order[begin : begin + TEXTS_AT_ONCE]
        rows, keys, values = _encode(encoder, states, texts, chosen, (0, 0, False))
        for number, state in enumerate(states):
            outer = tuple(state.weights[name] for name in OUTER)
            read = (keys[number].numpy(), values[number].numpy())
            right[number] += int(count_right(packed, chosen, rows, *read, outer, kind(state.settings.scaling)))
    return right


def _encode(
    encoder: Encoder, states: Sequence[RunState], texts: PackedTexts, chosen: Numbers, masks: Masks
) -> tuple[Int64[np.ndarray, " token"], Vectors, Vectors]:
    """Where the tokens of a batch are, and their keys and values in all runs."""
    rows = encoder.rows(texts.lengths[chosen])
    width = states[0].weights["embeddings.weight"].shape[1]
    inputs = encoder.weights["context"].new_empty(len(states), len(rows), width)
    packed = (texts.tokens, texts.starts, texts.labels)
    for number, state in enumerate(states):
        gather(packed, chosen, rows, masks, state.weights["embeddings.weight"], inputs[number].numpy())
    return rows, *encoder.forward(inputs)


def _per_run(values: Sequence[int | float], like: Tensor) -> Tensor:
    """One number for each run, shaped so that it multiplies a stack; a stack of both directions has two of each."""
    column = torch.tensor(values, dtype=like.dtype).repeat_interleave(len(like) // len(values))
    return column.reshape(-1, *[1] * (like.ndim - 1))


def _add_penalty(states: Sequence[RunState], weights: dict[str, Tensor], slopes: dict[str, Tensor]) -> None:
    """The slope of c · Σ_k |V·W_k| or of its square; see `kernels.add_penalty`."""
    if not any(state.settings.penalty for state in states):
        return
    context, output = (weights[name] for name in OUTER)
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
