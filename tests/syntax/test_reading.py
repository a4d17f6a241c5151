"""A corpus is many things, and each can be read twice."""

import gzip
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from attnscope.errors import BadInput
from attnscope.syntax import (
    Corpus,
    Sentence,
    agreement_sentences,
    documents,
    names_a_file,
    read_conllu,
    sentences_of,
    texts_of,
)

Write = Callable[[str, str | bytes], Path]

CONLLU = "1\tdogs\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tsleep\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"


def texts(corpus: Corpus) -> list[str]:
    """The texts of all items, read twice."""
    first = [item if isinstance(item, str) else item.text for item in corpus.items()]
    assert [item if isinstance(item, str) else item.text for item in corpus] == first
    return first


def test_the_demo_is_our_own_grammar() -> None:
    corpus = sentences_of("demo")
    assert (corpus.name, corpus.size, corpus.parser) == ("demo", 1000, None)
    assert list(islice(corpus, 5)) == [drawn.sentence for drawn in islice(agreement_sentences(0), 5)]
    assert len(texts(sentences_of("demo", limit=3))) == 3
    assert sentences_of("demo", limit=1500).size == 1500


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.conllu", CONLLU * 3, ["dogs sleep"] * 3),
        ("a.txt", "the  key\n\n the keys\n", ["the key", "the keys"]),
        ("a.jsonl", '{"text": "the  key"}\n\n{"words": ["the", "keys"]}\n', ["the key", "the keys"]),
    ],
)
def test_files_by_their_suffix(written: Write, name: str, content: str, expected: list[str], packed: bool) -> None:
    path = written(name + ".gz" * packed, gzip.compress(content.encode()) if packed else content)
    for given in (path, str(path)):
        corpus = sentences_of(given)
        assert (corpus.name, corpus.size, corpus.parser) == (path.name, len(expected), None)
        assert all(isinstance(item, Sentence) for item in corpus)
        assert texts(corpus) == expected
    assert (sentences_of(path, limit=1).size, texts(sentences_of(path, limit=1))) == (1, expected[:1])
    assert sentences_of(path, limit=99).size == len(expected)


def test_a_file_of_a_kind_that_its_name_does_not_tell(written: Write) -> None:
    path = written("wiki.txt", " = Title = \n\n co @-@ stars .\n")
    assert texts(sentences_of(path, kind="wikitext")) == ["co-stars ."]
    assert sentences_of(path, kind="wikitext").size == 1
    with pytest.raises(BadInput, match=r"let its name end in \.conllu"):
        sentences_of(written("table.xml", "a,b"))
    with pytest.raises(BadInput, match="say which kind it is: conllu"):
        sentences_of(path, kind="nonsense")
    assert texts(sentences_of(written("README", "a b"), kind="text")) == ["a b"]


def test_lists_of_anything_that_is_a_sentence() -> None:
    drawn = next(agreement_sentences(0))
    things = ["the  key ", "", ["a", "cat"], ("two", "cats"), drawn, drawn.sentence]
    corpus = sentences_of(things)
    assert texts(corpus) == ["the key", "a cat", "two cats", drawn.sentence.text, drawn.sentence.text]
    assert corpus.size == 5, "a blank text is no item"
    assert texts(sentences_of(things, limit=2)) == ["the key", "a cat"]
    assert texts(sentences_of(pd.Series(["a b", "c"]))) == ["a b", "c"]
    assert texts(sentences_of(np.array(["a b", "c"]))) == ["a b", "c"]


def test_what_can_be_read_once_is_kept(written: Write) -> None:
    path = written("a.conllu", "# newdoc id = a\n" + CONLLU * 3)
    corpus = sentences_of(documents(read_conllu(path)))
    assert (corpus.size, texts(corpus)) == (1, ["dogs sleep dogs sleep dogs sleep"])
    assert sentences_of(agreement_sentences(5), limit=4).size == 4, "also of what has no end"
    assert texts(sentences_of(iter(["", "a", " ", "b", "c"]), limit=2)) == ["a", "b"], "blank texts do not count"


def test_what_can_be_read_again_is_not_kept() -> None:
    class Endless:
        def __iter__(self) -> Iterator[str]:
            while True:
                yield "again and again"

    corpus = sentences_of(Endless())
    assert corpus.size is None
    assert [sentence.text for sentence in islice(corpus, 2)] == ["again and again"] * 2
    assert texts(sentences_of(Endless(), limit=2)) == ["again and again"] * 2


def test_a_corpus_is_a_corpus() -> None:
    corpus = sentences_of(["a", "b", "c"], parser="later")
    assert texts(sentences_of(corpus)) == ["a", "b", "c"]
    assert sentences_of(corpus).parser == "later"
    assert (sentences_of(corpus, limit=2).size, sentences_of(corpus, limit=2, parser="other").parser) == (2, "other")


def test_the_name_of_a_parser_is_kept_for_later(written: Write) -> None:
    path = written("a.txt", "Dogs sleep.  Cats run.\n")
    corpus = sentences_of(path, parser="no_such_model")
    assert corpus.parser == "no_such_model"
    assert list(corpus.items()) == ["Dogs sleep.  Cats run."]
    with pytest.raises(BadInput, match="no_such_model"):
        list(corpus.sentences())


def test_a_parser_parses_when_sentences_are_asked(parser_name: str) -> None:
    corpus = sentences_of(["Dogs sleep. Cats run.", ["It", "rains", "."]], parser=parser_name)
    found = list(corpus.sentences())
    assert [sentence.text for sentence in found] == ["Dogs sleep.", "Cats run.", "It rains ."]
    assert all(sentence.heads is not None for sentence in found)
    assert [sentence.words for sentence in sentences_of(["a b"]).sentences()] == [("a", "b")]


def test_a_loaded_parser_parses_at_once(pipeline: Any) -> None:
    corpus = sentences_of(["Dogs sleep. Cats run."], parser=pipeline)
    assert (corpus.size, corpus.parser) == (None, None)
    assert texts(corpus) == ["Dogs sleep.", "Cats run."]
    assert next(corpus.sentences()).tags is not None


def test_a_gold_parse_stays(written: Write) -> None:
    corpus = sentences_of(written("a.conllu", CONLLU), parser="no_such_model")
    assert [sentence.heads for sentence in corpus.sentences()] == [(1, -1)]


@pytest.mark.parametrize("nothing", [[], ["", "  "], iter(())])
def test_no_sentence_is_no_corpus(nothing: object) -> None:
    with pytest.raises(BadInput, match="There is no sentence in sentences in memory"):
        sentences_of(nothing)


def test_empty_and_missing_files(written: Write, tmp_path: Path) -> None:
    for name, match in (("a.txt", "no sentence in .*a.txt"), ("a.jsonl", "no sentence"), ("a.conllu", "no sentences")):
        with pytest.raises(BadInput, match=match):
            sentences_of(written(name, "\n\n"))
    for missing in (tmp_path / "missing.txt", str(tmp_path / "missing"), "./missing", "missing.conllu.gz", "a text"):
        with pytest.raises(BadInput, match="There is no file '"):
            sentences_of(missing)


@pytest.mark.parametrize("thing", [3, None, b"bytes", {"text": ["a"]}, pd.DataFrame({"text": ["a"]}), Sentence(("a",))])
def test_what_is_no_corpus(thing: object) -> None:
    with pytest.raises(BadInput, match=r'This is a .*: a corpus is "demo", a file'):
        sentences_of(thing)


@pytest.mark.parametrize("item", [3, None, [], ["a", 1], {"text": "a"}])
def test_what_is_no_sentence(item: object) -> None:
    with pytest.raises(BadInput, match="Item 1 of the corpus"):
        sentences_of(["fine", item])


def test_options_that_mean_nothing_here_are_refused(written: Write) -> None:
    with pytest.raises(BadInput, match="limit must be at least 1, not 0"):
        sentences_of("demo", limit=0)
    for corpus, options in (
        ("demo", {"split": "test"}),
        (["a"], {"kind": "text"}),
        (["a"], {"column": "text"}),
        (written("a.txt", "a"), {"split": "test"}),
    ):
        with pytest.raises(BadInput, match=r"There is no .* leave out"):
            sentences_of(corpus, **options)


def test_a_csv_file_has_quoted_cells(written: Write) -> None:
    path = written("a.csv", 'label,text\n1,"the key, or\nthe ""keys"""\n\n0,the dog\n')
    assert texts_of(path) == ['the key, or\nthe "keys"', "the dog"]
    assert sentences_of(path).size is None
    for content, match in (
        ("label,sentence\n1,a\n", 'has no column "text"'),
        ("label,text\n1\n", "Line 2 of .* has 1 columns where the header has 2"),
        (f"text\n{'a' * 200_000}\n", "Line 2 of .* is no row of a table"),
    ):
        with pytest.raises(BadInput, match=match):
            texts_of(written("b.csv", content))


@pytest.mark.parametrize("name", ["a" * 100_000, "a" * 300 + ".txt", "a\0b.txt", "a\udc80.txt"])
def test_what_no_file_can_be_called(name: str) -> None:
    with pytest.raises(BadInput, match=r"cannot be looked for|is no name of a file") as raised:
        sentences_of(name)
    assert len(str(raised.value)) < 250


def test_half_characters_are_no_text(written: Write) -> None:
    path = written("a.jsonl", '{"text": "whole \\ud83d\\ude00"}\n{"words": ["half", "\\ud83d"]}\n')
    assert next(sentences_of(path).items()).text == "whole 😀"
    with pytest.raises(BadInput, match=r"^Line 2 of .* has half a character in it"):
        texts_of(path)
    for thing in ("half \ud83d", ["half", "\ud83d"]):
        with pytest.raises(BadInput, match=r"^Item 1 of the corpus has half a character"):
            texts_of(["whole", thing])


def test_a_file_is_told_from_a_text(written: Write) -> None:
    path = written("my texts.txt", "the key")
    assert names_a_file(str(path)), "it is there"
    assert names_a_file("nowhere.jsonl.gz"), "it is one word with such an ending"
    assert not any(map(names_a_file, ("a text", "It stands in nowhere.txt", "key", "", "word " * 9999 + "a.txt")))
