"""A survey of long texts: block by block the same figures, and nothing that grows with the square of the text."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attnscope import survey
from attnscope.errors import BadInput
from attnscope.record import vectors
from attnscope.statistics import showing
from attnscope.statistics.statistic import Ratio, RatioStatistic, Tally, per_head
from attnscope.surveying import shard

SIZES = [12, 3, 26, 1, 30]
FAMILIES = ["llama", "gemma2", "mistral", "bert", "t5", "gpt2"]


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Makes every text a long one, of blocks of few queries."""

    def begin(elements: int) -> None:
        monkeypatch.setattr(shard, "LARGEST_MAP", 0)
        monkeypatch.setitem(showing.PART_ELEMENTS, "cpu", elements)
        monkeypatch.setattr(vectors, "BLOCK", elements)

    return SimpleNamespace(begin=begin)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_table_is_that_of_whole_maps(name, tiny, lab, labels, long) -> None:
    model, corpus = tiny.load(name), lab.sentences(21, SIZES)
    whole = survey(model, corpus, shard_size=2, tokens_per_batch=1)
    long.begin(350)
    found = survey(model, corpus, shard_size=2)
    keys = {**labels, "role_exemplars": labels["exemplars"]}
    lab.assert_like(found, whole, 1e-5, keys)
    assert list(found) == ["part_of_speech", *list(found)[1:]] == [*list(labels), "roles", "role_exemplars"]
    assert {**found.card, "date": 0, "tokens_per_batch": 0} == {**whole.card, "date": 0, "tokens_per_batch": 0}


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_sinks_are_found_and_left_out_in_blocks_too(name, tiny, lab, labels, long, monkeypatch) -> None:
    monkeypatch.setattr("attnscope.statistics.sinks.DOMINANT", 0.12)
    monkeypatch.setattr("attnscope.statistics.sinks.MANY", 0.25)
    model, corpus = tiny.load(name), lab.sentences(22, SIZES)
    whole = survey(model, corpus, ["distance", "null_attention", "patterns"], null="sinks", tokens_per_batch=1)
    long.begin(200)
    found = survey(model, corpus, ["distance", "null_attention", "patterns"], null="sinks")
    assert found.card["sinks"] == whole.card["sinks"] != {}
    lab.assert_like(found, whole, 1e-5, labels)


def test_a_family_that_shows_no_vectors_is_surveyed_as_ever(tiny, lab, monkeypatch) -> None:
    model, corpus = tiny.load("bloom"), lab.sentences(23, SIZES)
    whole = survey(model, corpus)
    monkeypatch.setattr(shard, "LARGEST_MAP", 0)
    lab.assert_identical(survey(model, corpus), whole)


def test_only_texts_over_the_limit_are_long(tiny, lab, labels, monkeypatch) -> None:
    """Batches of the others stay as they are; each long text is alone."""
    model, corpus = tiny.load("llama", max_position_embeddings=80), lab.sentences(24, [5, 30, 6, 33, 4])
    shown: list[tuple[str, int]] = []
    for name in ("stream", "stream_vectors"):
        plain = getattr(shard, name)

        def noted(body, texts, *others, plain=plain, name=name):
            shown.append((name, len(texts)))
            plain(body, texts, *others)

        monkeypatch.setattr(shard, name, noted)
    whole = survey(model, corpus, ["distance"], tokens_per_batch=999)
    assert shown == [("stream", 5)]
    monkeypatch.setattr(shard, "LARGEST_MAP", 4 * 20 * 20 * 4)
    shown.clear()
    found = survey(model, corpus, ["distance"], tokens_per_batch=999)
    assert [name for name, _ in shown] == ["stream", "stream_vectors", "stream_vectors"]
    assert shown[0] == ("stream", 3)
    assert [length for _, length in shown[1:]] == sorted(length for _, length in shown[1:])
    lab.assert_like(found, whole, 1e-5, labels)


@dataclass
class LookingAhead(RatioStatistic):
    """One of a user's own, which looks at maps."""

    mass: Tally = per_head()

    def update(self, attention) -> None:
        self.mass.add(attention.layer, attention.kept.triu(1).double().sum((0, 2, 3)))

    def ratio(self) -> Ratio:
        return Ratio(self.mass.sums, self.mass.sums)


def test_a_statistic_of_maps_is_refused_by_its_name(tiny, lab, long) -> None:
    long.begin(100)
    with pytest.raises(
        BadInput, match=r"^LookingAhead needs the map of a whole layer, which a text of 37 tokens is[^.]*\.$"
    ):
        survey(tiny.load("gpt2"), lab.sentences(25, [30]), [LookingAhead])


class Largest(TorchDispatchMode):
    """Notes how large the largest tensor is that anything makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        made = function(*arguments, **(options or {}))
        for one in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(one, Tensor) and one.untyped_storage().size():
                self.elements = max(self.elements, one.untyped_storage().size() // one.element_size())
        return made


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_nothing_grows_with_the_square_of_the_text(name, tiny, lab, long) -> None:
    model = tiny.load(name, max_position_embeddings=600)
    long.begin(2**14)
    largest = []
    for words in (100, 200, 400):
        with Largest() as mode:
            found = survey(model, lab.sentences(26, [words]), threads=1)
        largest.append(mode.elements)
    assert largest[2] < found.card["longest"] ** 2  # not even one head has a map
    assert largest[2] < 2.5 * largest[1]
    assert largest[1] < 2.5 * largest[0]
