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
    refused("limit.txt", b"a\n", "limit must be at least 1", limit=0)
    refused("limit.txt", b"a\n", "limit must be at most", limit=10**30)
    refused("no.tsv", b"label\tsentence\n1\ta\n", 'has no column "text"')
    refused("no.xml", b"<a/>", "let its name end in .conllu, .csv")
    refused("wrong.txt.gz", _with_wrong_checksum(b"some text\n" * 99), "damaged")
    refused("latin.txt", "é".encode("latin-1"), "not text in UTF-8")
    refused("not.txt.gz", b"plain", "not text in UTF-8, or is damaged")
    refused("half.txt.gz", gzip.compress(b"some text " * 99)[:-12], "damaged")
    refused("no.jsonl", b'{"txt": "a"}\n', 'Line 1 of .* is not a JSON object with "text"')
    refused("list.jsonl", b"[1]\n", "Line 1")
    refused("number.jsonl", b'{"text": 3}\n', "not a string")
    with pytest.raises(BadInput, match="There is no file"):
        read_texts(str(tmp_path / "missing.txt"))


def test_tables_and_treebanks_are_read_as_what_they_are(tmp_path):
    lines = "1\tdogs\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tsleep\t_\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No\n"
    lines += "3\t.\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_\n\n"
    for name, content, texts in (
        ("a.tsv", "label\ttext\n1\tthe key\n", ["the key"]),
        ("a.csv", 'label,text\n1,"the key, too"\n', ["the key, too"]),
        ("a.conllu", lines, ["dogs sleep."]),
    ):
        (tmp_path / name).write_text(content)
        assert read_texts(str(tmp_path / name)) == texts
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
        assert read_texts(str(tmp_path / f"{name}.gz")) == texts


def test_a_data_set_is_found_by_its_name(tmp_path):
    (tmp_path / "imdb").mkdir()
    content = "label\tid\trating\ttext\nneg\t0\t1\tbad<br />film\n"
    (tmp_path / "imdb" / "test.tsv.gz").write_bytes(gzip.compress(content.encode()))
    assert read_texts("imdb:test", data=tmp_path) == ["bad\nfilm"]


def _with_wrong_checksum(content):
    packed = bytearray(gzip.compress(content))
    packed[-8] ^= 1
    return bytes(packed)
