"""The small compiled pieces of a sweep: sums over one vector, softmax, Adagrad. None of them holds Python's lock.

No constant may be a bare float: it would turn 32-bit sums into 64-bit ones.
"""

from typing import no_type_check

import numpy as np

from ...attribution.compiling import compiled

SUMS = {"reassoc", "contract", "arcp", "nsz"}
"""What the compiler may do: reorder sums, so that it can use wide registers. Infinities and NaN stay what they are."""


@compiled(nogil=True, error_model="numpy", fastmath=SUMS)
@no_type_check
def dot(left, right):
    """The dot product of two vectors."""
    total = left[0] - left[0]
    for k in range(left.shape[0]):
        total += left[k] * right[k]
    return total


@compiled(nogil=True, error_model="numpy", fastmath=SUMS)
@no_type_check
def add_scaled(target, factor, vector):
    """Add `factor` times `vector`."""
    for k in range(target.shape[0]):
        target[k] += factor * vector[k]


@compiled(nogil=True, error_model="numpy")
@no_type_check
def turn_to_softmax(scores):
    """Scores into weights that sum to one."""
    highest = scores.max()
    total = highest - highest
    for j in range(scores.shape[0]):
        scores[j] = np.exp(scores[j] - highest)
        total += scores[j]
    for j in range(scores.shape[0]):
        scores[j] /= total


@compiled(nogil=True, error_model="numpy")
@no_type_check
def turn_to_slopes(logits, label, batch):
    """Logits into dloss/dlogit of the mean over a batch: a sigmoid for one outcome, a softmax for several."""
    if logits.shape[0] == 1:
        one = batch / batch
        logits[0] = (one / (one + np.exp(-logits[0])) - label) / batch
        return
    turn_to_softmax(logits)
    for k in range(logits.shape[0]):
        logits[k] = (logits[k] - (k == label)) / batch


@compiled(nogil=True, error_model="numpy")
@no_type_check
def guess(logits):
    """The number of the likeliest class."""
    if logits.shape[0] == 1:
        return np.int64(logits[0] > 0)
    return np.argmax(logits)


@compiled(nogil=True, error_model="numpy", fastmath=SUMS)
@no_type_check
def update(weights, squares, gradient, rate, epsilon):
    """Adagrad on one vector."""
    for k in range(weights.shape[0]):
        squares[k] += gradient[k] * gradient[k]
        weights[k] -= rate * gradient[k] / (np.sqrt(squares[k]) + epsilon)


@compiled(nogil=True, error_model="numpy")
@no_type_check
def add_penalty(context, output, context_gradient, output_gradient, strength, square):
    """Add the slope of strength · Σ_k |V·W_k|, or of its square, where W_k is the output of outcome k."""
    for k in range(output.shape[0]):
        product = dot(context, output[k])
        slope = strength * (product + product) if square else strength * np.sign(product)
        add_scaled(context_gradient, slope, output[k])
        add_scaled(output_gradient[k], slope, context)


@compiled(nogil=True, error_model="numpy")
@no_type_check
def decline_and_update(weights, squares, gradient, decline, rate, epsilon):
    """Adagrad on one vector with L2 in its gradient."""
    add_scaled(gradient, decline, weights)
    update(weights, squares, gradient, rate, epsilon)
