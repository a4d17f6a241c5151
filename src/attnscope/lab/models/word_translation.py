"""WordTranslation: the classical IBM Model 1 (Brown et al. 1993) as Snell et al. 2021 have it, on sparse tables.

Symbols of the paper: i is an input word, o an output word, C is `counts`; every pair of sentences adds 1/L to C[i, o]
for each place of i and each place of o (Eq. 16); Trans(o|i) = C[i, o] / Σ_o' C[i, o'] (Eq. 17); β of a pair of
sentences is Trans(y_t|x_l) (Eq. 18), and the alignment is β over its sum along the input (Eq. 19). The paper takes
one step, under uniform alignment. More steps of expectation maximisation count each pair of words by its alignment so
far. There is no empty input word. A class is an output of one word, so that texts in classes work too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int64
from scipy import sparse

from ...attribution.compiling import compiled
from ...errors import BadInput

Numbers = Sequence[int] | Int64[np.ndarray, " token"]
"""The numbers of the words of one sentence."""


@dataclass(frozen=True, eq=False)
class WordTranslation:
    """What each input word is translated to, by counts alone.

    >>> polarity = WordTranslation.learned([[0, 2], [1, 2]], [[1], [0]], inputs=3, outputs=2)  # great bad movie
    >>> polarity.counts.toarray().tolist()
    [[0.0, 0.5], [0.5, 0.0], [0.5, 0.5]]
    >>> polarity.probabilities([0, 2], [1]).tolist()
    [[1.0, 0.5]]
    """

    counts: sparse.csr_array
    """C, with a row for each input word and a column for each output word."""

    @classmethod
    def learned(
        cls,
        sources: Sequence[Numbers],
        targets: Sequence[Numbers],
        inputs: int | None = None,
        outputs: int | None = None,
        iterations: int = 0,
    ) -> "WordTranslation":
        """Count over all pairs of sentences; `iterations` more steps, 0 in the paper, count by alignment.

        `inputs` and `outputs` are the sizes of the two vocabularies, one more than the largest number if not given.
        """
        first, second = Flat.of(sources), Flat.of(targets)
        if len(first.starts) != len(second.starts):
            raise BadInput(f"There are {len(sources)} input sentences and {len(targets)} output sentences.")
        if iterations < 0:
            raise BadInput(f"There are no {iterations} steps of expectation maximisation.")
        found = count_table(first, second, first.size(inputs), second.size(outputs))
        for _ in range(iterations):
            found = _recounted(first, second, found)
        return cls(found)

    @cached_property
    def translation(self) -> sparse.csr_array:
        """Trans(o|i), row by row; an input word that was never seen has an empty row."""
        return _translation(self.counts)

    def probabilities(self, source: Numbers, target: Numbers) -> Float64[np.ndarray, "step position"]:
        """β: how likely each input word is translated to each output word of a pair of sentences."""
        table = self.translation[np.asarray(source, np.int64)][:, np.asarray(target, np.int64)]
        found: Float64[np.ndarray, "step position"] = table.toarray().T
        return found

    def alignment(self, source: Numbers, target: Numbers) -> Float64[np.ndarray, "step position"]:
        """How much each input word answers for each output word; even where no input word is translated to it."""
        lexical = self.probabilities(source, target)
        total = lexical.sum(1, keepdims=True)
        return np.where(total > 0, lexical / np.where(total > 0, total, 1.0), 1 / max(lexical.shape[1], 1))


@dataclass(frozen=True, eq=False)
class Flat:
    """The words of all sentences behind each other: sentence m is `words[starts[m] : starts[m + 1]]`."""

    words: Int64[np.ndarray, " token"]
    starts: Int64[np.ndarray, " sentence_and_end"]

    @classmethod
    def of(cls, sentences: Sequence[Numbers]) -> "Flat":
        """From the numbers of the words of each sentence."""
        if not sentences or any(not len(sentence) for sentence in sentences):
            raise BadInput("Word translation is learned from sentences of at least one word.")
        starts = np.zeros(len(sentences) + 1, np.int64)
        np.cumsum([len(sentence) for sentence in sentences], out=starts[1:])
        return cls(np.concatenate([np.asarray(sentence, np.int64) for sentence in sentences]), starts)

    def size(self, given: int | None) -> int:
        """How many words there are, at least those that occur."""
        needed = int(self.words.max()) + 1
        if given is not None and given < needed:
            raise BadInput(f"A sentence has the word number {needed - 1}, but the vocabulary has {given}.")
        return needed if given is None else given

    def occurrences(self, size: int, weights: Float64[np.ndarray, " sentence"]) -> sparse.csr_array:
        """A row for each sentence with the weight of the sentence at each of its words, added where one recurs."""
        lengths = np.diff(self.starts)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        table = sparse.coo_array((weights[rows], (rows, self.words)), shape=(len(lengths), size))
        return table.tocsr()


def count_table(sources: Flat, targets: Flat, inputs: int, outputs: int) -> sparse.csr_array:
    """C of Eq. 16: all pairs of sentences as one product of two sparse tables."""
    one = sources.occurrences(inputs, 1 / np.diff(sources.starts))
    other = targets.occurrences(outputs, np.ones(len(targets.starts) - 1))
    found = sparse.csr_array(one.T @ other)
    found.sort_indices()
    return found


def _translation(counts: sparse.csr_array) -> sparse.csr_array:
    totals = np.asarray(counts.sum(1)).ravel()
    per_entry = np.repeat(totals, np.diff(counts.indptr))
    return sparse.csr_array((counts.data / per_entry, counts.indices, counts.indptr), shape=counts.shape)


def _recounted(sources: Flat, targets: Flat, counts: sparse.csr_array) -> sparse.csr_array:
    """One step of expectation maximisation: C with the alignment in the place of 1/L."""
    known = _translation(counts)
    found = np.zeros_like(known.data)
    _add_alignments(
        sources.words, sources.starts, targets.words, targets.starts, known.indptr, known.indices, known.data, found
    )
    return sparse.csr_array((found, known.indices, known.indptr), shape=known.shape)


@compiled(nogil=True, error_model="numpy")
@no_type_check
def _add_alignments(words, starts, outputs, output_starts, indptr, indices, known, found):
    """Add the alignment of every pair of words to its entry; the entries of a row are found by halving."""
    for sentence in range(starts.shape[0] - 1):
        source = words[starts[sentence] : starts[sentence + 1]]
        entries = np.empty(source.shape[0], np.int64)
        for step in range(output_starts[sentence], output_starts[sentence + 1]):
            total = 0.0
            for place in range(source.shape[0]):
                low, high = indptr[source[place]], indptr[source[place] + 1]
                while low < high:
                    middle = (low + high) // 2
                    if indices[middle] < outputs[step]:
                        low = middle + 1
                    else:
                        high = middle
                entries[place] = low
                total += known[low]
            # what fell below the smallest number in earlier steps counts no more
            if total > 0.0:
                for place in range(source.shape[0]):
                    found[entries[place]] += known[entries[place]] / total
