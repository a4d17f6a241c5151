"""Word vectors made here, out of which words stand near each other: positive mutual information, and its main axes.

Levy, Goldberg & Dagan 2015 ("Improving Distributional Similarity with Lessons Learned from Word Embeddings"): counts of
word and context within a window, context probabilities raised to .75, logarithms of what is more than chance, and of
these the largest singular vectors, weighed by the roots of their values. Counting and axes are exact up to rounding,
and the same for the same texts.
"""

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float64, Int64
from scipy import sparse
from scipy.sparse.linalg import svds

from ..errors import BadInput
from ..files import written_atomically
from .word_vectors import WordVectors

WINDOW, SMOOTHING, LEAST = 5, 0.75, 10
"""How far a context stands at most, the power of its probability, and how often a word must stand to get a vector."""
LIKE_GLOVE = 0.4
"""The root mean square of all numbers in the table: about that of GloVe's vectors of 300 dimensions."""
PIECE = re.compile(r"\w+(?=n't\b)|n't\b|'\w+|\w+(?:[-.]\w+)*|[^\w\s]")


def treebank_words(text: str) -> list[str]:
    """The words of running text in lower case, taken apart about as a treebank does.

    >>> treebank_words("It doesn't work, it's well-made!")
    ['it', 'does', "n't", 'work', ',', 'it', "'s", 'well-made', '!']
    """
    return PIECE.findall(text.lower())


@dataclass(frozen=True)
class Counts:
    """How often words stand near each other."""

    words: tuple[str, ...]
    pairs: sparse.csr_array
    """`pairs[word, context]`: each pair within the window counts one over its distance, in both directions."""


def count_neighbours(texts: Iterable[Sequence[str]], window: int = WINDOW, least: int = LEAST) -> Counts:
    """The neighbours of all words that stand in the texts often enough; rarer words keep their places."""
    kept = [tuple(text) for text in texts]
    often = Counter(word for text in kept for word in text)
    words = tuple(sorted(word for word, count in often.items() if count >= least))
    if len(words) < 2:
        raise BadInput(f"The texts have {len(words)} words that stand in them {least} times or more: give longer ones.")
    place = {word: number for number, word in enumerate(words)}
    numbers = np.array([place.get(word, -1) for text in kept for word in text], np.int64)
    text_of = np.repeat(np.arange(len(kept)), [len(text) for text in kept])
    pairs = sum(_at_distance(numbers, text_of, distance, len(words)) for distance in range(1, window + 1))
    return Counts(words, sparse.csr_array(pairs + pairs.T))


def _at_distance(
    numbers: Int64[np.ndarray, " place"], text_of: Int64[np.ndarray, " place"], distance: int, size: int
) -> sparse.csr_array:
    """What stands so far behind what, within one text, each pair divided by the distance."""
    left, right = numbers[:-distance], numbers[distance:]
    real = (left >= 0) & (right >= 0) & (text_of[:-distance] == text_of[distance:])
    found, counts = np.unique(left[real] * size + right[real], return_counts=True)
    return sparse.csr_array((counts / distance, (found // size, found % size)), shape=(size, size))


def positive_information(pairs: sparse.csr_array, smoothing: float = SMOOTHING) -> sparse.csr_array:
    """max(0, log p(word, context) / (p(word) p(context))), where contexts have smoothed probabilities."""
    of_words = np.asarray(pairs.sum(1)).ravel()
    of_contexts = np.asarray(pairs.sum(0)).ravel() ** smoothing
    of_contexts = of_contexts / of_contexts.sum()
    entries = pairs.tocoo()
    information = np.log(entries.data / (of_words[entries.row] * of_contexts[entries.col]))
    positive = information > 0
    kept = (information[positive], (entries.row[positive], entries.col[positive]))
    return sparse.csr_array(kept, shape=pairs.shape)


def main_axes(matrix: sparse.csr_array, width: int) -> Float64[np.ndarray, "word width"]:
    """The singular vectors of the largest values, times the roots of these; the largest number of each is positive."""
    # a start that is always the same, and that no axis is at right angles to
    left, values, _ = svds(matrix, width, v0=np.ones(min(matrix.shape)))
    left, values = left[:, ::-1], values[::-1]
    largest = left[np.abs(left).argmax(0), np.arange(width)]
    axes: Float64[np.ndarray, "word width"] = left * np.sign(largest) * np.sqrt(values)
    return axes


def train_vectors(texts: Iterable[Sequence[str]], width: int = 300) -> WordVectors:
    """The vectors of all words that stand in the texts often enough."""
    counts = count_neighbours(texts)
    if len(counts.words) <= width:
        raise BadInput(
            f"The texts have {len(counts.words)} frequent words: give more texts, or fewer than {width} dimensions."
        )
    table = main_axes(positive_information(counts.pairs), width)
    table = table * (LIKE_GLOVE / np.sqrt((table**2).mean()))
    source = f"The word vectors were made here of which words stand near each other, {width} dimensions."
    return WordVectors(counts.words, torch.from_numpy(table).float(), source)


def write_vectors(path: Path, vectors: WordVectors) -> Path:
    """Write a GloVe text file, packed, which `read_vectors` reads; the same bytes for the same vectors."""

    def lines() -> Iterator[bytes]:
        for word, numbers in zip(vectors.words, vectors.table.tolist(), strict=True):
            yield f"{word} {' '.join(f'{number:.5f}' for number in numbers)}\n".encode()

    # neither a name nor a time goes into the file, so that it is the same wherever and whenever it is made
    with (
        written_atomically(path) as temporary,
        temporary.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed,
    ):
        packed.writelines(lines())
    return path
