"""A sentence is words and, if it is parsed, one tree over them."""

import pytest

from attnscope.errors import BadInput
from attnscope.syntax import Sentence

WORDS, TAGS, RELATIONS = ("the", "dog", "sleeps"), ("DET", "NOUN", "VERB"), ("det", "nsubj", "root")


def test_a_parsed_sentence_keeps_what_it_was_given() -> None:
    sentence = Sentence(WORDS, TAGS, (1, 2, -1), RELATIONS)
    assert sentence.text == "the dog sleeps"
    assert len(sentence) == 3
    assert sentence == Sentence(WORDS, TAGS, (1, 2, -1), RELATIONS)


def test_plain_text_needs_no_parse() -> None:
    sentence = Sentence(WORDS)
    assert (sentence.tags, sentence.heads, sentence.relations) == (None, None, None)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ((1, 2), "3 words and 2 heads"),
        ((1, -1, -1), "exactly one root"),
        ((1, 2, 0), "exactly one root"),
        ((1, 3, -1), "not a word of the sentence"),
        ((1, -2, -1), "not a word of the sentence"),
        ((1, 0, -1), "circle"),
        ((0, 2, -1), "circle"),
    ],
)
def test_heads_that_make_no_tree_are_refused(heads: tuple[int, ...], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Sentence(WORDS, TAGS, heads, RELATIONS)


@pytest.mark.parametrize("missing", [{"tags": TAGS[:2]}, {"relations": RELATIONS[:1]}])
def test_every_word_needs_its_entry(missing: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(BadInput, match="one entry per word"):
        Sentence(WORDS, **missing)
