"""What the tests of surveys share: small corpora over the words of the tiny models, and comparisons of tables."""

import importlib.util
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest
import torch

import attnscope
from attnscope import InstrumentedModel, Sentence, Survey


def _conftest_of(folder: str) -> ModuleType:
    """The conftest of another folder, whose fixtures then hold here too."""
    name = f"surveying_{folder}_conftest"
    if name not in sys.modules:
        path = Path(__file__).parents[1] / folder / "conftest.py"
        specification = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(sys.modules[name])
    return sys.modules[name]


_capture, _statistics = (_conftest_of(folder) for folder in ("capture", "statistics"))
family, tiny = _capture.family, _capture.tiny
reference, sample, labels = _statistics.reference, _statistics.sample, _statistics.labels

PIECES = {"key-to": 3, "dogs.": 2, "red,red": 3}
"""Words that the tiny tokenizer takes apart, and into how many tokens."""
TAGS = {",": "PUNCT", ".": "PUNCT", "!": "PUNCT", "the": "DET", "a": "DET", "see": "VERB", "runs": "VERB", "is": "AUX"}


def sentences(seed: int, sizes: list[int]) -> list[Sentence]:
    """Random words of the tiny models in random trees; some words have several tokens."""
    dice = random.Random(seed)
    made = []
    for size in sizes:
        words = dice.choices([*_capture.WORDS, *PIECES], k=size)
        order = dice.sample(range(size), size)
        heads = [-1] * size
        for place in range(1, size):
            heads[order[place]] = order[dice.randrange(place)]
        relations = ["root" if head == -1 else dice.choice(["det", "nsubj", "obj"]) for head in heads]
        tags = [TAGS.get(word, "NOUN") for word in words]
        made.append(Sentence(tuple(words), tuple(tags), tuple(heads), tuple(relations)))
    return made


def examples(reference: ModuleType, model: InstrumentedModel, corpus: list[Sentence]) -> list:
    """The records of the same sentences, for the double loops; words by how the tiny tokenizer is known to split."""
    stack = "decoder" if model.stacks == ("decoder",) else "encoder"
    made = []
    for sentence, record in zip(corpus, model.records([one.text for one in corpus], stack=stack), strict=True):
        of_text = iter([word for word, text in enumerate(sentence.words) for _ in range(PIECES.get(text, 1))])
        special = [bool(mark) for mark in record.special]
        words = [None if quiet else next(of_text) for quiet in special]
        assert next(of_text, None) is None
        made.append(
            reference.Example(
                weights=record.weights.double().numpy(),
                token_ids=record.inputs["input_ids"].tolist(),
                tokens=list(record.tokens),
                special=special,
                words=words,
                tags=list(sentence.tags),
                heads=list(sentence.heads),
                relations=list(sentence.relations),
                causal=stack == "decoder",
            )
        )
    return made


def assert_like(
    one: Survey, other: Survey, tolerance: float, labels: dict[str, list[str]], *, errors: bool = True
) -> None:
    """The same figures, whatever the order of rows."""
    assert list(one) == list(other)
    for name in one:
        keys = labels.get(name, ["layer", "head"])
        tables = [survey[name].result().set_index(keys).sort_index() for survey in (one, other)]
        if not errors:
            tables = [table.drop(columns=[column for column in table if "error" in column]) for table in tables]
        pd.testing.assert_frame_equal(*tables, rtol=0, atol=tolerance)


def assert_identical(one: Survey, other: Survey) -> None:
    """The same bits in all tables."""
    assert list(one) == list(other)
    assert list(one.layer_tables) == list(other.layer_tables)
    for tables, others in ((one.tables, other.tables), (one.layer_tables, other.layer_tables)):
        for name, table in tables.items():
            pd.testing.assert_frame_equal(table, others[name], check_exact=True, obj=name)
            for column in table:
                assert [type(entry) for entry in table[column]] == [type(entry) for entry in others[name][column]]
    assert {**one.card, "date": ""} == {**other.card, "date": ""}


@pytest.fixture(scope="session")
def lab() -> SimpleNamespace:
    """The functions above."""
    return SimpleNamespace(
        sentences=sentences, examples=examples, assert_like=assert_like, assert_identical=assert_identical
    )


@pytest.fixture(scope="session")
def demo() -> InstrumentedModel:
    """The shipped model; it is small, quick and has learned the grammar."""
    return attnscope.load("demo")


@pytest.fixture(scope="session")
def small() -> Callable[[], InstrumentedModel]:
    """A tiny causal model, made anew each time with the same weights."""
    return lambda: _capture.load("gpt2", n_layer=2, n_head=2)


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    """A survey may set the number of threads; the next test shall not see it."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
