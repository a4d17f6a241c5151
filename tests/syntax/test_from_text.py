"""Plain text, JSON lines and WikiText, and files that are none of these."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.errors import BadInput
from attnscope.syntax import Sentence, plain, read_jsonl, read_text, wikitext_lines
from attnscope.syntax.from_text import read_table

Write = Callable[[str, str | bytes], Path]


@given(st.text())
def test_a_plain_text_is_its_words_with_single_spaces(text: str) -> None:
    assert plain(text).text == " ".join(text.split())


def test_one_text_to_a_line(written: Write) -> None:
    content = "the  key \n\n \t\nthe keys\u2028here\r\n"
    for path in (written("a.txt", content), written("a.txt.gz", gzip.compress(content.encode()))):
        assert list(read_text(path)) == ["the  key", "the keys\u2028here"], "U+2028 ends no line"


def test_json_lines_hold_texts_or_sentences(written: Write) -> None:
    parsed = {
        "words": ["dogs", "sleep", "."],
        "tags": ["NOUN", "VERB", "PUNCT"],
        "heads": [1, -1, 1],
        "relations": ["nsubj", "root", "punct"],
        "spaces": [True, False, True],
        "name": "d-1",
        "document": None,
        "mood": "calm",
    }
    rows = [{"text": " the key ", "label": 1}, parsed, {"words": ["a"], "text": "b"}, {"text": "  "}]
    rows.append({"words": ["a", "b"], "heads": [-1, -1], "parts": 2})
    path = written("a.jsonl", "\n\n".join(json.dumps(row) for row in rows))
    assert list(read_jsonl(path)) == [
        "the key",
        Sentence(
            ("dogs", "sleep", "."),
            ("NOUN", "VERB", "PUNCT"),
            (1, -1, 1),
            ("nsubj", "root", "punct"),
            spaces=(True, False, True),
            name="d-1",
        ),
        Sentence(("a",)),
        Sentence(("a", "b"), heads=(-1, -1), parts=2),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", 'is not a JSON object with "text" or "words"'),
        ("[" * 100_000, "is not a JSON object"),
        ("[]", "is not a JSON object"),
        ('{"txt": 1}', "is not a JSON object"),
        ('{"text": 1}', '"text" that is not a string'),
        ('{"words": "the key"}', '"words" that are not a list of strings'),
        ('{"words": [1]}', '"words" that are not a list of strings'),
        ('{"words": []}', 'no words in "words"'),
        ('{"words": null, "text": "a"}', 'no words in "words"'),
        ('{"words": ["a"], "heads": ["-1"]}', '"heads" that are not a list of whole numbers'),
        ('{"words": ["a"], "heads": [true]}', '"heads" that are not a list of whole numbers'),
        ('{"words": ["a"], "spaces": [1]}', '"spaces" that are not a list of true and false'),
        ('{"words": ["a"], "tags": ["X", "Y"]}', "is malformed: A sentence needs one entry per word"),
        ('{"words": ["a"], "heads": [0]}', "is malformed: A sentence has exactly one root"),
        ('{"words": ["a"], "parts": "2"}', '"parts" that are not a whole number'),
        ('{"words": ["a"], "name": 3}', '"name" that is not a string'),
    ],
)
def test_a_wrong_line_is_named(written: Write, line: str, message: str) -> None:
    path = written("bad.jsonl", '{"text": "fine"}\n' + line + "\n")
    with pytest.raises(BadInput, match=f"Line 2 of .*bad.jsonl.*{message}"):
        list(read_jsonl(path))


def test_wikitext_is_paragraphs_of_words(written: Write) -> None:
    path = written(
        "wiki.txt",
        " \n = Robert = \n \n He met 1 @,@ 500 co @-@ stars @-@ in @-@ law , at 3 @.@ 5 = x . \n = = Plot = = \n = \n",
    )
    first, second = wikitext_lines(path)
    assert first.text == "He met 1,500 co-stars-in-law , at 3.5 = x ."
    assert first.words[:5] == ("He", "met", "1", ",", "500")
    assert (first.tags, first.heads) == (None, None)
    assert second.words == ("=",), "a lone sign is no heading"


def test_a_table_has_its_texts_in_one_column(written: Write) -> None:
    path = written("some.tsv", "label\ttext\tid\ngood\tIt sleeps.<br /><br />A dog\t1\n\nbad\t \t2\nbad\tNo.\t3\n")
    assert list(read_table(path)) == ["It sleeps.\n\nA dog", "No."]
    for content, message in (
        ("a\tb\n", 'no column "text"'),
        ("", 'no column "text"'),
        ("text\n1\t2\n", "Line 2 .* 2 col"),
    ):
        with pytest.raises(BadInput, match=message):
            list(read_table(written("bad.tsv", content)))
