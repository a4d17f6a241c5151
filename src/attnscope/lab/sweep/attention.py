"""What comes before and after an encoder in one run, compiled: rows of embeddings, attention, rows updated sparsely.

A batch is the texts `chosen` behind each other. `rows` says where an encoder keeps each of their tokens, so that one
may lay them out as it likes. The symbols are those of kernels.py.
"""

from typing import no_type_check

import numpy as np

from ...attribution.compiling import compiled
from .arithmetic import (
    SUMS,
    add_scaled,
    dot,
    guess,
    turn_to_slopes,
    turn_to_softmax,
    update,
)
from .kernels import key_of_text, write_factors


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
