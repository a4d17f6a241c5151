"""One run of the classifier DP or DP-A, an epoch at a time, compiled: gradients in closed form, rows updated sparsely.

For one text with the dropped embeddings x_j, the context vector V, the output W and λ (paper's symbols):

    a_j = x_j·v / λ,  α = softmax(a),  x̄ = Σ α_j x_j,  h = x̄            (DP:   v = V)
                                                       h = M x̄ + b        (DP-A: v = Mᵀ V)

For DP-A every h_j = M x_j + b enters only as h_j·V and as Σ α_j h_j, so that M meets one vector a text instead of one a
token; b·V moves all scores alike and drops out. With logits z = W (m ∘ h), m the dropout of the context, and
g = dloss/dz: w̃ = m ∘ Wᵀg is dloss/dh, q = w̃ (DP-A: Mᵀ w̃) is dloss/dx̄, c_j = α_j (x_j·q - x̄·q) / λ, and

    dloss/dx_j = c_j v + α_j q,  p = Σ c_j x_j = dloss/dv,  dloss/dV = p (DP-A: M p),  dloss/dM = V pᵀ + Σ w̃ x̄ᵀ.

Adagrad leaves a row without gradient where it is, so that only the rows of the batch are touched and the result is
that of dense gradients. All arrays of a run are together; runs go side by side in threads, because nothing here holds
Python's lock.
"""

from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from ...attribution.compiling import compiled

# The small compiled pieces of a sweep: sums over one vector, softmax, Adagrad. None of them holds Python's lock.
# No constant may be a bare float: it would turn 32-bit sums into 64-bit ones.


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


@compiled(nogil=True, error_model="numpy", fastmath=SUMS)
@no_type_check
def forward(embeddings, tokens, factors, dropped, direction, scaling, weights, mean):
    """Embeddings times factors, attention weights along `direction`, and their weighted mean."""
    mean[:] = 0
    for j in range(tokens.shape[0]):
        row, kept, out = embeddings[tokens[j]], factors[j], dropped[j]
        total = scaling - scaling
        for k in range(row.shape[0]):
            number = row[k] * kept[k]
            out[k] = number
            total += number * direction[k]
        weights[j] = total / scaling
    turn_to_softmax(weights)
    for j in range(tokens.shape[0]):
        add_scaled(mean, weights[j], dropped[j])


@compiled(nogil=True, error_model="numpy", fastmath=SUMS)
@no_type_check
def train_dot(texts, order, batch, step, seed, drop, weights, squares, rates, strengths):
    """One epoch of one run: all its arrays are changed in place; gives the number of the next step.

    Args:
        texts: tokens, starts and labels of `PackedTexts`.
        order: The texts in the order of this epoch.
        batch: How many texts make an update.
        step: The number of the first update.
        seed: Of the dropout masks.
        drop: Whether half of the numbers are dropped.
        weights: embeddings, context, output, affine matrix and affine bias; the last two empty for DP.
        squares: Adagrad's sums of squared gradients, alike.
        rates: λ, learning rate, its decay and epsilon, in the precision of the weights.
        strengths: Of L2 and of the penalty on V·W, in the same; and whether the penalty is on the square.
    """
    tokens, starts, labels = texts
    embeddings, context, output, matrix, bias = weights
    scaling, rate, decay, epsilon = rates
    decline, penalty, square = strengths
    kind = embeddings.dtype.type
    width, outcomes = context.shape[0], output.shape[0]
    affine = matrix.shape[0] > 0
    longest = np.max(starts[1:] - starts[:-1])
    most = min(longest * batch, embeddings.shape[0])
    slots = np.full(embeddings.shape[0], -1, np.int32)
    rows = np.empty(most, np.int32)
    gradients = np.empty((most, width), embeddings.dtype)
    factors, dropped = np.full((longest, width), kind(1)), np.empty((longest, width), embeddings.dtype)
    kept = np.full(width, kind(1))
    weight = np.empty(longest, embeddings.dtype)
    mean, hidden, back, back_mean = (
        np.empty(width, embeddings.dtype),
        np.empty(width, embeddings.dtype),
        np.empty(width, embeddings.dtype),
        np.empty(width, embeddings.dtype),
    )
    logits = np.empty(outcomes, embeddings.dtype)
    for begin in range(0, order.shape[0], batch):
        chosen = order[begin : begin + batch]
        size = kind(chosen.shape[0])
        direction = context
        if affine:
            direction = np.zeros(width, embeddings.dtype)
            for k in range(width):
                add_scaled(direction, context[k], matrix[k])
        direction_gradient = np.zeros_like(context)
        output_gradient, matrix_gradient = np.zeros_like(output), np.zeros_like(matrix)
        bias_gradient = np.zeros_like(bias)
        used = 0
        for text in chosen:
            words = tokens[starts[text] : starts[text + 1]]
            n = words.shape[0]
            if drop:
                key = key_of_text(seed, step, text)
                write_factors(key, 0, kind(2), kept)
                for j in range(n):
                    write_factors(key, j + 1, kind(2), factors[j])
            alpha = weight[:n]
            forward(embeddings, words, factors, dropped, direction, scaling, alpha, mean)
            for k in range(width):
                hidden[k] = (dot(matrix[k], mean) + bias[k] if affine else mean[k]) * kept[k]
            for k in range(outcomes):
                logits[k] = dot(output[k], hidden)
            turn_to_slopes(logits, kind(labels[text]), size)
            back[:] = 0
            for k in range(outcomes):
                add_scaled(back, logits[k], output[k])
                add_scaled(output_gradient[k], logits[k], hidden)
            back *= kept
            if affine:
                back_mean[:] = 0
                for k in range(width):
                    add_scaled(back_mean, back[k], matrix[k])
                    add_scaled(matrix_gradient[k], back[k], mean)
                    bias_gradient[k] += back[k]
            else:
                back_mean[:] = back
            middle = dot(mean, back_mean)
            for j in range(n):
                word = words[j]
                if slots[word] < 0:
                    slots[word] = used
                    rows[used] = word
                    gradients[used] = 0
                    used += 1
                share = alpha[j]
                slope = share * (dot(dropped[j], back_mean) - middle) / scaling
                row, kept_here, vector = gradients[slots[word]], factors[j], dropped[j]
                for k in range(width):
                    row[k] += kept_here[k] * (slope * direction[k] + share * back_mean[k])
                    direction_gradient[k] += slope * vector[k]
        context_gradient = direction_gradient
        if affine:
            context_gradient = np.zeros_like(context)
            for k in range(width):
                context_gradient[k] = dot(matrix[k], direction_gradient)
                add_scaled(matrix_gradient[k], context[k], direction_gradient)
        if penalty > 0:
            add_penalty(context, output, context_gradient, output_gradient, penalty, square)
        now = rate / (kind(1) + kind(step) * decay)
        for slot in range(used):
            row = rows[slot]
            slots[row] = -1
            update(embeddings[row], squares[0][row], gradients[slot], now, epsilon)
        decline_and_update(context, squares[1], context_gradient, decline, now, epsilon)
        decline_and_update(bias, squares[4], bias_gradient, decline, now, epsilon)
        for k in range(outcomes):
            decline_and_update(output[k], squares[2][k], output_gradient[k], decline, now, epsilon)
        for k in range(matrix.shape[0]):
            decline_and_update(matrix[k], squares[3][k], matrix_gradient[k], decline, now, epsilon)
        step += 1
    return step


@compiled(nogil=True, error_model="numpy")
@no_type_check
def count_right_dot(texts, weights, scaling):
    """How many texts DP or DP-A gets right, without dropout."""
    tokens, starts, labels = texts
    embeddings, context, output, matrix, bias = weights
    kind = embeddings.dtype.type
    width = context.shape[0]
    affine = matrix.shape[0] > 0
    direction = context
    if affine:
        direction = np.zeros(width, embeddings.dtype)
        for k in range(width):
            add_scaled(direction, context[k], matrix[k])
    longest = np.max(starts[1:] - starts[:-1])
    factors, dropped = np.full((longest, width), kind(1)), np.empty((longest, width), embeddings.dtype)
    weight, mean, hidden = np.empty(longest, embeddings.dtype), np.empty_like(context), np.empty_like(context)
    logits = np.empty(output.shape[0], embeddings.dtype)
    right = 0
    for text in range(labels.shape[0]):
        words = tokens[starts[text] : starts[text + 1]]
        forward(embeddings, words, factors, dropped, direction, scaling, weight[: words.shape[0]], mean)
        for k in range(width):
            hidden[k] = dot(matrix[k], mean) + bias[k] if affine else mean[k]
        for k in range(output.shape[0]):
            logits[k] = dot(output[k], hidden)
        right += guess(logits) == labels[text]
    return right


# Dropout masks as a pure function of seed, step and place: loops of any kind drop the very same numbers.
# Dropout with probability one half needs one bit for each place, and 1 keeps. The bits come from splitmix64, a
# counter pushed through a mixer, so that any word of 64 bits can be had without those before it:
# - the key of a text is `mixed(mixed(mixed(seed) + step) + text)`, where `step` counts the updates of the run from 0
# and `text` is the number of the text in the training data, whatever its batch; - with B = ceil(width / 64) words to
# a vector, word b of the vector at place p is `mixed(key + (p * B + b + 1) * GOLDEN)`; - place 0 is the context
# vector h (the weighted mean), place j + 1 is the embedding of token j of the text; - dimension k of a vector is bit
# k % 64 of its word k // 64.
# λ, the variant and the penalty do not enter: runs of one seed that differ in these see the same masks. The NumPy
# form is for reading and checking, the compiled form for loops; both give the same bits.


WORD = 64
"""How many places one hash decides."""
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mixed(numbers: UInt64[np.ndarray, "*any"]) -> UInt64[np.ndarray, "*any"]:
    """Each number with its bits stirred: the finaliser of splitmix64, a bijection.

    >>> hex(mixed(np.array([GOLDEN], np.uint64))[0])
    '0xe220a8397b1dcdaf'
    """
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(FIRST)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(SECOND)
    stirred: np.ndarray = numbers ^ (numbers >> np.uint64(31))
    return stirred


def words_to_a_vector(width: int) -> int:
    """How many hashes the mask of one vector takes."""
    return -(-width // WORD)


def _kept(
    seed: int, step: int, texts: Int64[np.ndarray, " text"], places: Int64[np.ndarray, " place"], width: int
) -> Bool[np.ndarray, "text place width"]:
    count = words_to_a_vector(width)
    key = mixed(mixed(np.array([seed], np.uint64)) + np.uint64(step))
    keys = mixed(key + texts.astype(np.uint64))
    counters = (places[:, None] * count + np.arange(1, count + 1)).astype(np.uint64)
    words = mixed(keys[:, None, None] + counters * np.uint64(GOLDEN))
    bits = (words[..., None] >> np.arange(WORD, dtype=np.uint64)) & np.uint64(1)
    return bits.reshape(len(texts), len(places), count * WORD)[..., :width].astype(bool)


def kept_of_tokens(
    seed: int, step: int, texts: Int64[np.ndarray, " text"], longest: int, width: int
) -> Bool[np.ndarray, "text token width"]:
    """Which numbers of the embeddings of these texts stay in this step; positions count from the start of a text."""
    return _kept(seed, step, texts, np.arange(1, longest + 1), width)


def kept_of_context(
    seed: int, step: int, texts: Int64[np.ndarray, " text"], width: int
) -> Bool[np.ndarray, "text width"]:
    """Which numbers of the weighted mean h of these texts stay in this step.

    >>> kept_of_context(seed=222, step=0, texts=np.array([7]), width=8).astype(int)
    array([[0, 0, 1, 1, 1, 1, 0, 1]])
    """
    return _kept(seed, step, texts, np.arange(1), width)[:, 0]


@compiled(nogil=True, inline="always")
@no_type_check
def mixed_word(number):
    """`mixed` of one number."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(FIRST)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(SECOND)
    return number ^ (number >> np.uint64(31))


@compiled(nogil=True)
@no_type_check
def key_of_text(seed, step, text):
    """The key that the masks of a text in a step come from."""
    return mixed_word(mixed_word(mixed_word(np.uint64(seed)) + np.uint64(step)) + np.uint64(text))


@compiled(nogil=True)
@no_type_check
def write_factors(key, place, scale, factors):
    """Fill one vector's `factors` with `scale` where a number stays and 0 where it is dropped."""
    width = factors.shape[0]
    count = np.uint64((width + WORD - 1) // WORD)
    counter = np.uint64(place) * count + np.uint64(1)
    one = np.int32(1)
    for first in range(0, width, 32):  # half words, because 32 bits fill the lanes of a processor like 32-bit floats
        word = mixed_word(np.uint64(key) + (counter + np.uint64(first // WORD)) * np.uint64(GOLDEN))
        half = np.int32(np.uint32(word >> np.uint64(first % WORD)))
        part = factors[first : min(first + 32, width)]
        for bit in range(part.shape[0]):
            part[bit] = scale * ((half & (one << np.int32(bit))) != 0)
