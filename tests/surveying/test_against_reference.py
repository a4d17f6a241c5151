"""A survey gives what the double loops over the records of the same sentences give: every family, every statistic."""

from types import SimpleNamespace

import pytest

import attnscope
from attnscope import survey
from attnscope.statistics import STATISTICS
from attnscope.statistics.exemplars import HOW_MANY

SIZES = [3, 12, 1, 11, 2]


def compare_with_double_loops(found, examples, null, reference, sample, labels) -> None:
    for name in STATISTICS:
        expected = getattr(reference, name)(examples, null, **({"top": HOW_MANY} if name == "exemplars" else {}))
        expected.pop("sentence", None)
        sample.compare(found[name].result(), expected, labels[name])


def test_every_family(family: str, tiny, lab: SimpleNamespace, reference, sample, labels) -> None:
    model, corpus = tiny.load(family), lab.sentences(1, SIZES)
    found = survey(model, corpus, shard_size=2, tokens_per_batch=40)
    null = "first" if model.stacks == ("decoder",) else "special"
    assert found.card["null"] == null
    assert (found.card["sentences"], found.card["skipped"]) == (len(SIZES), {})
    compare_with_double_loops(found, lab.examples(reference, model, corpus), null, reference, sample, labels)


@pytest.mark.parametrize("null", ["first", "special", "none", (0, -1), (-2,)], ids=str)
@pytest.mark.parametrize("kind", ["plain", "ended", "single"])
def test_every_rule_of_null_attention_in_a_causal_model(
    kind: str, null, tiny, lab: SimpleNamespace, reference, sample, labels
) -> None:
    """Also with special tokens before and behind the text, as many decoders have them."""
    model = attnscope.load(tiny.build("gpt2", n_layer=1, n_head=2), tokenizer=tiny.tokenizer(kind))
    corpus = lab.sentences(2, [12, 3, 9, 11])
    found = survey(model, corpus, null=null)
    compare_with_double_loops(found, lab.examples(reference, model, corpus), null, reference, sample, labels)


@pytest.mark.parametrize("null", ["first", "none", (0, -1)], ids=str)
def test_other_rules_of_null_attention_in_a_bidirectional_model(
    null, tiny, lab: SimpleNamespace, reference, sample, labels
) -> None:
    model = tiny.load("bert", num_hidden_layers=1, num_attention_heads=2)
    corpus = lab.sentences(3, [12, 3, 9, 10, 11])
    found = survey(model, corpus, null=null)
    compare_with_double_loops(found, lab.examples(reference, model, corpus), null, reference, sample, labels)
