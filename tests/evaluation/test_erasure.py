"""Erasure: which tokens go, and AOPC against a double loop over plain calls of the model."""

import math

import numpy as np
import pytest
import torch

import attnscope
from attnscope.evaluation.per_text import distinct, erasure


def test_without_first_and_first_alone():
    erased = erasure(np.array([0.1, 0.9, 0.5, 0.7]), [0, 1, 2, 3], lots=np.zeros(4))
    assert erased.without_first == (frozenset({1}),) * 4 + (frozenset({1, 3}),)
    assert erased.first_alone == (frozenset({0, 2, 3}),) * 4 + (frozenset({0, 2}),)
    assert len(distinct([erased, erased])) == 4


def test_only_erasable_positions_are_touched():
    erased = erasure(np.array([9.0, 0.1, 0.2, 8.0]), [1, 2], lots=np.zeros(4))
    assert erased.without_first[-1] == {2}
    assert erased.first_alone[-1] == {1}


def test_lots_decide_between_ties():
    lots = np.array([0.3, 0.1, 0.2])
    assert erasure(np.array([1.0, 1.0, 1.0 + 1e-12]), [0, 1, 2], lots).without_first[0] == {1}


def test_mean_over_the_shares():
    erased = erasure(np.array([1.0, 0.0]), [0, 1], lots=np.zeros(2))
    probability = {frozenset({0}): 0.2, frozenset({1}): 0.7}
    assert erased.comprehensiveness(0.9, probability) == pytest.approx(0.7)
    assert erased.sufficiency(0.9, probability) == pytest.approx(0.2)


def naive_aopc(model, tokenizer, text, rank, special):
    """ERASER's two figures, written out: one call of the model for every share."""
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    quiet = {tokenizer.cls_token_id, tokenizer.sep_token_id}
    erasable = [position for position, token in enumerate(ids[0].tolist()) if special == "with" or token not in quiet]

    def probability(removed, outcome):
        variant = ids.clone()
        for position in removed:
            variant[0, position] = tokenizer.unk_token_id
        with torch.no_grad():
            return float(model(input_ids=variant).logits.softmax(-1)[0, outcome])

    with torch.no_grad():
        outcome = int(model(input_ids=ids).logits.argmax())
    whole = probability([], outcome)
    order = sorted(erasable, key=lambda position: -rank[position])
    comprehensiveness, sufficiency = [], []
    for share in (0.01, 0.05, 0.1, 0.2, 0.5):
        first = order[: math.ceil(share * len(order))]
        comprehensiveness.append(whole - probability(first, outcome))
        sufficiency.append(whole - probability([place for place in order if place not in first], outcome))
    return sum(comprehensiveness) / 5, sum(sufficiency) / 5


@pytest.mark.parametrize("special", ["with", "without"])
def test_aopc_is_that_of_a_double_loop(demo, word_lengths, special):
    text = "the keys to the old cabinet near the door"
    result = attnscope.trust(demo, [text], [word_lengths], against=["gradient"])
    rank = word_lengths(demo.record(text)).scores.tolist()
    expected = naive_aopc(demo.model, demo.tokenizer, text, rank, special)
    table = result.table.query("method == 'word_lengths' and special == @special and bucket == 'all'")
    values = table.set_index("measure")["value"]
    assert values["comprehensiveness"] == pytest.approx(expected[0], abs=1e-5)
    assert values["sufficiency"] == pytest.approx(expected[1], abs=1e-5)
