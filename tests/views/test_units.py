"""Which tokens or words a state shows: one rule for the screen, the figures and the tables."""

import pytest
import torch

from attnscope import AttentionRecord, BadInput
from attnscope.views.sides import check_in_sight, in_sight, quoted_texts, shown_units, sides_of, units_holding, units_of

TOKENS = ["[CLS]", "un", "##told", "key", "[SEP]", "why"]
SPECIAL = [True, False, False, False, True, False]


@pytest.fixture
def side():
    weights = torch.full((1, 1, 6, 6), 1 / 6)
    record = AttentionRecord.from_weights(weights, TOKENS, causal=False, special=SPECIAL)
    return {**sides_of(record, sentence_b_start=5)["keys"], "sinks": [3]}


def test_units_are_tokens_or_words(side):
    tokens, words = units_of(side, words=False), units_of(side, words=True)
    assert [unit.text for unit in tokens] == ["[CLS]", "un", "told", "key", "[SEP]", "why"]
    assert [unit.join for unit in tokens] == [False, False, True, False, False, False]
    assert [(unit.text, unit.places) for unit in words][1] == ("untold", (1, 2))
    assert not any(unit.join for unit in words)
    assert [unit.text for unit in words if unit.quiet] == ["[CLS]", "key", "[SEP]"]
    assert [unit.sentence for unit in words] == [0, 0, 0, 0, 1]


def test_special_tokens_sinks_and_the_other_sentence_can_be_hidden(side):
    tokens = units_of(side, words=False)
    assert in_sight(tokens, special=True) == [0, 1, 2, 3, 4, 5]
    assert in_sight(tokens, special=False) == [1, 2, 5]
    assert in_sight(tokens, special=True, sentence=1) == [5]
    assert in_sight(tokens, special=False, sentence=0) == [1, 2]
    assert shown_units(side, {"words": True, "special": False})[1] == [1, 4]


def test_nothing_in_sight_is_said(side):
    quiet = {**side, "special": list(range(6))}
    with pytest.raises(BadInput, match="nothing is left to draw: show special tokens"):
        shown_units(quiet, {"special": False})
    with pytest.raises(BadInput, match="show all sentences"):
        check_in_sight([], special=True)


def test_units_are_found_by_their_tokens(side):
    words = units_of(side, words=True)
    assert quoted_texts(units_holding(words, [2, 5])) == "“untold” + “why”"
    assert units_holding(words, []) == ()
