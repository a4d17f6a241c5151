"""A sentence is words and, if it is parsed, one tree over them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.errors import BadInput
from attnscope.syntax import Sentence, joined

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


def test_the_spaces_between_the_words_are_those_of_the_text() -> None:
    sentence = Sentence(("I", "do", "n't", "."), spaces=(True, False, False, False))
    assert sentence.text == "I don't."
    assert sentence.spans == ((0, 1), (2, 4), (4, 7), (7, 8))
    assert Sentence(WORDS).spans == ((0, 3), (4, 7), (8, 14))
    assert (Sentence(()).text, Sentence((), spaces=()).text, Sentence(()).spans) == ("", "", ())
    with pytest.raises(BadInput, match="3 words and 2 spaces"):
        Sentence(WORDS, spaces=(True, True))


spaced = st.lists(st.tuples(st.text(min_size=1, max_size=5), st.booleans()), max_size=12)


@given(spaced)
def test_each_span_holds_its_word(pairs: list[tuple[str, bool]]) -> None:
    words, spaces = tuple(word for word, _ in pairs), tuple(space for _, space in pairs)
    for sentence in (Sentence(words), Sentence(words, spaces=spaces)):
        assert tuple(sentence.text[start:end] for start, end in sentence.spans) == words
        assert len(sentence.text) == (sentence.spans[-1][1] if words else 0)


def test_a_document_is_its_sentences_with_their_trees() -> None:
    first = Sentence(WORDS, TAGS, (1, 2, -1), RELATIONS, spaces=(True, True, False), name="a-1", document="a")
    second = Sentence(("it", "snores"), ("PRON", "VERB"), (1, -1), ("nsubj", "root"), name="a-2", document="a")
    document = joined([first, second, first])
    assert document.text == "the dog sleepsit snores the dog sleeps"
    assert document.heads == (1, 2, -1, 4, -1, 6, 7, -1)
    assert document.tags == (*TAGS, "PRON", "VERB", *TAGS)
    assert document.relations == (*RELATIONS, "nsubj", "root", *RELATIONS)
    assert (document.name, document.document, document.parts) == ("a", "a", 3)
    assert joined([document, second]).parts == 4
    assert joined([first, Sentence(WORDS, TAGS, (1, 2, -1), RELATIONS, document="b")]).document is None


def test_only_sentences_alike_are_joined() -> None:
    with pytest.raises(BadInput, match="Only 1 of 2 sentences have tags"):
        joined([Sentence(WORDS, TAGS), Sentence(WORDS)])
    with pytest.raises(BadInput, match="no sentence to join"):
        joined([])
    assert joined([Sentence(WORDS), Sentence(WORDS)]).heads is None


def test_a_document_has_as_many_roots_as_parts() -> None:
    assert Sentence(WORDS, heads=(-1, 0, -1), parts=2).parts == 2
    for heads in ((1, 2, -1), (-1, -1, -1)):
        with pytest.raises(BadInput, match="2 sentences have exactly 2 roots"):
            Sentence(WORDS, heads=heads, parts=2)
