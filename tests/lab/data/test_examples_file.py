"""Examples on disk."""

from pathlib import Path

import pytest

from attnscope.errors import BadInput
from attnscope.lab.data import AgreementExample, read_examples, read_words
from attnscope.lab.data.examples_file import write_examples

EXAMPLES = [
    AgreementExample(("the", "key", "to", "the", "NNS"), "singular", 1, 1, "is"),
    AgreementExample(("cafés",), "plural", 0, -1, "open"),
]


@pytest.mark.parametrize("name", ["some.jsonl", "some.jsonl.gz"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    write_examples(tmp_path / name, EXAMPLES)
    assert list(read_examples(tmp_path / name)) == EXAMPLES
    write_examples(tmp_path / "elsewhere" / f"other-{name}", EXAMPLES)
    assert (tmp_path / "elsewhere" / f"other-{name}").read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"words": ["a"], "number": "singular", "attractors": 0, "subject": 0}',
        '{"words": ["a"], "number": "dual", "attractors": 0, "subject": 0, "verb": "is"}',
        '{"words": ["a"], "number": "plural", "attractors": 0, "subject": 1, "verb": "is"}',
        '{"words": ["a"], "number": "plural", "attractors": -1, "subject": 0, "verb": "is"}',
        '{"words": [1], "number": "plural", "attractors": 0, "subject": 0, "verb": "is"}',
        '{"words": "a", "number": "plural", "attractors": 0, "subject": 0, "verb": "is"}',
        '{"words": ["a"], "number": "plural", "attractors": true, "subject": 0, "verb": "is"}',
    ],
)
def test_a_line_that_is_no_example(tmp_path: Path, line: str) -> None:
    path = tmp_path / "bad.jsonl"
    write_examples(path, EXAMPLES[:1])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(BadInput, match=r"Line 2 of .* is no agreement example"):
        list(read_examples(path))


def test_words_are_one_to_a_line(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("the\nkey\n")
    assert read_words(path) == ["the", "key"]
    path.write_text("the\nthe\n")
    with pytest.raises(BadInput, match="a word twice"):
        read_words(path)
    path.write_text("")
    with pytest.raises(BadInput, match="no words"):
        read_words(path)
