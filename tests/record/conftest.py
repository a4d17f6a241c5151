"""Random records for the laws they must keep."""

from typing import Any

import pytest
import torch
from hypothesis import strategies as st


@st.composite
def random_records(draw: st.DrawFn) -> dict[str, Any]:
    """What `from_weights` takes: dense or causal, sparse or even, with sinks, with words of several tokens."""
    layers, heads, tokens = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 8))
    causal = draw(st.booleans())
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**20)))
    temperature = draw(st.sampled_from([0.0, 1.0, 8.0, 40.0]))
    scores = temperature * torch.randn(layers, heads, tokens, tokens, generator=generator)
    if draw(st.booleans()):
        scores[..., 0] += 8
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -torch.inf)
    lengths = draw(st.lists(st.integers(1, 3), min_size=tokens, max_size=tokens))
    word_ids = [word for word, length in enumerate(lengths) for _ in range(length)][:tokens]
    special = [draw(st.booleans()) for _ in range(tokens)]
    # made into a record by the test: run-time type checks draw random numbers, which a strategy must not
    return dict(
        attentions=scores.softmax(-1),
        tokens=[draw(st.sampled_from(["a", "##b", "Ġc", "▁d", "<script>", "é", "你"])) for _ in range(tokens)],
        causal=causal,
        readout=torch.rand(tokens, generator=generator).add(1e-3).softmax(0),
        word_ids=word_ids,
        special=special,
    )


@pytest.fixture(scope="session")
def records() -> st.SearchStrategy[dict[str, Any]]:
    """The strategy above, for tests in files of their own."""
    return random_records()
