"""Words and tokens laid over each other: by hand, at random, and with real tokenizers over a real treebank."""

from collections import Counter
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.syntax import Sentence, Unaligned, read_conllu, words_of_tokens

PLAYING = Sentence(("do", "n't", "stop", "playing"), spaces=(False, True, True, True))  # don't stop playing


def words(sentence: Sentence, *offsets: tuple[int, int]) -> tuple[int | None, ...]:
    return words_of_tokens(sentence.spans, offsets, [False] * len(offsets))


def test_every_piece_takes_the_word_it_overlaps() -> None:
    assert words(PLAYING, (0, 2), (2, 5), (6, 10), (11, 15), (15, 18)) == (0, 1, 2, 3, 3)


def test_a_space_before_or_after_a_word_belongs_to_it() -> None:
    assert words(PLAYING, (0, 2), (2, 5), (5, 10), (10, 15), (15, 18)) == (0, 1, 2, 3, 3)
    assert words(PLAYING, (0, 2), (2, 6), (6, 11), (11, 18)) == (0, 1, 2, 3)


def test_special_tokens_have_no_word() -> None:
    offsets = [(0, 0), (0, 2), (2, 5), (6, 10), (11, 18), (0, 0)]
    special = [True, False, False, False, False, True]
    assert words_of_tokens(PLAYING.spans, offsets, special) == (None, 0, 1, 2, 3, None)


def test_a_token_of_white_space_belongs_to_the_next_word() -> None:
    sentence = Sentence(("a", "b"))
    assert words(sentence, (0, 0), (0, 1), (1, 2), (2, 3)) == (0, 0, 1, 1)
    assert words(sentence, (0, 1), (1, 1), (2, 2), (2, 3)) == (0, 1, 1, 1)
    assert words(sentence, (0, 1), (2, 3), (3, 4), (4, 4)) == (0, 1, 1, 1), "after the last word, the last word"
    assert words(PLAYING, (0, 2), (2, 5), (6, 10), (11, 15), (13, 13), (15, 18))[4] == 3, "inside a word, that word"


def test_the_bytes_of_one_character_may_be_several_tokens() -> None:
    assert words(Sentence(("☃", "!"), spaces=(False, True)), (0, 1), (0, 1), (0, 1), (1, 2)) == (0, 0, 0, 1)


def test_a_token_over_two_words_belongs_to_the_one_it_covers_more_of() -> None:
    """As in "don't": "don" is a piece of "do", and "'t" of "n't"."""
    assert words(PLAYING, (0, 3), (3, 5), (6, 10), (11, 18)) == (0, 1, 2, 3)
    assert words(Sentence(("ab", "cd"), spaces=(False, True)), (0, 1), (1, 3), (3, 4)) == (0, 0, 1)


def test_a_token_over_whole_words_belongs_to_the_longest_and_of_equals_to_the_first() -> None:
    assert words(PLAYING, (0, 5), (6, 10), (11, 18)) == (1, 2, 3), "n't is longer than do"
    assert words(PLAYING, (0, 2), (2, 5), (5, 18)) == (0, 1, 3)
    assert words(Sentence((")", "."), spaces=(False, True)), (0, 2)) == (0,)


@pytest.mark.parametrize(
    ("offsets", "reason"),
    [
        ([(0, 2), (2, 5), (6, 10)], "a word has no token"),
        ([(0, 2), (2, 5), (10, 11), (11, 18)], "a word has no token"),
        ([(0, 2), (2, 5), (6, 6), (11, 18)], "a word has no token"),
        ([(0, 2), (2, 5), (8, 8), (11, 18)], "a word has no token"),
        ([], "a word has no token"),
    ],
)
def test_what_does_not_fit_has_a_reason(offsets: list[tuple[int, int]], reason: str) -> None:
    with pytest.raises(Unaligned, match=reason) as caught:
        words(PLAYING, *offsets)
    assert caught.value.reason == reason


def test_no_words_have_no_tokens() -> None:
    assert words_of_tokens([], [(0, 0)], [True]) == (None,)
    with pytest.raises(Unaligned, match="the sentence has no words"):
        words_of_tokens([], [(0, 0)], [False])


@given(st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=8), st.data())
def test_words_cut_at_random_are_found_again(drawn: list[tuple[int, bool]], data: st.DataObject) -> None:
    """Pieces of words; the space before a word is a token, a part of the first piece, or in no token."""
    spaces = tuple(space for _, space in drawn)
    sentence = Sentence(tuple("x" * length for length, _ in drawn), spaces=spaces)
    offsets, expected = [], []
    for word, (start, end) in enumerate(sentence.spans):
        cuts = sorted({start, end, *data.draw(st.lists(st.integers(start, end), max_size=3))})
        pieces = list(pairwise(cuts))
        if word and spaces[word - 1]:
            way = data.draw(st.sampled_from(["a token", "a part", "in none"]))
            if way == "a token":
                pieces.insert(0, (start - 1, start))
            elif way == "a part":
                pieces[0] = (start - 1, pieces[0][1])
        offsets += pieces
        expected += [word] * len(pieces)
    assert words(sentence, *offsets) == tuple(expected)


@pytest.mark.parametrize("model", ["minilm", "smollm2"])
def test_real_tokenizers_over_a_real_treebank(real_model: Callable[[str], Path], ewt: Path, model: str) -> None:
    """No sentence is skipped, and less than one word in a hundred has no token."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(real_model(model))
    counts = Counter[str]()
    for sentence in islice(read_conllu(ewt), 600):
        encoded = tokenizer(sentence.text, return_offsets_mapping=True, return_special_tokens_mask=True)
        special = [bool(mark) for mark in encoded["special_tokens_mask"]]
        found = words_of_tokens(sentence.spans, encoded["offset_mapping"], special)
        content = [word for word in found if word is not None]
        assert [word is None for word in found] == special
        assert content == sorted(content)
        counts["words"] += len(sentence)
        counts["without"] += len(sentence) - len(set(content))
    # Those are signs joined to one token, and contractions such as "cannot" and "gonna".
    assert 0 < counts["without"] < 0.01 * counts["words"], counts
