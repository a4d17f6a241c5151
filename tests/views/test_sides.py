"""The tokens of a record as a view shows them."""

import pytest
import torch

from attnscope import AttentionRecord, BadInput, load
from attnscope.statistics.sinks import sinks_of
from attnscope.views.sides import sentences_of, sides_of


def uniform(tokens, **more):
    count = len(tokens)
    return AttentionRecord.from_weights(torch.full((1, 2, count, count), 1 / count), tokens, causal=False, **more)


def test_words_are_told_with_their_places():
    side = sides_of(uniform(["[CLS]", "un", "##told", "key"], special=[True, False, False, False]))["queries"]
    assert side["texts"] == ["[CLS]", "un", "told", "key"]
    assert side["joins"] == [2]
    assert side["special"] == [0]
    assert side["words"] == [
        {"text": "[CLS]", "places": [0]},
        {"text": "untold", "places": [1, 2]},
        {"text": "key", "places": [3]},
    ]


def test_a_first_token_where_attention_rests_is_a_sink():
    weights = torch.zeros(2, 2, 8, 8)
    weights[..., 0] = 0.6
    weights += 0.4 * torch.eye(8)
    weights[:, :, 0] = torch.eye(8)[0]
    record = AttentionRecord.from_weights(weights, list("abcdefgh"))
    assert record.causal
    assert sinks_of(record) == [0]
    assert sides_of(record)["keys"]["sinks"] == [0]
    assert sinks_of(uniform(list("abcdefgh"))) == []


def test_a_special_token_is_not_called_a_sink_again():
    weights = torch.zeros(1, 1, 8, 8)
    weights[..., 0] = 1.0
    assert sinks_of(AttentionRecord.from_weights(weights, list("abcdefgh"), causal=False)) == [0]
    assert sinks_of(AttentionRecord.from_weights(weights, list("abcdefgh"), special=[True] + [False] * 7)) == []


def test_a_sink_has_a_quarter_of_the_heads_and_no_special_token_beside_it():
    weights = torch.full((2, 4, 8, 8), 1 / 8)
    weights[0, :2] = 0.9 * torch.eye(8)[5] + 0.1 / 8
    letters = list("abcdefgh")
    assert sinks_of(AttentionRecord.from_weights(weights, letters, causal=False)) == [5]
    assert sinks_of(AttentionRecord.from_weights(weights[:, 1:], letters, causal=False)) == []  # one of six heads
    # with a place to rest at, what heads look at is what the text turns on
    special = [True] + [False] * 7
    assert sinks_of(AttentionRecord.from_weights(weights, letters, causal=False, special=special)) == []


def test_rows_that_cannot_see_a_token_do_not_count_against_it():
    """A window of five tokens: all five rows that see the third token rest on it, the others cannot."""
    letters = list("abcdefghijkl")
    ahead = torch.arange(12) - torch.arange(12)[:, None]
    scores = torch.zeros(1, 2, 12, 12)
    scores[..., 2] = 3.0
    weights = scores.masked_fill((ahead > 0) | (ahead < -4), -torch.inf).softmax(-1)
    assert sinks_of(AttentionRecord.from_weights(weights, letters)) == [2]
    scores[..., 7:, 2] = -3.0  # where they see it and look elsewhere, they do
    assert sinks_of(AttentionRecord.from_weights(scores.masked_fill(ahead > 0, -torch.inf).softmax(-1), letters)) == []


def test_the_sentences_of_a_pair_are_told_apart():
    assert sentences_of(uniform(list("abcd"))) is None
    assert sentences_of(uniform(list("abcd")), sentence_b_start=3) == [0, 0, 0, 1]
    with pytest.raises(BadInput, match="must begin within the 4 tokens"):
        sentences_of(uniform(list("abcd")), sentence_b_start=4)


def test_a_pair_read_by_a_real_model_is_told_apart(real_model):
    record = load(real_model("minilm")).record(("the key", "the cabinets"))
    sentences = sentences_of(record)
    assert record.key_tokens[sentences.index(1) - 1] == "[SEP]"
    assert sentences == sorted(sentences)
    assert sentences.count(1) == 3


def test_cross_attention_has_two_sides():
    record = AttentionRecord.from_weights(torch.full((1, 1, 2, 3), 1 / 3), ["a", "b"], key_tokens=["x", "y", "z"])
    sides = sides_of(record)
    assert (sides["queries"]["texts"], sides["keys"]["texts"]) == (["a", "b"], ["x", "y", "z"])
    assert sides["queries"]["sinks"] == []
