"""Every statistic equals the double loop over its equation, for every rule of null attention, padding and all."""

import math

import pytest

from attnscope.statistics import STATISTICS
from attnscope.statistics.exemplars import HOW_MANY

SIZES = [3, 14, 1, 9, 12, 2, 11]
NULLS = ["first", "special", "none", (0, -1), (1,)]


@pytest.mark.parametrize("null", NULLS, ids=str)
@pytest.mark.parametrize(("framed", "causal"), [(False, True), (True, False), (False, False), (True, True)])
@pytest.mark.parametrize("name", STATISTICS)
def test_a_statistic_equals_the_double_loop(name, framed, causal, null, sample, reference, labels):
    readings, weights, examples = sample.corpus(7, SIZES, framed=framed, causal=causal, heads=2)
    frame = sample.frame(readings, weights, causal, null)
    found = sample.measured(STATISTICS[name], readings, weights, frame).result()
    more = {"top": HOW_MANY} if name == "exemplars" else {}
    expected = getattr(reference, name)(examples, null, **more)
    if name == "exemplars":
        del expected["sentence"]
    sample.compare(found, expected, labels[name])


@pytest.mark.parametrize("causal", [True, False])
def test_what_other_tokens_give_to_the_target_of_a_link(causal, sample, reference):
    """A double loop of its own: the reference was written before this column."""
    readings, weights, examples = sample.corpus(3, SIZES, framed=False, causal=causal)
    frame = sample.frame(readings, weights, causal, "first")
    found = sample.measured(STATISTICS["dependency_alignment"], readings, weights, frame).result()
    chosen = found[(found["direction"] == "dependent_to_head") & (found["relation"] == "any")]
    rows = chosen.set_index(["layer", "head"])
    for (layer, head), row in rows.iterrows():
        others, askers, mass = 0.0, set(), 0.0
        for number, example in enumerate(examples):
            kept = reference.kept_pairs(example, "first")
            for i, j in kept:
                if example.heads[example.words[i]] == example.words[j]:
                    rest = [query for query, key in kept if key == j and query != i]
                    others += sum(example.weights[layer, head, query, j] for query in rest) / max(len(rest), 1)
                    askers.add((number, i))
            mass += sum(example.weights[layer, head, i, j] for i, j in kept if (number, i) in askers)
        assert math.isclose(row["focus_of_others"], others / mass, rel_tol=1e-5)
