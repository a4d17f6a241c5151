"""The share of attention on tagged words and its chance, against Eq. 14 in double loops."""

import numpy as np
import pytest
import torch

import attnscope
from attnscope.evaluation import heads_on_words
from attnscope.evaluation.word_tally import HeadTally, heads_and_chance, words_and_tokens

TAGS = {"keys": "thing", "cabinets": "thing", "near": "place", "beside": "place", "unicorn": "beast"}


def looped(records, texts, tag):
    """Eq. 14, and Eq. 14 again where every weight is the same: the numerator and denominator of each head."""
    above = below = chance_above = chance_below = 0.0
    for record, text in zip(records, texts, strict=True):
        words = text.split()
        if not any(TAGS.get(word) == tag for word in words):
            continue
        size = len(record.key_tokens)
        for place, number in enumerate(record.key_word_ids):
            if record.key_special[place]:
                continue
            held = np.array([attnscope.layerwise_tracing(record).per_head[0, head, place] for head in record.heads])
            below, chance_below = below + held, chance_below + 1 / size
            if TAGS.get(words[number]) == tag:
                above, chance_above = above + held, chance_above + 1 / size
    return above / below, chance_above / chance_below


def test_shares_and_chance_are_those_of_the_loops(demo):
    texts = ["the keys near the cabinets", "the dog", "the keys", "the rats beside the keys"]
    table = heads_on_words(demo, texts, TAGS, batch_size=3)
    records = [demo.record(text) for text in texts]
    for tag, count, number in (("thing", 3, 4), ("place", 2, 2)):
        rows = table[table["tag"] == tag]
        shares, chance = looped(records, texts, tag)
        np.testing.assert_allclose(rows["share"], shares, rtol=1e-4)
        np.testing.assert_allclose(rows["chance"], chance, rtol=1e-9)
        assert (rows["texts"] == count).all()
        assert (rows["words"] == number).all()
        assert rows["head"].tolist() == list(records[0].heads)
    assert table[table["tag"] == "beast"]["share"].isna().all()


def test_without_special_tokens_chance_is_the_mean_share_of_tagged_words():
    """Even attention gives every text one: 1 of 2 tokens and 1 of 4 make a chance of 3/8."""
    tally = HeadTally(["good"], [0])
    for tags in ([None, "good"], ["good", None, None, None]):
        weights = torch.rand(3, 1, len(tags), len(tags)).softmax(-1)
        record = attnscope.AttentionRecord.from_weights(weights, list("abcd"[: len(tags)]), causal=False)
        tally.update(record, tags, [[place] for place in range(len(tags))])
    assert tally.table()["chance"].item() == pytest.approx(3 / 8)


def test_the_error_of_a_share_is_that_of_texts_left_out_in_turn():
    random = np.random.default_rng(0)

    def tally_of(texts):
        tally = HeadTally(["good"], [0])
        for weights, tags in texts:
            record = attnscope.AttentionRecord.from_weights(weights, list("abcdefgh"[: len(tags)]), causal=False)
            tally.update(record, tags, [[place] for place in range(len(tags))])
        return tally.table().iloc[0]

    torch.manual_seed(0)
    texts = []
    for _ in range(40):
        size = int(random.integers(2, 8))
        tags = ["good", *(["good" if random.random() < 0.3 else None for _ in range(size - 1)])]
        texts.append((torch.rand(1, 1, size, size).softmax(-1), tags))
    left_out = [tally_of(texts[:place] + texts[place + 1 :])["share"] for place in range(len(texts))]
    jackknife = np.sqrt((len(texts) - 1) * np.var(left_out))
    assert tally_of(texts)["error"] == pytest.approx(jackknife, rel=0.05)
    assert tally_of(texts[:1])["error"] == 0, "one text says nothing of how texts differ"


def test_a_word_of_two_pieces_has_twice_the_chance():
    weights = torch.full((2, 2, 3, 3), 1 / 3)
    record = attnscope.AttentionRecord.from_weights(weights, ["lo", "##ve", "it"], causal=False, word_ids=[0, 0, 1])
    words, groups = words_and_tokens(record, "love it")
    assert (words, groups) == (["love", "it"], [[0, 1], [2]])
    tally = HeadTally(["good"], record.heads)
    tally.update(record, ["good", None], groups)
    np.testing.assert_allclose(tally.table()["share"], 2 / 3)
    np.testing.assert_allclose(tally.table()["chance"], 2 / 3)


def test_in_a_decoder_even_attention_sees_only_what_stands_before():
    weights = torch.ones(2, 1, 3, 3).tril()
    record = attnscope.AttentionRecord.from_weights(weights / weights.sum(-1, keepdim=True), list("abc"))
    assert record.causal
    heads, chance = heads_and_chance(record)
    np.testing.assert_allclose(heads, chance, rtol=1e-6)
    # from the last token: a third each, and then a third of (1), (1/2 1/2) and (1/3 1/3 1/3)
    np.testing.assert_allclose(chance, [11 / 18, 5 / 18, 2 / 18])


def test_a_state_comes_back_to_the_bit(demo):
    record = demo.record("the keys near")
    tally = HeadTally(["thing", "place"], record.heads)
    tally.update(record, ["thing", None, "place"], [[1], [2], [3]])
    again = HeadTally.from_state(tally.state())
    for name in ("tagged", "whole", "squares", "texts", "words"):
        np.testing.assert_array_equal(getattr(again, name), getattr(tally, name))
    assert again.table().equals(tally.table())
