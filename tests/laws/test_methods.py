"""What every method that needs only the record must keep, whatever it computes."""

import dataclasses
import inspect

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnscope import METHODS, AttentionRecord
from attnscope.record import Target

PURE = {name: method for name, method in METHODS.items() if "model" not in inspect.signature(method).parameters}


def random_record(seed, layers, heads, tokens, causal, temperature):
    """A record with everything a pure method may ask for."""
    dice = torch.Generator().manual_seed(seed)
    scores = temperature * torch.randn(layers, heads, tokens, tokens, generator=dice)
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -torch.inf)
    record = AttentionRecord.from_weights(
        scores.softmax(-1),
        [f"t{number}" for number in range(tokens)],
        causal=causal,
        readout=torch.rand(tokens, generator=dice).softmax(0),
    )
    return dataclasses.replace(
        record,
        values=torch.randn(layers, heads, tokens, 5, generator=dice),
        embeddings=torch.randn(tokens, 6, generator=dice),
        embedding_gradients=torch.randn(tokens, 6, generator=dice),
        attention_gradients=torch.randn(layers, heads, tokens, tokens, generator=dice),
        target=Target("yes", 1, "logit"),
    )


def permuted(record, order):
    """The same record with its tokens, and so its read-out, in another order."""
    return dataclasses.replace(
        record,
        weights=record.weights[:, :, order][..., order],
        attention_gradients=record.attention_gradients[:, :, order][..., order],
        values=record.values[:, :, order],
        embeddings=record.embeddings[order],
        embedding_gradients=record.embedding_gradients[order],
        readout=record.readout[order],
        query_tokens=tuple(record.query_tokens[position] for position in order),
        key_tokens=tuple(record.key_tokens[position] for position in order),
    )


RANDOM = {
    "seed": st.integers(0, 2**16),
    "layers": st.integers(1, 4),
    "heads": st.integers(1, 3),
    "tokens": st.integers(1, 6),
    "temperature": st.sampled_from([0.0, 1.0, 6.0]),
}


@pytest.mark.parametrize("name", PURE)
@settings(max_examples=15)
@given(causal=st.booleans(), **RANDOM)
def test_shape_and_finite(name, causal, seed, layers, heads, tokens, temperature):
    record = random_record(seed, layers, heads, tokens, causal, temperature)
    scores = PURE[name](record)
    assert scores.scores.shape == (tokens,)
    assert scores.scores.isfinite().all()
    assert scores.tokens == record.key_tokens
    if scores.compute_map is not None:
        assert scores.map.shape == (layers, tokens, tokens)
        assert scores.map.isfinite().all()
        torch.testing.assert_close(
            scores.scores.double(), record.readout.double() @ scores.map[-1].double(), atol=1e-5, rtol=1e-5
        )
        row = PURE[name](record).at(query=-1, layer=0)
        torch.testing.assert_close(row.double(), scores.map[0, -1].double(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", PURE)
@settings(max_examples=15)
@given(order=st.randoms(use_true_random=False), **RANDOM)
def test_a_permutation_of_tokens_permutes_the_scores(name, order, seed, layers, heads, tokens, temperature):
    record = random_record(seed, layers, heads, tokens, False, temperature)
    positions = list(range(tokens))
    order.shuffle(positions)
    before, after = PURE[name](record).scores, PURE[name](permuted(record, positions)).scores
    torch.testing.assert_close(after, before[positions], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in PURE if PURE[name](random_record(0, 2, 1, 3, True, 1)).compute_map])
@settings(max_examples=15)
@given(**RANDOM)
def test_causal_never_looks_ahead(name, seed, layers, heads, tokens, temperature):
    record = random_record(seed, layers, heads, tokens, True, temperature)
    assert PURE[name](record).map.triu(1).abs().max() <= 1e-12
