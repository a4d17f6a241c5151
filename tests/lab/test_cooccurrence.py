"""Word vectors made of neighbours: counts and information as plain loops have them, axes as numpy has them."""

import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from attnscope.errors import BadInput
from attnscope.lab.cooccurrence import count_neighbours, main_axes, positive_information, train_vectors, write_vectors
from attnscope.lab.word_vectors import read_vectors


def texts(seed: int, count: int = 40, words: int = 12) -> list[list[str]]:
    dice = random.Random(seed)
    return [[f"w{dice.randrange(words)}" for _ in range(dice.randint(0, 15))] for _ in range(count)]


def counts_by_loops(read: list[list[str]], window: int, least: int) -> dict[tuple[str, str], float]:
    often = Counter(word for text in read for word in text)
    found: dict[tuple[str, str], float] = Counter()
    for text in read:
        for one, word in enumerate(text):
            for other, context in enumerate(text):
                if 0 < abs(one - other) <= window and min(often[word], often[context]) >= least:
                    found[word, context] += 1 / abs(one - other)
    return found


@pytest.mark.parametrize(("window", "least"), [(1, 1), (5, 1), (3, 30)])
def test_neighbours_are_counted_as_by_loops(window: int, least: int) -> None:
    read = texts(window)
    counts, expected = count_neighbours(read, window, least), counts_by_loops(read, window, least)
    dense = counts.pairs.toarray()
    for row, word in enumerate(counts.words):
        for column, context in enumerate(counts.words):
            assert dense[row, column] == pytest.approx(expected.get((word, context), 0), abs=1e-12)
    assert dense.sum() == pytest.approx(sum(expected.values()))


def test_information_is_that_of_the_formula() -> None:
    pairs = count_neighbours(texts(7), 2, 1).pairs
    dense, found = pairs.toarray(), positive_information(pairs).toarray()
    smooth = dense.sum(0) ** 0.75 / (dense.sum(0) ** 0.75).sum()
    for row in range(len(dense)):
        for column in range(len(dense)):
            joint, word = dense[row, column] / dense.sum(), dense[row].sum() / dense.sum()
            expected = max(0, math.log(joint / (word * smooth[column]))) if joint else 0
            assert found[row, column] == pytest.approx(expected, abs=1e-12)
    assert (found > 0).any()


def test_axes_are_those_of_the_whole_decomposition() -> None:
    matrix = np.random.default_rng(0).random((30, 30)) * (np.random.default_rng(1).random((30, 30)) < 0.3)
    axes = main_axes(sparse.csr_array(matrix), 8)
    left, values, _ = np.linalg.svd(matrix)
    np.testing.assert_allclose(np.abs(axes), np.abs(left[:, :8]) * np.sqrt(values[:8]), atol=1e-10)
    assert (axes.max(0) == np.abs(axes).max(0)).all()


def test_words_of_like_use_are_near_and_a_file_gives_them_back(tmp_path: Path) -> None:
    dice = random.Random(0)
    kinds = [[f"{kind}{number}" for number in range(10)] for kind in ("animal", "verb", "food")]
    read = [[dice.choice(kind) for kind in kinds] for _ in range(2000)]
    vectors = train_vectors(read, 8)
    assert train_vectors(read, 8).table.equal(vectors.table)
    file = write_vectors(tmp_path / "made.txt.gz", vectors)
    assert write_vectors(tmp_path / "again.txt.gz", vectors).read_bytes() == file.read_bytes()
    again = read_vectors(file, vectors.words)
    assert again.words == vectors.words
    np.testing.assert_allclose(again.table, vectors.table, atol=6e-6)
    unit = vectors.table / vectors.table.norm(dim=1, keepdim=True)
    like = unit @ unit.T
    same = np.array([[one[:3] == other[:3] for other in vectors.words] for one in vectors.words])
    assert float(like[same & ~np.eye(30, dtype=bool)].mean()) > float(like[~same].mean()) + 0.2


def test_too_few_words_are_refused() -> None:
    with pytest.raises(BadInput, match="give longer ones"):
        train_vectors([["a", "b"]], 2)
    with pytest.raises(BadInput, match="fewer than 20 dimensions"):
        train_vectors([["a", "b", "c"]] * 20, 20)
