"""Bounds of flow: what networkx finds lies between them, whatever the text, and they are labelled for what they are."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnscope
from attnscope.attribution import flow_bounds
from attnscope.attribution.flow_bounds import bounds_from
from attnscope.errors import BadInput
from attnscope.record import VectorRecord
from attnscope.record.vectors import LayerVectors, normalizers_of


def made(tokens, layers=3, heads=2, causal=True, back=None, sharpness=2.0, seed=0, readout=None):
    """A record of random vectors."""
    draw = torch.Generator().manual_seed(seed)
    queries, keys = torch.randn(2, layers, heads, tokens, 4, generator=draw) * sharpness
    ahead = 0 if causal else None
    normalizers = torch.stack(
        [
            normalizers_of(LayerVectors(one, other, torch.zeros(heads, tokens), 1.0, None, back, ahead))
            for one, other in zip(queries, keys, strict=True)
        ]
    )
    names = tuple(map(str, range(tokens)))
    return VectorRecord(
        queries=queries,
        group_keys=keys,
        normalizers=normalizers,
        scaling=(1.0,) * layers,
        back=(back,) * layers,
        ahead=(ahead,) * layers,
        query_tokens=names,
        key_tokens=names,
        stack="decoder" if causal else "encoder",
        causal=causal,
        readout=torch.eye(tokens)[-1] if readout is None else readout,
    )


@settings(max_examples=40)
@given(
    tokens=st.integers(1, 9),
    layers=st.integers(1, 4),
    causal=st.booleans(),
    back=st.none() | st.integers(0, 4),
    sharpness=st.sampled_from([0.1, 1.0, 4.0]),
    residual=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    heads=st.sampled_from(["mean", 0, [1, 0]]),
    kept=st.integers(1, 9),
    neighbours=st.integers(1, 4),
    seed=st.integers(0, 99),
    place=st.integers(0, 8),
)
def test_what_networkx_finds_lies_between(
    reference, tokens, layers, causal, back, sharpness, residual, heads, kept, neighbours, seed, place
):
    record = made(tokens, layers, 2, causal, back, sharpness, seed)
    source = place % tokens
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow_bounds, "NEIGHBOURS", neighbours)
        lower, upper = bounds_from(record, source, heads, residual, kept)
    chosen = {"mean": [0, 1], 0: [0]}.get(heads if isinstance(heads, (str, int)) else "mean")
    maps = record.full().weights.double()[:, chosen].mean(1)
    graph = reference.layered_graph((1 - residual) * maps + residual * torch.eye(tokens))
    for token in range(tokens):
        exact = reference.maximum_flow_networkx(graph, (layers, source), (0, token))
        assert float(lower[token]) <= exact <= float(upper[token])
        if kept >= tokens:  # all arcs are kept
            assert float(lower[token]) == pytest.approx(exact, abs=2 * flow_bounds.ROUNDING)


def test_bounds_are_worth_something():
    """On attention like that of models, near and heavy tokens are settled, and no bound is one that says nothing."""
    record = made(60, layers=4, sharpness=1.5)
    exact = attnscope.flow(record.full()).scores
    lower, upper = bounds_from(record, 59, "mean", 0.5, 30)
    assert (exact - lower < 2 * flow_bounds.ROUNDING).float().mean() > 0.3
    assert (upper - exact).median() < 0.04
    assert (lower - attnscope.rollout(record).scores > 1e-3).float().mean() > 0.9
    assert bool((lower <= exact).all() and (exact <= upper).all())


def test_small_records_have_exact_flows_and_large_ones_labelled_bounds(monkeypatch):
    record = made(12)
    exact = attnscope.flow(record.full(), queries=[3])
    ours = attnscope.flow(record, queries=[3])
    torch.testing.assert_close(ours.scores, exact.scores)
    torch.testing.assert_close(ours.map, exact.map, equal_nan=True)
    assert ours.upper is None
    monkeypatch.setattr(flow_bounds, "MOST_EDGES", 3 * 12 * 12 - 1)
    monkeypatch.setattr(flow_bounds, "KEPT", 3)
    bounded = attnscope.flow(record)
    assert bounded.upper is not None
    assert bool((bounded.scores <= exact.scores).all() and (exact.scores <= bounded.upper).all())
    assert "these are bounds, not flows: the graph has 432 edges" in bounded.warnings[0]
    assert "these are bounds" in repr(bounded)
    assert list(bounded.to_frame()) == ["token", "score", "upper", "word", "special"]
    for merged in (bounded.words(), bounded.without_special()):
        assert bool((merged.upper >= merged.scores).all())
    with pytest.raises(BadInput, match="it has no map"):
        bounded.at(3)


def test_a_read_out_of_several_positions_averages_bounds(monkeypatch):
    monkeypatch.setattr(flow_bounds, "MOST_EDGES", 1)
    readout = torch.tensor([0.0, 0.25, 0.0, 0.75, 0.0, 0.0])
    record = made(6, causal=False, readout=readout)
    bounded, exact = attnscope.flow(record), attnscope.flow(record.full()).scores
    assert bool((bounded.scores <= exact).all() and (exact <= bounded.upper).all())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"heads": "max"}, r'no bounds for heads="max": use rollout, which is exact here'),
        ({"queries": [1]}, r"432 edges, .* kB of weights\) takes no queries= here: leave it out, use rollout"),
        ({"readout": "layer"}, "takes no readout="),
        ({"attention": "effective", "normalize": "receptive_field"}, "takes no attention="),
        ({"residual": 2.0}, "residual=2.0"),
    ],
)
def test_what_has_no_bounds_is_refused_and_names_rollout(options, said, monkeypatch):
    monkeypatch.setattr(flow_bounds, "MOST_EDGES", 1)
    with pytest.raises(BadInput, match=said):
        attnscope.flow(made(12), **options)


def test_a_mean_over_all_tokens_is_refused(monkeypatch):
    monkeypatch.setattr(flow_bounds, "MOST_EDGES", 1)
    with pytest.raises(BadInput, match="a read-out of 12 positions"):
        attnscope.flow(made(12, causal=False, readout=torch.full((12,), 1 / 12)))
