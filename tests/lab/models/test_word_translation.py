"""IBM Model 1 on the tables of the figures of Snell et al. 2021, and against loops."""

from collections import defaultdict

import numpy as np
import pytest
from scipy import sparse

from attnscope.errors import BadInput
from attnscope.lab.models.word_translation import WordTranslation

GERMAN = ["Dieser", "Film", "großartig", "ist", "schlecht"]
ENGLISH = ["bad", "great", "is", "movie", "This"]
FIGURE_1 = np.array(
    [[22, 26, 97, 13, 200], [4, 2, 15, 20, 12], [1, 43, 2, 3, 35], [18, 22, 100, 8, 54], [44, 1, 19, 3, 35]], float
)


def numbers(words: list[str], sentence: str) -> list[int]:
    return [words.index(word) for word in sentence.split()]


def of_table(table: np.ndarray) -> WordTranslation:
    return WordTranslation(sparse.csr_array(table))


def test_figure_1_counts_of_two_pairs() -> None:
    found = WordTranslation.learned(
        [numbers(GERMAN, "Dieser Film ist großartig"), numbers(GERMAN, "Dieser Film ist schlecht")],
        [numbers(ENGLISH, "This movie is great"), numbers(ENGLISH, "This movie is bad")],
    )
    both = np.array([[1, 1, 2, 2, 2], [1, 1, 2, 2, 2], [0, 1, 1, 1, 1], [1, 1, 2, 2, 2], [1, 0, 1, 1, 1]]) / 4
    np.testing.assert_array_equal(found.counts.toarray(), both)


@pytest.mark.parametrize(
    ("last", "translated", "printed", "exact"), [(12, 0.38, 0.78, 0.7817), (21, 0.32, 0.74, 0.7539)]
)
def test_figure_1_by_its_table_and_by_its_arithmetic(
    last: int, translated: float, printed: float, exact: float
) -> None:
    """The table has Film 4 2 15 20 12; the arithmetic beside it adds up 4 + 2 + 15 + 20 + 21."""
    table = FIGURE_1.copy()
    table[1, 4] = last
    model = of_table(table)
    # the figure's arithmetic takes the four words of its second sentence, Dieser Film ist schlecht
    source, target = numbers(GERMAN, "Dieser Film ist schlecht"), [ENGLISH.index("movie")]
    beta = model.probabilities(source, target)[0]
    assert beta.round(2).tolist() == [0.04, translated, 0.04, 0.03]
    assert model.alignment(source, target)[0, 1] == pytest.approx(exact, abs=1e-4)
    # the figure divides what it has rounded
    rounded = beta.round(2)
    assert (rounded / rounded.sum())[1].round(2) == printed


def test_figure_4_permutations_tell_nothing() -> None:
    """ABCD gives A'B'C'D' in any order: every entry of C is M/4, and no word is preferred."""
    draw = np.random.default_rng(0)
    sources = [draw.permutation(4) for _ in range(12)]
    model = WordTranslation.learned(sources, sources)
    np.testing.assert_allclose(model.counts.toarray(), 12 / 4)
    np.testing.assert_allclose(model.probabilities([0, 1, 2, 3], [2]), 0.25)
    np.testing.assert_allclose(model.alignment([0, 1, 2, 3], [2]), 0.25)


def test_figure_5_classes_are_outputs_of_one_word() -> None:
    bad, great, movie, positive, negative = 0, 1, 2, 0, 1
    model = WordTranslation.learned([[great, movie], [bad, movie]], [[positive], [negative]])
    np.testing.assert_array_equal(model.counts.toarray(), [[0, 0.5], [0.5, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(model.probabilities([great, bad, movie], [positive])[0], [1, 0, 0.5])
    assert model.alignment([great, movie], [positive])[0].argmax() == 0


def test_figure_8_a_mixture_tells_the_set_alone() -> None:
    draw = np.random.default_rng(1)
    pairs, others = 8, 5  # M and K
    sources = [draw.permutation(4) for _ in range(pairs)] + [4 + draw.permutation(4) for _ in range(others)]
    model = WordTranslation.learned(sources, sources)
    expected = np.kron(np.diag([pairs / 4, others / 4]), np.ones((4, 4)))
    np.testing.assert_allclose(model.counts.toarray(), expected)
    np.testing.assert_allclose(model.probabilities([0, 1, 2, 3], [2]), 0.25)


def looped(sources: list[list[int]], targets: list[list[int]], iterations: int) -> dict[tuple[int, int], float]:
    """Equations 16, 17 and expectation maximisation, word by word."""
    trans: dict[tuple[int, int], float] = {}
    for turn in range(iterations + 1):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        for source, target in zip(sources, targets, strict=True):
            for output in target:
                shares = [1.0 if turn == 0 else trans[word, output] for word in source]
                for word, share in zip(source, shares, strict=True):
                    counts[word, output] += share / sum(shares)
        totals: dict[int, float] = defaultdict(float)
        for (word, _), count in counts.items():
            totals[word] += count
        trans = {(word, output): count / totals[word] for (word, output), count in counts.items()}
    return trans


@pytest.mark.parametrize("iterations", [0, 1, 6])
def test_expectation_maximisation_is_the_loop(iterations: int) -> None:
    draw = np.random.default_rng(2)
    sources = [draw.integers(0, 9, draw.integers(1, 7)).tolist() for _ in range(40)]
    targets = [draw.integers(0, 11, draw.integers(1, 7)).tolist() for _ in range(40)]
    found = WordTranslation.learned(
        sources, targets, inputs=12, outputs=13, iterations=iterations
    ).translation.toarray()
    expected = np.zeros((12, 13))
    for (word, output), share in looped(sources, targets, iterations).items():
        expected[word, output] = share
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_more_iterations_find_a_language_of_word_for_word() -> None:
    draw = np.random.default_rng(3)
    sources = [draw.choice(20, 6, replace=False) for _ in range(150)]
    targets = [19 - sentence[::-1] for sentence in sources]
    model = WordTranslation.learned(sources, targets, iterations=10)
    np.testing.assert_array_equal(model.translation.toarray().argmax(1), 19 - np.arange(20))
    once = WordTranslation.learned(sources, targets)
    assert model.alignment(sources[0], targets[0])[0, -1] > once.alignment(sources[0], targets[0])[0, -1]


def test_a_word_never_seen_together_is_aligned_evenly() -> None:
    model = WordTranslation.learned([[0, 1]], [[0]], inputs=3, outputs=2)
    np.testing.assert_array_equal(model.alignment([0, 2], [1]), [[0.5, 0.5]])


def test_bad_input_is_told() -> None:
    with pytest.raises(BadInput, match="input sentences"):
        WordTranslation.learned([[0]], [[0], [1]])
    with pytest.raises(BadInput, match="at least one word"):
        WordTranslation.learned([[]], [[0]])
    with pytest.raises(BadInput, match="word number 4"):
        WordTranslation.learned([[4]], [[0]], inputs=3)
