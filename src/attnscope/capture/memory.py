"""What is held in memory at the peak, told from the sizes of a model: the tensors alive at each moment of the work.

A recording has few moments that can be its peak. While the last layer attends, the weights of all others are kept, and
that layer holds its scores and their softmax. When the model answers, all weights are kept beside the answers. When
the records are made, weights are there twice: as the model computed them, and as one tensor. With gradients, the
backward pass begins when everything it needs is saved, and ends when each layer's weights have a gradient, which are
then there twice as well. What runs a model again holds a batch of texts: in blank-out, one layer's work and the keys
and values that runs share; in integrated gradients, all that a backward pass needs.

Counted is what is alive at once, beside the model itself. An allocator that does not give back what was freed holds
more: see "Long inputs" in the documentation of capture.
"""

import ctypes
import sys
from dataclasses import dataclass
from typing import Any, Literal

FLOAT32_BYTES = 4
ANSWERS = 2
"""The run's own, and those of the unobserved run of the self-check."""
SCORES = 2
"""What one layer holds of the size of its weights while it attends: scores and masked scores, or these and weights."""
SCORES_COMPARED = 4
"""The same while weights are computed again from queries and keys: scores, weights, and their differences, twice."""
BACKWARD_SCORES = 2.5
"""The same while a backward pass goes through a layer: gradients of weights and of scores, and a share of copies."""
WIDTHS_AT_WORK = 4
"""Vectors of the model's width that a layer holds for each token: embeddings, what it is given, normed, added to."""
TRIANGLE = 1.25
"""What looking for weights ahead holds, of the size of a layer: its upper triangle, and where that is above zero."""
BLOCKS = 2
"""Blocks of weights that are held at once where vectors are read block by block; one more where more than that is
added to scores."""
BLOCK_BYTES = 2**20 * FLOAT32_BYTES
BIAS_COPIES = 2
"""Of the biases in a record of queries and keys: as kept, and with minus infinity where the mask is."""
WORTH_GIVING_BACK = 2**25
"""Bytes of weights from which what a run has freed is given back to the system before records are made."""
SHARED = 0.1
"""The share of a text that blank-out runs must have in common before it is run by itself."""
Rerun = Literal["blank_out", "integrated_gradients"]
"""Methods that run the model again, batch by batch."""


@dataclass(frozen=True)
class Size:
    """What of a model decides how much it takes to record and to run it."""

    layers: int
    heads: int
    width: int
    head_width: int
    groups: int
    """How many heads of keys and values there are, which query heads may share."""
    outcomes: int
    """How many numbers it gives for each token: its vocabulary, or none."""
    answers_everywhere: bool
    """Whether it gives them at every token also where only one answer is asked for."""
    takes_padding: bool
    """Whether texts of different lengths run together."""
    generates: bool
    """Whether it first writes its own output for each text."""
    number_bytes: int = FLOAT32_BYTES
    """What one of its numbers takes."""
    attentions: int = 0
    """How many times it attends, in all its stacks."""
    inner: int = 0
    """How many numbers the widest layer holds at once for each token, beside those of the model's width."""
    saved: int = 0
    """How many numbers of each token all layers save for a backward pass, beside queries, keys and values."""
    biased: int = 0
    """How many times it attends with learned biases of each head."""
    has_softcap: bool = False
    has_windows: bool = False
    """Whether queries of some layers see no further than some tokens."""
    is_fused: bool = True
    """Whether it attends without weights when nobody looks."""
    shares_beginnings: bool = False
    """Whether runs that begin alike have their beginning computed once."""
    is_bound: bool = False
    """Whether it takes less than is counted, by a share that depends on the text."""

    def weight_bytes(self, length: int, heads: Literal["all", "mean"]) -> int:
        """The attention weights in the record of a text of so many tokens."""
        return self.layers * (self.heads if heads == "all" else 1) * length**2 * FLOAT32_BYTES

    @property
    def has_biases(self) -> bool:
        """Whether heads add biases of their own to their scores."""
        return self.biased > 0

    @property
    def of_queries(self) -> int:
        """The numbers in one token's queries."""
        return self.heads * self.head_width

    @property
    def of_keys(self) -> int:
        """The numbers in one token's keys, and in its values."""
        return self.groups * self.head_width


@dataclass(frozen=True)
class Held:
    """What a record holds beside its weights, and how."""

    kept_heads: int
    """The heads whose weights are kept: all, or one for their mean."""
    gradients: bool
    queries_and_keys: bool
    values: bool


def record_bytes(size: Size, held: Held, length: int) -> int:
    """What a record of a text takes once it is made."""
    weights = size.layers * held.kept_heads * length**2 * FLOAT32_BYTES
    gradients = weights if held.gradients and held.kept_heads == size.heads else 0
    return weights + gradients + FLOAT32_BYTES * _vectors(size, held, length) + _biases(size, held, 1, length)


def recording_bytes(size: Size, held: Held, texts: int, length: int) -> int:
    """What is held at the peak while a batch of texts of this length runs and its records are made, with them."""
    tokens, pairs = texts * length, texts * length**2
    one_map = size.heads * pairs * size.number_bytes
    kept = size.layers * held.kept_heads * pairs * size.number_bytes
    shared = pairs * size.number_bytes + (2 * size.heads * length**2 * size.number_bytes if size.has_biases else 0)
    vectors = size.number_bytes * _vectors(size, held, tokens) + _biases(size, held, texts, length)
    answers = size.outcomes * tokens * size.number_bytes
    work = _work(size, tokens)
    scores = one_map * (SCORES_COMPARED if held.queries_and_keys else SCORES - 1)
    scores += size.heads * pairs * max(FLOAT32_BYTES - size.number_bytes, 0)  # softmax is of float32 numbers
    if held.kept_heads == 1:
        scores += one_map  # no map of the last layer is among those that are kept
    records = texts * record_bytes(size, held, length)
    if size.number_bytes < FLOAT32_BYTES:  # as they are stacked, as float32, and with rows brought to one
        records += texts * size.layers * held.kept_heads * length**2 * (FLOAT32_BYTES + size.number_bytes)
    moments = {
        "attending": kept + scores + shared + vectors + work + answers,
        "answering": kept + vectors + ANSWERS * answers,
        "making records": kept + vectors + answers + records + TRIANGLE * held.kept_heads * length**2 * FLOAT32_BYTES,
    }
    if held.gradients:
        maps = size.attentions * one_map * (2 if size.has_softcap else 1)
        of_heads = kept if held.kept_heads == size.heads else 0
        moments["backward pass"] = (
            maps + shared + vectors + answers + BACKWARD_SCORES * one_map + _saved(size, tokens, fused=False) + work
        )
        moments["making records"] += of_heads
    return int(max(moments.values()))


def vectors_bytes(size: Size, length: int, values: bool, number_bytes: int) -> int:
    """What a record of vectors takes: queries, keys, perhaps values, and one float32 number for each head and query."""
    numbers = size.of_queries + size.of_keys * (2 if values else 1)
    biases = size.heads * length**2 * FLOAT32_BYTES if size.has_biases else 0
    return size.layers * length * (numbers * number_bytes + size.heads * FLOAT32_BYTES) + biases


def keeping_vectors_bytes(size: Size, length: int, values: bool, number_bytes: int) -> int:
    """What is held at the peak while a text is recorded as vectors."""
    record = vectors_bytes(size, length, values, number_bytes)
    biases = BIAS_COPIES * size.heads * length**2 * FLOAT32_BYTES if size.has_biases else 0
    by_blocks = size.has_biases or size.has_softcap
    moments = [_work(size, length), size.layers * length * size.of_queries * number_bytes]
    if by_blocks or size.has_windows:
        vectors = WIDTHS_AT_WORK * size.width + 3 * size.of_queries + 2 * size.of_keys
        blocks = (BLOCKS + by_blocks) * min(BLOCK_BYTES, size.heads * length**2 * FLOAT32_BYTES)
        moments.append(blocks + length * vectors * FLOAT32_BYTES)
    if size.answers_everywhere:
        moments.append(ANSWERS * size.outcomes * length * FLOAT32_BYTES)
    return record + biases + max(moments)


def running_bytes(size: Size, method: Rerun, texts: int, length: int) -> int:
    """What is held at the peak while a batch of texts of this length is run again by a method."""
    tokens, pairs = texts * length, texts * length**2
    given = tokens * size.width * FLOAT32_BYTES + 2 * length * size.width * FLOAT32_BYTES
    one_map = size.heads * pairs * size.number_bytes
    biases = size.heads * length**2 * size.number_bytes if size.has_biases else 0
    scores = SCORES * one_map if not size.is_fused else 2 * biases
    answers = size.outcomes * (tokens if size.answers_everywhere else texts) * FLOAT32_BYTES
    work = _work(size, tokens)
    if method == "blank_out":
        cache = 2 * size.layers * size.of_keys * tokens * size.number_bytes if size.shares_beginnings else 0
        alone = 1 - SHARED if size.shares_beginnings else 1
        return int(given + cache + 2 * biases + max(alone * work, scores, answers))
    maps = (size.biased if size.is_fused else size.attentions * (1 + size.has_softcap)) * one_map
    backward = max(tokens * size.inner * size.number_bytes, BACKWARD_SCORES * one_map if maps else 0)
    return int(2 * given + biases + maps + _saved(size, tokens, fused=not maps) + backward + 2 * answers)


def _vectors(size: Size, held: Held, tokens: int) -> int:
    """The numbers in the queries, keys and values that a record holds of its tokens."""
    of_token = 2 * size.of_queries * held.queries_and_keys + size.heads * size.width * held.values
    return size.layers * of_token * tokens


def _biases(size: Size, held: Held, texts: int, length: int) -> int:
    """The masks and biases of all layers, which a record of queries and keys holds."""
    heads = size.heads if size.has_biases else 1
    return held.queries_and_keys * size.layers * heads * texts * length**2 * FLOAT32_BYTES


def _work(size: Size, tokens: int) -> int:
    """What one layer holds of tokens while it works."""
    return tokens * (WIDTHS_AT_WORK * size.width + size.inner) * size.number_bytes


def _saved(size: Size, tokens: int, fused: bool) -> int:
    """What all layers save of tokens for a backward pass, without attention weights."""
    of_keys = size.of_keys if fused else size.of_queries  # which heads share, or have each for itself
    attending = size.attentions * (2 * size.of_queries + 2 * of_keys)
    return tokens * (size.saved + attending) * size.number_bytes


def give_back(layers: Any) -> None:
    """Give what a run has freed back to the system, where its weights are large: what follows is the peak otherwise."""
    if sys.platform == "linux" and sum(layer.nbytes for layer in layers) > WORTH_GIVING_BACK:
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only the allocator of glibc has it
        if trim is not None:
            trim(0)
