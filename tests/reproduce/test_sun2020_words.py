"""Words by their class: γ, its bounds, a control of equal frequency, and labels of several classes."""

import os
from pathlib import Path

import numpy as np
import pytest

from attnscope.errors import BadInput
from attnscope.lab.data import CLASSIFIED, PackedTexts
from attnscope.reproduce.sun2020.words import (
    class_counts,
    gamma,
    label_tokens,
    token_classes,
    words_of_like_frequency,
)


def test_every_occurrence_in_a_text_of_a_class_counts() -> None:
    texts = PackedTexts.of([[0, 0, 2], [2, 1], [2]], [1, 0, 1])
    assert class_counts(texts, 2, 4).tolist() == [[0, 1, 1, 0], [2, 0, 2, 0]]


def test_gamma_and_classes_at_their_bounds() -> None:
    #                    0  1  2   3  4  5  6   7   8  9  10 11
    negative = np.array([0, 0, 2, 3, 6, 5, 50, 45, 1, 0, 9, 0])
    positive = np.array([6, 5, 7, 9, 0, 1, 54, 50, 1, 0, 11, 1])
    counts = np.stack([negative, positive])
    known = gamma(counts)
    assert known[[0, 3, 4]].tolist() == [1, 0.5, -1]
    assert np.isnan(known[9])
    classes = token_classes(counts)
    # exactly 1 is in; 5 times is too rare; .5 is not above .5
    assert classes.positive.tolist() == [0, 2]
    assert classes.negative.tolist() == [4]
    # a difference of 5 is too much, .1 is not below .1, and no frequency is asked for
    assert classes.neutral.tolist() == [6, 8]
    assert classes.polar.tolist() == [0, 2, 4]
    with pytest.raises(BadInput, match="label_tokens"):
        token_classes(np.ones((3, 2), int))


def test_the_control_is_as_frequent_and_spreads_over_equals() -> None:
    #                    0   1  2  3  4  5  6
    negative = np.array([0, 10, 4, 4, 1, 5, 100])
    positive = np.array([8, 0, 4, 4, 1, 5, 104])
    counts = np.stack([negative, positive])
    assert words_of_like_frequency(counts, np.array([0, 0, 0, 1])).tolist() == [2, 3, 2, 5]
    with pytest.raises(BadInput, match="nothing to match"):
        words_of_like_frequency(counts[:, :2], np.array([0]))


def test_labels_of_three_classes() -> None:
    counts = np.array([[30, 2, 10, 0, 3], [0, 30, 11, 4, 3], [1, 2, 10, 0, 3]])
    found = label_tokens(counts, share=0.8, rare=5)
    assert [label.tolist() for label in found.labels] == [[0], [1], []]
    assert found.neutral.tolist() == [2, 4]
    assert label_tokens(counts, share=0.8, rare=9).neutral.tolist() == [2]
    assert [label.tolist() for label in label_tokens(counts, share=0.95, rare=5).labels] == [[0], [], []]


def test_the_words_of_sst_are_those_of_the_supplement() -> None:
    if not (Path(os.environ.get("ATTNSCOPE_DATA", "nowhere")) / "sst").is_dir():
        pytest.skip("the Stanford Sentiment Treebank is not in $ATTNSCOPE_DATA")
    texts = CLASSIFIED["sst"]()
    counts = class_counts(texts.train, 2, len(texts.vocabulary))
    classes = token_classes(counts)
    assert (len(classes.positive), len(classes.negative), len(classes.neutral)) == (412, 265, 1384)
    totals = counts.sum(0)
    assert (totals > 0).sum() == 13_822
    assert (totals[classes.neutral] <= 10).sum() == 1170
    open_ended = np.abs(gamma(counts)) < 1
    assert (open_ended[classes.positive].sum(), open_ended[classes.negative].sum()) == (302, 197)
    matched = words_of_like_frequency(counts, classes.polar)
    assert np.median(totals[matched]) == np.median(totals[classes.polar]) > np.median(totals[classes.neutral])
