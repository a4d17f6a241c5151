"""The vocabulary: numbers, the file it is kept in, and what can go wrong with both."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnscope.errors import BadInput
from attnscope.lab.vocabulary import SPECIAL, Vocabulary

WORDS = st.lists(
    st.text(min_size=1, max_size=6).filter(lambda word: word not in SPECIAL.values()), unique=True, max_size=12
)


@settings(max_examples=20)
@given(words=WORDS, counted=st.booleans())
def test_what_is_saved_is_loaded(tmp_path_factory: pytest.TempPathFactory, words: list[str], counted: bool) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.json"
    made = Vocabulary(words, range(len(words)) if counted else None)
    made.save(path)
    assert Vocabulary.load(path) == made
    assert Vocabulary.load(path).counts == made.counts
    assert made.decode(made.encode(words)) == words
    assert json.loads(path.read_text(encoding="utf-8"))["special"] == SPECIAL


def test_the_file_has_one_word_to_a_line(tmp_path: Path) -> None:
    path = Vocabulary(["the", "Schlüssel"], [3, 1]).save(tmp_path / "vocabulary.json")
    assert path.read_text(encoding="utf-8").splitlines()[1:] == ['["the", 3],', '["Schlüssel", 1]', "]}"]


def test_frequent_words_come_first_and_the_rest_is_unknown() -> None:
    made = Vocabulary.of([["b", "a", "[UNK]"], ["b", "c"], ["a", "b"]], most=2)
    assert made.words == ("b", "a")
    assert made.counts == (3, 2)
    assert made.encode(["[CLS]", "a", "c", "[EOS]"]) == [2, 5, 1, 3]
    assert "c" not in made
    assert len(made) == 6


def test_rows_are_padded_at_the_right() -> None:
    ids, real = Vocabulary(["a", "b"]).pad([[4], [5, 4, 4]])
    assert ids.tolist() == [[4, 0, 0], [5, 4, 4]]
    assert real.tolist() == [[True, False, False], [True, True, True]]
    assert ids.dtype == torch.long


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'a' stands twice"):
        Vocabulary(["a", "b", "a"])
    with pytest.raises(BadInput, match=r"'\[UNK\]' stands twice"):
        Vocabulary(["[UNK]"])
    with pytest.raises(BadInput, match="1 words and 2 counts"):
        Vocabulary(["a"], [1, 2])
    with pytest.raises(BadInput, match="needs the special token unk"):
        Vocabulary(["a"], special={"pad": "<pad>"})
    with pytest.raises(BadInput, match="no special token mask"):
        Vocabulary(["a"]).number("mask")
    with pytest.raises(BadInput, match="no word number 9"):
        Vocabulary(["a"]).decode([9])
    with pytest.raises(BadInput, match="a list of words, not of the one text 'the film'"):
        Vocabulary("the film")
    with pytest.raises(BadInput, match="no vocabulary at"):
        Vocabulary.load(tmp_path / "none.json")
    path = tmp_path / "vocabulary.json"
    for content, sentence in [
        ("no json", "is damaged"),
        ("[]", "is not a vocabulary of attnscope"),
        ('{"format": "attnscope vocabulary 1"}', "words cannot be read"),
        (
            '{"format": "attnscope vocabulary 1", "special": {}, "counted": true, "words": ["a"]}',
            "words cannot be read",
        ),
    ]:
        path.write_text(content)
        with pytest.raises(BadInput, match=sentence):
            Vocabulary.load(path)
