"""AttentionRecord: its checks, its views of itself, its forms."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnscope import AttentionRecord, BadInput
from attnscope.record.schema import tensor_fields


def weights(layers=2, heads=3, queries=4, keys=4, seed=0):
    return torch.randn(layers, heads, queries, keys, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def spoiled(value, layer=1, head=2, row=3, column=0):
    attention = weights()
    attention[layer, head, row, column] = value
    return attention


@pytest.mark.parametrize(
    ("attention", "sentence"),
    [
        (spoiled(math.nan), "layer 1, head 2, row 3 holds a value that is not finite"),
        (spoiled(math.inf), "layer 1, head 2, row 3 holds a value that is not finite"),
        (spoiled(-0.1), "layer 1, head 2, row 3 holds a negative weight"),
        (spoiled(3.0), "layer 1, head 2, row 3 sums to 3"),
        (torch.zeros(1, 1, 4, 4), "layer 0, head 0, row 0 sums to 0.0000, not to one"),
        (torch.zeros(1, 0, 4, 4), "no weights|empty"),
    ],
)
def test_bad_weights_are_refused_by_layer_head_and_row(attention, sentence):
    with pytest.raises(BadInput, match=sentence):
        AttentionRecord.from_weights(attention, list("abcd"))


def test_rows_within_tolerance_are_renormalised_and_bfloat16_has_more():
    off = weights() * 1.0008
    record = AttentionRecord.from_weights(off, list("abcd"))
    torch.testing.assert_close(record.weights, weights(), atol=1e-6, rtol=0)
    wider = weights() * 1.006
    with pytest.raises(BadInput, match="not to one"):
        AttentionRecord.from_weights(wider, list("abcd"))
    half = AttentionRecord.from_weights(wider.to(torch.bfloat16), list("abcd"))
    assert half.weights.dtype == torch.float32
    torch.testing.assert_close(half.weights.sum(-1), torch.ones(2, 3, 4), atol=1e-6, rtol=0)


def test_rows_of_zeros_only_where_the_query_is_masked():
    attention = weights()
    attention[:, :, 2] = 0
    with pytest.raises(BadInput, match=r"row 2 sums to 0\.0000"):
        AttentionRecord.from_weights(attention, list("abcd"))
    record = AttentionRecord.from_weights(attention, list("abcd"), masked_queries=[False, False, True, False])
    assert record.weights[:, :, 2].abs().max() == 0
    assert record.weights.isfinite().all()


def test_looking_ahead_is_not_causal():
    with pytest.raises(BadInput, match="Layer 0, head 0, row 0 attends to a later token"):
        AttentionRecord.from_weights(weights(), list("abcd"), causal=True)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tokens": list("abc")}, "tokens has 3 entries, but the attention weights have 4 query"),
        ({"word_ids": [0, 1]}, "word_ids has 2 entries"),
        ({"readout": [0.5, 0.5, 0.5, 0.5]}, "must be a distribution"),
        ({"readout": 7}, "readout=7 is outside"),
    ],
)
def test_fields_that_do_not_fit_are_refused(changes, sentence):
    with pytest.raises(BadInput, match=sentence):
        AttentionRecord.from_weights(weights(), **{"tokens": list("abcd")} | changes)


def test_optional_tensors_must_fit_the_weights():
    fields = {"query_tokens": ("a", "b"), "key_tokens": ("a", "b"), "stack": "encoder", "causal": False}
    even = torch.full((1, 1, 2, 2), 0.5)
    # in tests jaxtyping would refuse the record first, so the check is called by itself
    with pytest.raises(
        BadInput, match="queries has the shape 1 x 2 x 2 x 3; beside these weights it must be 1 x 1 x 2 x any"
    ):
        tensor_fields(AttentionRecord)["queries"].refuse(
            "queries", "float32", [1, 2, 2, 3], {"layer": 1, "head": 1, "query": 2, "key": 2}
        )
    with pytest.raises(BadInput, match="same tokens"):
        AttentionRecord(weights=even, readout=torch.tensor([1.0, 0.0]), **fields | {"key_tokens": ("a", "c")})


@pytest.mark.parametrize("form", ["tuple", "numpy", "lists", "five", "one layer", "one map", "batch"])
def test_every_form_of_weights_is_the_same_record(form):
    attention = weights()
    tokens = list("abcd")
    index = None
    expected = attention
    match form:
        case "tuple":
            given_form = tuple(layer.unsqueeze(0) for layer in attention)
        case "numpy":
            given_form = attention.numpy()
        case "lists":
            given_form = attention.tolist()
        case "five":
            given_form = attention.unsqueeze(1).double()
        case "one layer":
            given_form, expected = attention[0].numpy(), attention[:1]
        case "one map":
            given_form, expected = attention[0, 0].tolist(), attention[:1, :1]
        case "batch":
            given_form, index = tuple(torch.stack([weights(seed=9)[0], layer]) for layer in attention), 1
    record = AttentionRecord.from_weights(given_form, tokens, index=index)
    torch.testing.assert_close(record.weights, expected, atol=1e-6, rtol=0)
    assert record.tokens == tuple(tokens)


@pytest.mark.parametrize("attentions", [None, (), (None, None), [], ((), ()), (weights(), None)])
def test_no_weights_explains_sdpa_and_eager(attentions):
    with pytest.raises(BadInput, match=r"sdpa and flash attention never build the matrix.*eager"):
        AttentionRecord.from_weights(attentions, ["a"])


@pytest.mark.parametrize(
    ("attentions", "sentence"),
    [
        ((torch.full((2, 1, 1, 1), 1.0),), "batch of 2 texts: say which one with index=0 to index=1"),
        (np.ones((1, 1, 1, 1, 1, 1)), "cannot be read"),
        ("words", "not an array"),
        ((torch.ones(1, 1, 1, 1), torch.ones(1, 2, 1, 1)), "differ in shape"),
        (torch.full((1, 1, 1, 2), 0.5), "key_tokens"),
    ],
)
def test_unreadable_weights_get_one_sentence(attentions, sentence):
    with pytest.raises(BadInput, match=sentence):
        AttentionRecord.from_weights(attentions, ["a"])


def test_index_outside_the_batch():
    with pytest.raises(BadInput, match="index=5 is outside this batch of 2"):
        AttentionRecord.from_weights((torch.ones(2, 1, 1, 1),), ["a"], index=5)


def test_attention_mask_drops_padding():
    attention = weights(queries=3, keys=3)
    padded = torch.zeros(2, 3, 4, 4)
    padded[..., :3, :3] = attention
    padded[..., 3, 0] = 1
    record = AttentionRecord.from_weights(padded, ["a", "b", "c", "[PAD]"], attention_mask=[1, 1, 1, 0])
    assert record.tokens == ("a", "b", "c")
    torch.testing.assert_close(record.weights, attention, atol=1e-6, rtol=0)


def test_steps_of_generate_with_short_rows_align_to_the_right():
    prompt = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]])
    first = torch.tensor([[0.4, 0.6]])  # a window of two: only the last two keys of four
    record = AttentionRecord.from_weights(((prompt[None, None],), (first[None, None],)), list("abcd"))
    assert record.causal
    torch.testing.assert_close(record.weights[0, 0, 3], torch.tensor([0, 0, 0.4, 0.6]))


def test_cross_attention_names_both_sides():
    record = AttentionRecord.from_weights(weights(queries=2, keys=3), ["x", "y"], key_tokens=["a", "b", "c"])
    assert record.stack == "cross"
    for name in ("tokens", "word_ids", "special"):
        with pytest.raises(BadInput, match=f"query_{name} or key_{name}"):
            getattr(record, name)


def test_readout_by_default_last_if_causal_else_even():
    causal = AttentionRecord.from_weights(torch.eye(3)[None, None], list("abc"))
    assert causal.causal
    assert causal.readout.tolist() == [0, 0, 1]
    dense = AttentionRecord.from_weights(weights(), list("abcd"))
    assert dense.readout.tolist() == [0.25] * 4


def test_select_keeps_the_numbers_of_the_model():
    record = AttentionRecord.from_weights(weights(), list("abcd"))
    chosen = record.select(layers=[-1], heads=[2, 0])
    assert (chosen.layers, chosen.heads) == ((1,), (2, 0))
    assert torch.equal(chosen.weights[0, 0], record.weights[1, 2])
    assert torch.equal(chosen.weights[0, 1], record.weights[1, 0])
    for bad in ({"layers": 2}, {"heads": [0, 7]}, {"heads": []}):
        with pytest.raises(BadInput, match=r"no head|no layer|No head"):
            record.select(**bad)


def test_word_level_by_hand():
    attention = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.0, 0.5, 0.5, 0.0], [0.25] * 4])
    record = AttentionRecord.from_weights(
        attention, ["[CLS]", "play", "##ing", "[SEP]"], word_ids=[None, 0, 0, None], special=[True, False, False, True]
    )
    words = record.words()
    assert words.tokens == ("[CLS]", "playing", "[SEP]")
    expected = torch.tensor([[0.1, 0.5, 0.4], [0.2, 0.75, 0.05], [0.25, 0.5, 0.25]])
    torch.testing.assert_close(words.weights[0, 0], expected)
    assert words.readout.tolist() == [0.25, 0.5, 0.25]
    assert words.special == (True, False, True)
    assert words.queries is None


@given(data=st.data())
def test_words_keep_what_records_keep(records, data):
    record = AttentionRecord.from_weights(**data.draw(records))
    words = record.words()
    torch.testing.assert_close(words.weights.sum(-1), torch.ones(words.weights.shape[:-1]))
    assert words.readout.sum().item() == pytest.approx(1, abs=1e-5)
    assert sum(words.special) == sum(record.special)
    groups: dict[object, list[int]] = {}
    for position, (word, special) in enumerate(zip(record.word_ids, record.special, strict=True)):
        groups.setdefault(("alone", position) if special else word, []).append(position)
    naive = torch.stack(
        [
            torch.stack(
                [record.weights[:, :, row][..., list(column)].sum(-1).mean(-1) for column in groups.values()], -1
            )
            for row in groups.values()
        ],
        -2,
    )
    torch.testing.assert_close(words.weights, naive, atol=1e-6, rtol=0)
    again = words.words()
    torch.testing.assert_close(again.weights, words.weights)


@given(data=st.data())
def test_reprs_are_readable_and_escaped(records, data):
    record = AttentionRecord.from_weights(**data.draw(records))
    assert "AttentionRecord(" in repr(record)
    html = record._repr_html_()
    assert "<script>" not in html
    assert html.count("layer ") >= len(record.layers)


def test_words_of_weights_from_anywhere_are_told_by_their_markers():
    even = torch.full((1, 1, 4, 4), 0.25)
    pieces = AttentionRecord.from_weights(even, ["[CLS]", "play", "##ing", "[SEP]"])
    assert pieces.words().tokens == ("[CLS]", "playing", "[SEP]")
    assert AttentionRecord.from_weights(even, ["<s>", "▁play", "ing", "</s>"]).words().tokens == (
        "<s>",
        "playing",
        "</s>",
    )
    assert len(AttentionRecord.from_weights(even, ["a", "b", "c", "d"]).words().tokens) == 4
