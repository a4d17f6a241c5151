"""Dropout masks as a pure function of seed, step and place: loops of any kind drop the very same numbers.

Dropout with probability one half needs one bit for each place, and 1 keeps. The bits come from splitmix64, a counter
pushed through a mixer, so that any word of 64 bits can be had without those before it:

- the key of a text is `mixed(mixed(mixed(seed) + step) + text)`, where `step` counts the updates of the run from 0 and
  `text` is the number of the text in the training data, whatever its batch;
- with B = ceil(width / 64) words to a vector, word b of the vector at place p is
  `mixed(key + (p * B + b + 1) * GOLDEN)`;
- place 0 is the context vector h (the weighted mean), place j + 1 is the embedding of token j of the text;
- dimension k of a vector is bit k % 64 of its word k // 64.

λ, the variant and the penalty do not enter: runs of one seed that differ in these see the same masks. The NumPy form is
for reading and checking, the compiled form for loops; both give the same bits.
"""

from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from ...attribution.compiling import compiled

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
