"""A long text in windows: together they cover it, each is a run of its own, and each says where it stands."""

from itertools import pairwise

import pytest
import torch

from attnscope import BadInput

WORDS = "the red dogs see a boy that runs to the key on table , the cabinets is red ! .".split()
TEXT = " ".join(WORDS[number % len(WORDS)] for number in range(97))


def content(record):
    return [token for token, quiet in zip(record.key_tokens, record.key_special, strict=True) if not quiet]


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "llama", "t5"])
@pytest.mark.parametrize(("window", "stride"), [(20, 9), (20, None), (33, 31), (39, 1)])
def test_windows_cover_the_text_and_each_equals_a_text_of_its_own(tiny, name, window, stride):
    model = tiny.load(name)
    whole = TEXT.split()
    records = model.record(TEXT, window=window, stride=stride, heads="mean")
    covered = set()
    for number, record in enumerate(records):
        place = record.card["window"]
        first, last = place["tokens"]
        begin, end = place["characters"]
        assert (place["number"], place["of"]) == (number, len(records))
        assert content(record) == whole[first:last]
        assert record.text == TEXT[begin:end] == " ".join(whole[first:last])
        assert len(record.key_tokens) <= window
        covered |= set(range(first, last))
        ids = [word for word in record.key_word_ids if word is not None]
        assert ids == list(range(first, last)), "words go on counting over the text"
    assert covered == set(range(97))
    starts = [record.card["window"]["tokens"][0] for record in records]
    assert len({right - left for left, right in pairwise(starts)}) <= 1
    assert [record.card["window"]["tokens"][1] for record in records].count(97) == 1
    for record in (records[0], records[len(records) // 2], records[-1]):
        alone = model.record(record.text, heads="mean")
        assert alone.key_tokens == record.key_tokens
        torch.testing.assert_close(record.weights, alone.weights, atol=1e-5, rtol=0)


def test_windows_take_the_options_of_record_and_split_words(tiny):
    model = tiny.load("bert")
    records = model.record(TEXT.split(), window=30, gradients=True, target=1)
    assert [record.target.index for record in records] == [1] * len(records)
    assert records[0].card["window"]["characters"] is None
    assert records[-1].key_tokens[-2] == TEXT.split()[-1]


def test_a_short_text_is_one_window(tiny):
    (record,) = tiny.load("bert").record("the red dogs", window=16)
    assert record.card["window"] == {"number": 0, "of": 1, "tokens": [0, 3], "characters": [0, 12]}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"window": 41}, "A window of 41 tokens is longer than the 40 the model reads"),
        ({"window": 2}, "has no room for text beside 2 special ones"),
        ({"window": 10, "stride": 9}, "must be from 1 to 8"),
        ({"window": 10, "stride": 0}, "stride must be at least 1, not 0"),
        ({"stride": 4}, "give window= too"),
        ({"window": 10, "text_target": "the"}, "has no one target text"),
    ],
)
def test_what_is_wrong_is_one_sentence(tiny, options, sentence):
    with pytest.raises(BadInput, match=sentence):
        tiny.load("bert").record(TEXT, **options)


def test_a_pair_has_no_windows(tiny):
    with pytest.raises(BadInput, match="A pair of texts"):
        tiny.load("bert").record(("the key", "red dogs"), window=10)
