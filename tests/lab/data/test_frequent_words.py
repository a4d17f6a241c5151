"""The vocabulary cut, and tags for rare words."""

import random

import pytest

from attnscope.errors import BadInput
from attnscope.lab.data.examples_file import most_frequent, spell_word, with_tags_for_rare


def test_ties_are_cut_the_same_way_whatever_the_order_of_counting() -> None:
    counts = {"the": 9, "zebra": 2, "apple": 2, "mango": 2, "fig": 1}
    for seed in range(5):
        shuffled = random.Random(seed).sample(sorted(counts), len(counts))
        assert most_frequent({word: counts[word] for word in shuffled}, 3) == ["the", "apple", "mango"]


def test_fewer_words_than_asked_for_are_all_kept() -> None:
    assert most_frequent({"b": 1, "a": 1}, 10) == ["a", "b"]


def test_a_hidden_word_is_never_frequent() -> None:
    assert most_frequent({"<unk>": 99, "the": 1}, 5) == ["the"]
    assert with_tags_for_rare(("<unk>", "is"), ("NN", "VBZ"), {"is"}) == ("NN", "is")


def test_a_vocabulary_has_words() -> None:
    with pytest.raises(BadInput, match="at least one word"):
        most_frequent({"the": 1}, 0)


def test_words_are_spelled_as_in_linzen() -> None:
    assert [spell_word(word, tag) for word, tag in (("Don", "NNP"), ("“", "``"), ('"', "''"), ("(", "-LRB-"))] == [
        "don",
        "``",
        "''",
        "(",
    ]
