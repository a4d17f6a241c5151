"""Reading texts: files, JSON lines, gzip, the grammar, and files that are none of these."""

import gzip

import pytest

from attnscope.errors import BadInput
from attnscope.evaluation import read_texts


def test_one_text_to_a_line(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("the key\n\n  the keys \n")
    assert read_texts(str(path)) == ["the key", "the keys"]
    assert read_texts(str(path), limit=1) == ["the key"]


def test_json_lines_and_gzip(tmp_path):
    path = tmp_path / "texts.jsonl.gz"
    path.write_bytes(gzip.compress('{"text": "the key", "label": 1}\n\n{"text": "é"}\n'.encode()))
    assert read_texts(str(path)) == ["the key", "é"]


def test_the_demo_is_sentences_up_to_their_verb():
    assert len(read_texts("demo")) == 200
    assert read_texts("demo", 5) == read_texts("demo", 300)[:5]


def test_bad_input(tmp_path):
    def refused(name, content, match, **options):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(BadInput, match=match):
            read_texts(str(path), **options)

    refused("empty.txt", b"\n\n", "There is no text in")
    refused("limit.txt", b"a\n", "at least one text", limit=0)
    refused("latin.txt", "é".encode("latin-1"), "not text in UTF-8")
    refused("not.txt.gz", b"plain", "not text in UTF-8, or is damaged")
    refused("half.txt.gz", gzip.compress(b"some text " * 99)[:-12], "damaged")
    refused("no.jsonl", b'{"txt": "a"}\n', 'Line 1 of .* is not a JSON object with "text"')
    refused("list.jsonl", b"[1]\n", "Line 1")
    refused("number.jsonl", b'{"text": 3}\n', "not a string")
    with pytest.raises(BadInput, match="There is no corpus"):
        read_texts(str(tmp_path / "missing.txt"))
