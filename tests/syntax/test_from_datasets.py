"""Hugging Face data sets: objects, streams and folders; texts, words and parses."""

import builtins
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnscope.errors import BadInput
from attnscope.syntax import Sentence, read_dataset, sentences_of
from attnscope.syntax.from_datasets import is_dataset

PARSED = Sentence(("dogs", "sleep"), ("NOUN", "VERB"), (1, -1), ("nsubj", "root"))


@pytest.fixture
def datasets() -> Any:
    return pytest.importorskip("datasets", reason="datasets is missing: pip install 'attnscope[corpora]'.")


@pytest.fixture
def folder(tmp_path: Path, datasets: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set of two splits in a folder, and a cache of the test's own."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    home = tmp_path / "corpus"
    home.mkdir()
    for split, texts in (("train", ["the key", "", "the  keys"]), ("test", ["a cat"])):
        (home / f"{split}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return home


def test_texts_of_an_object_and_of_a_stream(datasets: Any) -> None:
    rows = datasets.Dataset.from_dict({"text": ["the key", " ", "the keys "], "label": [0, 1, 0]})
    for source in (rows, rows.to_iterable_dataset()):
        assert is_dataset(source)
        assert list(read_dataset(source)) == ["the key", "the keys"]
        corpus = sentences_of(source)
        assert [sentence.text for sentence in corpus] == ["the key", "the keys"] == [item.text for item in corpus]
    assert sentences_of(rows, limit=1).size == 1


def test_a_named_column(datasets: Any) -> None:
    rows = datasets.Dataset.from_dict({"review": ["good"], "text": ["bad"]})
    assert list(read_dataset(rows, column="review")) == ["good"]
    with pytest.raises(BadInput, match="no column review2, but review, text"):
        list(read_dataset(rows, column="review2"))
    with pytest.raises(BadInput, match="name the one to read"):
        list(read_dataset(rows.rename_columns({"text": "a", "review": "b"})))


def test_parsed_words_with_named_labels(datasets: Any) -> None:
    tags = datasets.ClassLabel(names=["VERB", "NOUN"])
    features = datasets.Features(
        {
            "tokens": datasets.List(datasets.Value("string")),
            "upos": datasets.List(tags),
            "head": datasets.List(datasets.Value("string")),
            "deprel": datasets.List(datasets.Value("string")),
            "text": datasets.Value("string"),
        }
    )
    row = {"tokens": ["dogs", "sleep"], "upos": [1, 0], "head": ["2", "0"], "deprel": ["nsubj", "root"], "text": "x"}
    rows = datasets.Dataset.from_list([row], features=features)
    assert list(read_dataset(rows)) == [PARSED]
    assert list(read_dataset(rows.to_iterable_dataset())) == [PARSED]
    assert list(read_dataset(rows, column="text")) == ["x"]


def test_heads_from_zero_as_in_a_sentence(datasets: Any) -> None:
    row = {"words": ["dogs", "sleep"], "tags": ["NOUN", "VERB"], "heads": [1, -1], "relations": ["nsubj", "root"]}
    assert list(read_dataset(datasets.Dataset.from_list([row]))) == [PARSED]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tokens": ["a"], "pos_tags": [3]}, "Row 0 .* numbers in 'pos_tags'"),
        ({"tokens": ["a"], "head": ["None"]}, "Row 0 .* heads that are not numbers"),
        ({"tokens": ["a"], "head": [1]}, "Row 0 .*: A sentence has exactly one root"),
        ({"tokens": [1, 2]}, "Row 0 .* neither a text nor a list of words in 'tokens'"),
        ({"text": 3}, "Row 0 .* neither a text nor a list of words in 'text'"),
        ({"text": None}, "Row 0 .* neither a text"),
    ],
)
def test_a_wrong_row_is_named(datasets: Any, row: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        list(read_dataset(datasets.Dataset.from_list([row])))


def test_a_folder_is_a_data_set_by_name(folder: Path) -> None:
    assert list(read_dataset(str(folder), split="train")) == ["the key", "the  keys"]
    corpus = sentences_of(folder, split="test")
    assert corpus.name == "corpus, test"
    assert [sentence.text for sentence in corpus] == ["a cat"] == [sentence.text for sentence in corpus]


def test_several_splits_need_a_choice(folder: Path, datasets: Any) -> None:
    with pytest.raises(BadInput, match=r"needs a split .*: choose from .*train"):
        sentences_of(str(folder))
    with pytest.raises(BadInput, match="has no split 'dev'"):
        sentences_of(str(folder), split="dev")
    rows = datasets.Dataset.from_dict({"text": ["a"]})
    assert sentences_of(datasets.DatasetDict(only=rows)).size == 1
    with pytest.raises(BadInput, match="has no splits"):
        sentences_of(rows, split="test")


def test_a_name_may_tell_a_configuration_and_is_opened_once(datasets: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load(*names: str | None, streaming: bool) -> Any:
        asked.append((*names, streaming))
        return datasets.IterableDatasetDict(test=datasets.Dataset.from_dict({"text": ["a"]}).to_iterable_dataset())

    monkeypatch.setattr(datasets, "load_dataset", load)
    for name in ("owner/corpus", "owner/corpus:test", "owner/corpus:small-v1:test"):
        assert [sentence.text for sentence in sentences_of(name)] == ["a"]
    assert asked == [("owner/corpus", name, True) for name in (None, None, "small-v1")], "each is opened once"


@pytest.fixture
def configured(tmp_path: Path, datasets: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set of two configurations, whose first has two splits and two columns."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    home = tmp_path / "reviews"
    home.mkdir()
    for name, text in (("train", "the key"), ("test", "the keys"), ("other", "a cat")):
        (home / f"{name}.jsonl").write_text(json.dumps({"text": text, "review": f"{text} is good"}) + "\n")
    (home / "README.md").write_text(
        "---\nconfigs:\n"
        "- config_name: first\n  data_files:\n"
        "  - {split: train, path: train.jsonl}\n  - {split: test, path: test.jsonl}\n"
        "- config_name: second\n  data_files:\n  - {split: train, path: other.jsonl}\n---\n"
    )
    return home


def test_a_name_may_tell_a_split_and_a_column(folder: Path, configured: Path) -> None:
    for name, called, text in (
        (f"{folder}:test", "corpus, test", "a cat"),
        (f"{folder}:test#text", "corpus, test (text)", "a cat"),
        (f"{configured}:first:test", "reviews:first, test", "the keys"),
        (f"{configured}:first:train#review", "reviews:first, train (review)", "the key is good"),
        (f"{configured}:second:train", "reviews:second, train", "a cat"),
    ):
        corpus = sentences_of(name)
        assert (corpus.name, next(corpus.items()).text) == (called, text)
    assert sentences_of(f"{folder}:test", split="test", column="text").name == "corpus, test (text)"


def test_a_name_that_tells_wrong_parts_is_one_sentence(folder: Path, configured: Path) -> None:
    for name, options, said in (
        (f"{folder}:dev", {}, "has no split 'dev': choose from .*train"),
        (f"{folder}:test#review", {}, "no column review, but text"),
        (f"{folder}:test", {"split": "train"}, "has a split of its own: leave out split='train'"),
        (f"{configured}:train", {}, "several configurations, so name one, as in NAME:CONFIGURATION:SPLIT"),
        (f"{configured}:third:train", {}, "third"),
        ("owner/corpus:a:b:c", {}, "There is no file 'owner/corpus:a:b:c'"),
    ):
        with pytest.raises(BadInput, match=said) as caught:
            sentences_of(name, **options)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("tags", [["B-PER", "O"], ["O", "O"], ["I-NP", "I-NP"], ["S-LOC", "O"]])
def test_tags_of_names_are_no_parts_of_speech(datasets: Any, tags: list[str]) -> None:
    row = {"tokens": ["Ada", "sleeps"], "tags": tags}
    (named,) = read_dataset(datasets.Dataset.from_list([row]))
    assert named == Sentence(("Ada", "sleeps"))
    (both,) = read_dataset(datasets.Dataset.from_list([{**row, "pos": ["PROPN", "VERB"]}]))
    assert both.tags == ("PROPN", "VERB"), "another column may have them"


def test_numbered_tags_of_names_are_told_by_their_class_names(datasets: Any) -> None:
    """A row where all is outside looks the same as any other: the names of the classes decide."""
    names = datasets.Features(
        {
            "tokens": datasets.List(datasets.Value("string")),
            "tags": datasets.List(datasets.ClassLabel(names=["O", "B-PER", "I-PER"])),
        }
    )
    rows = datasets.Dataset.from_list([{"tokens": ["dogs"], "tags": [0]}, {"tokens": ["Ada"], "tags": [1]}], names)
    assert [sentence.tags for sentence in read_dataset(rows)] == [None, None]


def test_tags_that_only_look_like_those_of_names_are_kept(datasets: Any) -> None:
    row = {"tokens": ["he", "says", "-LRB-"], "tags": ["O", "V", "-LRB-"]}  # of tweets, "O" is a pronoun
    assert [sentence.tags for sentence in read_dataset(datasets.Dataset.from_list([row]))] == [("O", "V", "-LRB-")]


def test_the_size_is_said_only_where_it_is_sure(datasets: Any) -> None:
    rows = datasets.Dataset.from_dict({"text": ["a", "b", "c"]})
    assert sentences_of(rows).size == 3
    assert sentences_of(rows.to_iterable_dataset().take(1)).size is None


def test_a_name_nobody_knows_is_one_sentence(datasets: Any, folder: Path) -> None:
    with pytest.raises(BadInput, match="There is no file and no data set 'no_such/corpus'") as caught:
        sentences_of("no_such/corpus")
    assert "\n" not in str(caught.value)


def test_without_the_library_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., Any] = builtins.__import__

    def missing(name: str, *rest: object) -> object:
        if name == "datasets":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "datasets", raising=False)
    monkeypatch.setattr(builtins, "__import__", missing)
    assert not is_dataset(["a"])
    with pytest.raises(BadInput, match=r"pip install 'attnscope\[corpora\]'"):
        sentences_of("no_such/corpus")
