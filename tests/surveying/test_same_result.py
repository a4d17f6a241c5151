"""However the corpus is cut, the figures are the same."""

from types import SimpleNamespace

import pytest
import torch

from attnscope import Sentence, survey
from attnscope.engine import run_here
from attnscope.surveying.passes import GROUPS

SIZES = [3, 12, 1, 9, 13, 2, 11, 14]


@pytest.fixture(scope="module", params=["gpt2", "bert", "bloom"])
def known(request: pytest.FixtureRequest, tiny, lab) -> SimpleNamespace:
    """A model, a corpus, and its surveys in shards of four: one sentence in a batch, and the whole shard in one."""
    model, corpus = tiny.load(request.param), lab.sentences(4, SIZES)
    one_by_one, together = (survey(model, corpus, shard_size=4, tokens_per_batch=tokens) for tokens in (1, 4096))
    return SimpleNamespace(model=model, corpus=corpus, one_by_one=one_by_one, together=together)


def test_batches_of_any_size(known, lab, labels) -> None:
    few = survey(known.model, known.corpus, shard_size=4, tokens_per_batch=40)
    lab.assert_like(known.one_by_one, few, 1e-6, labels)
    lab.assert_like(known.one_by_one, known.together, 1e-6, labels)


def test_shards_of_any_size(known, lab, labels) -> None:
    """With one sentence in a batch, so that rounding in the model is the same everywhere."""
    whole, threes = (survey(known.model, known.corpus, shard_size=size, tokens_per_batch=1) for size in (100, 3))
    for part in (threes, known.one_by_one):
        lab.assert_like(whole, part, 1e-9, labels, errors=False)
        assert part["distance"].result()["error"].notna().all()
    assert whole["distance"].result()["error"].isna().all()  # one shard tells nothing of the spread


def test_more_shards_than_groups(tiny, lab, labels) -> None:
    model, corpus = tiny.load("gpt2", n_layer=1, n_head=2), lab.sentences(6, [3, 12, 5, 11] * 9)
    assert len(corpus) > GROUPS
    names = ["distance", "variability", "exemplars", "part_of_speech"]
    one, many = (survey(model, corpus, names, shard_size=size, tokens_per_batch=1) for size in (len(corpus), 1))
    lab.assert_like(one, many, 1e-9, labels, errors=False)
    assert many.card["sentences"] == len(corpus)


def test_sentences_in_any_order_give_the_same_sums(small, lab, labels) -> None:
    corpus = lab.sentences(7, SIZES)
    names = [name for name in labels if name != "exemplars"]  # of equal ones the earlier comes first
    there, back = (survey(small(), order, names, shard_size=3) for order in (corpus, corpus[::-1]))
    lab.assert_like(there, back, 1e-6, labels, errors=False)


def test_twice_the_same_is_the_same_to_the_bit(known, lab) -> None:
    lab.assert_identical(known.together, survey(known.model, known.corpus, shard_size=4, tokens_per_batch=4096))


def test_results_may_come_in_any_order(small, lab) -> None:
    """Whatever the engine, shards are merged by their numbers."""
    corpus = lab.sentences(9, SIZES)

    def backwards(make_worker, items):
        return reversed(list(run_here(make_worker, items)))

    lab.assert_identical(survey(small(), corpus, shard_size=2), survey(small(), corpus, shard_size=2, engine=backwards))


def test_on_all_cores(lab) -> None:
    """In one process more: that items are spread over several is shown in tests/engine/test_cores.py."""
    asked = {"corpus": "demo", "statistics": ["distance"], "limit": 24, "threads": 1, "shard_size": 8}
    there = survey("demo", **asked, engine="cores", engine_options={"workers": 1})
    lab.assert_identical(there, survey("demo", **asked))


def test_a_model_by_name_and_the_model_itself(demo, lab) -> None:
    by_name = survey("demo", "demo", limit=8)
    lab.assert_identical(by_name, survey(demo, "demo", limit=8))
    assert by_name.card["sentences"] == 8


def test_a_corpus_that_can_be_read_only_once_serves_both_passes(small, lab) -> None:
    corpus = lab.sentences(10, SIZES)
    lab.assert_identical(survey(small(), corpus, shard_size=12), survey(small(), iter(corpus), shard_size=12))


def test_a_conllu_file_and_its_sentences(small, lab, tmp_path) -> None:
    corpus = lab.sentences(11, SIZES)
    path = tmp_path / "corpus.conllu"
    path.write_text("".join(conllu(sentence) for sentence in corpus))
    from_file, from_memory = survey(small(), path, shard_size=4), survey(small(), corpus, shard_size=4)
    assert from_file.card["corpus"] == "corpus.conllu"
    for name in from_memory:
        assert from_file[name].result().equals(from_memory[name].result())


def conllu(sentence: Sentence) -> str:
    rows = [
        f"{place}\t{word}\t_\t{tag}\t_\t_\t{head + 1}\t{relation}\t_\t_"
        for place, (word, tag, head, relation) in enumerate(
            zip(sentence.words, sentence.tags, sentence.heads, sentence.relations, strict=True), start=1
        )
    ]
    return "\n".join(rows) + "\n\n"


def test_a_survey_leaves_the_model_as_it_was(tiny, lab) -> None:
    model = tiny.load("bert", "sdpa")
    model.model.train()
    before = {name: parameter.clone() for name, parameter in model.model.named_parameters()}
    survey(model, lab.sentences(12, SIZES), threads=1)
    assert model.model.training
    assert model.model.config._attn_implementation == "sdpa"
    assert all(torch.equal(before[name], parameter) for name, parameter in model.model.named_parameters())
    assert all(parameter.grad is None for parameter in model.model.parameters())
