"""TokenScores and the raw method."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attnscope
from attnscope import AttentionRecord, BadInput


@given(data=st.data())
def test_raw_is_the_readout_over_the_pooled_layer(records, data):
    record = AttentionRecord.from_weights(**data.draw(records))
    layer = data.draw(st.integers(-len(record.layers), len(record.layers) - 1))
    for heads, pool in (("mean", lambda w: w.mean(0)), ("max", lambda w: w.max(0).values), (0, lambda w: w[0])):
        scores = attnscope.raw(record, heads=heads, layer=layer)
        expected = sum(
            record.readout[query] * pool(record.weights[layer])[query] for query in range(len(record.tokens))
        )
        torch.testing.assert_close(scores.scores, expected, atol=1e-6, rtol=0)
    assert scores.tokens == record.key_tokens


def test_map_and_at():
    record = AttentionRecord.from_weights(torch.rand(2, 3, 4, 4).softmax(-1), list("abcd"))
    scores = attnscope.attribute(record, "raw", heads=[0, 2])
    torch.testing.assert_close(scores.map, record.weights[:, [0, 2]].mean(1))
    torch.testing.assert_close(scores.at(query=3, layer=0), record.weights[0, [0, 2], 3].mean(0))
    for bad in ({"query": 4}, {"query": 0, "layer": 2}):
        with pytest.raises(BadInput, match="counted from 0"):
            scores.at(**bad)


def test_any_callable_is_a_method_and_names_are_checked():
    record = AttentionRecord.from_weights(torch.eye(2), ["a", "b"])
    mine = attnscope.attribute(record, lambda given: attnscope.raw(given, heads="max"))
    assert mine.scores.tolist() == [0, 1]
    with pytest.raises(BadInput, match="no method 'guess'"):
        attnscope.attribute(record, "guess")
    for bad in (7, "all"):
        with pytest.raises(BadInput, match="heads="):
            attnscope.raw.__wrapped__(record, heads=bad)
    with pytest.raises(BadInput, match="no layer 5"):
        attnscope.raw(record, layer=5)


def test_scores_without_a_map_say_so():
    scores = attnscope.TokenScores(method="mine", tokens=("a",), scores=torch.ones(1), special=(False,), word_ids=(0,))
    with pytest.raises(BadInput, match="no map"):
        _ = scores.map
    assert repr(scores) == "TokenScores(mine: a 1.000)"
    assert "<span" in scores._repr_html_()
