"""The shipped model, some sentences it knows, and methods of our own."""

import pytest
import torch

import attnscope
from attnscope.evaluation import read_texts
from attnscope.record.scores import scores_of


@pytest.fixture(scope="session")
def demo():
    return attnscope.load("demo")


@pytest.fixture(scope="session")
def sentences():
    return read_texts("demo", 20)


@pytest.fixture
def word_lengths():
    """A method that knows nothing but the spelling; the position decides between words of one length."""

    def word_lengths(record):
        values = [len(token) + position / 100 for position, token in enumerate(record.key_tokens)]
        return scores_of(record, "word_lengths", torch.tensor(values))

    return word_lengths


@pytest.fixture
def lexicon_libraries():
    for library in ("matplotlib", "statsmodels"):
        pytest.importorskip(library, reason=f"{library} is missing: pip install 'attnscope[lexicon]'.")
