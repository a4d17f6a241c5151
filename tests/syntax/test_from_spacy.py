"""spaCy's parses in our terms: its own example, white space, words that are split already, and what may be missing."""

import builtins
from dataclasses import replace
from typing import Any

import pytest

from attnscope.errors import BadInput
from attnscope.syntax import Parser, Sentence, parse
from attnscope.syntax.from_spacy import BATCH, _sentences

PASSIVE = Sentence(
    words=("The", "dog", "was", "bitten", "."),
    tags=("DET", "NOUN", "AUX", "VERB", "PUNCT"),
    heads=(1, 3, 3, -1, 3),
    relations=("det", "nsubj:pass", "aux:pass", "root", "punct"),
    spaces=(True, True, True, False, False),
    fine_tags=("DT", "NN", "VBD", "VBN", "."),
)


def test_a_text_gives_its_sentences_in_universal_terms(parser_name: str) -> None:
    (sentences,) = parse(["The dog was bitten. It didn't like the cat."], parser_name)
    assert sentences[0] == replace(PASSIVE, spaces=(True, True, True, False, True))
    assert sentences[1].text == "It didn't like the cat."
    assert sentences[1].words[1:3] == ("did", "n't")
    assert sentences[1].relations is not None
    assert sentences[1].relations[2] == "neg"
    assert sentences[1].relations[5] == "obj"


def test_white_space_is_no_word(pipeline: Any) -> None:
    one, two, none, nothing = parse(["  The dog \n\n was bitten.", "The dog was bitten.", " \n ", ""], pipeline)
    assert [sentence.text for sentence in one] == ["The dog was bitten."]
    assert two == [PASSIVE]
    assert (none, nothing) == ([], [])


def document(pipeline: Any, words: list[str], heads: list[int], relations: list[str]) -> Any:
    from spacy.tokens import Doc

    starts = [head == position for position, head in enumerate(heads)]
    return Doc(
        pipeline.vocab,
        words=words,
        spaces=[False] * len(words),
        heads=heads,
        deps=relations,
        pos=["X"] * len(words),
        sent_starts=[position == 0 for position in range(len(starts))],
    )


def test_words_that_hang_on_white_space_are_hung_higher(pipeline: Any) -> None:
    middle = document(pipeline, ["a", " ", "b", "\n", "c"], [1, 4, 3, 1, 4], ["x", "dep", "y", "dep", "ROOT"])
    (sentence,) = _sentences(middle, None)
    assert (sentence.words, sentence.heads) == (("a", "b", "c"), (2, 2, -1))
    assert sentence.relations == ("x", "y", "root")
    assert sentence.text == "a b c"


def test_white_space_at_the_root_gives_its_place_to_a_word(pipeline: Any) -> None:
    top = document(pipeline, ["a", "b", " ", "c", "d"], [1, 2, 2, 2, 3], ["x", "y", "ROOT", "z", "dobj"])
    (sentence,) = _sentences(top, None)
    assert sentence.heads == (1, -1, 1, 2)
    assert sentence.relations == ("x", "root", "z", "obj")


def test_words_stay_as_they_are_split(pipeline: Any) -> None:
    words = Sentence(
        ("The", "co", "-", "star", "sleeps", "."), spaces=(True, False, False, True, True, False), name="n"
    )
    ((sentence,),) = parse([words], pipeline)
    assert (sentence.words, sentence.spaces, sentence.name) == (words.words, words.spaces, "n")
    assert sentence.heads is not None
    assert sentence.heads[4] == -1


def test_what_is_given_is_kept(pipeline: Any) -> None:
    tagged = Sentence(("dogs", "sleep", "."), tags=("A", "B", "C"), document="d")
    ((sentence,),) = parse([tagged], pipeline)
    assert (sentence.tags, sentence.document) == (("A", "B", "C"), "d")
    assert sentence.relations is not None
    assert sentence.relations[:2] == ("nsubj", "root")


def test_order_over_many_batches(pipeline: Any) -> None:
    items = [PASSIVE if number % 3 == 0 else f"Dogs sleep {number} times." for number in range(2 * BATCH + 5)]
    for item, sentences in zip(items, parse(items, pipeline), strict=True):
        assert [sentence.text for sentence in sentences] == [item.text if isinstance(item, Sentence) else item]


def test_words_seen_once_are_not_kept(pipeline: Any) -> None:
    words = len(pipeline.vocab.strings)
    assert len(list(parse([f"Zyx{number}abc sleeps." for number in range(3 * BATCH)], pipeline))) == 3 * BATCH
    assert len(pipeline.vocab.strings) < words + BATCH


def test_parsed_sentences_need_no_parser() -> None:
    assert list(Parser("no_such_model").parse([PASSIVE, PASSIVE])) == [[PASSIVE], [PASSIVE]]


def test_a_missing_model_is_one_sentence() -> None:
    pytest.importorskip("spacy", reason="spaCy is missing: pip install 'attnscope[syntax]'.")
    with pytest.raises(BadInput, match="python -m spacy download no_such_model"):
        list(parse(["a"], "no_such_model"))


def test_a_missing_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: object) -> object:
        if name.partition(".")[0] == "spacy":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(BadInput, match=r"pip install 'attnscope\[syntax\]'"):
        list(parse(["a"], "en_core_web_sm"))


def test_what_is_no_parser() -> None:
    spacy = pytest.importorskip("spacy", reason="spaCy is missing: pip install 'attnscope[syntax]'.")
    with pytest.raises(BadInput, match="finds no dependencies"):
        list(parse(["a"], spacy.blank("en")))
    with pytest.raises(BadInput, match="not a int"):
        list(parse(["a"], 3))


def test_a_text_beyond_what_spacy_takes(pipeline: Any) -> None:
    with pytest.raises(BadInput, match="too long for spaCy"):
        list(parse(["a " * pipeline.max_length], pipeline))
