"""Raw, rollout, flow, tracing and their kin against the slow reference written from the equations."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnscope
from attnscope import AttentionRecord, BadInput


def record_of(seed, layers=4, heads=2, tokens=5, temperature=4.0, causal=False, sparse=0.0, window=None, spread=True):
    """A random record: dense or causal, sparse, with a window, with a spread or a single read-out."""
    dice = torch.Generator().manual_seed(seed)
    scores = temperature * torch.randn(layers, heads, tokens, tokens, generator=dice)
    hidden = torch.rand(scores.shape, generator=dice) < sparse
    hidden &= ~torch.eye(tokens).bool()
    if causal:
        hidden |= torch.ones(tokens, tokens).triu(1).bool()
    if window is not None:
        hidden |= torch.ones(tokens, tokens).tril(-window).bool()
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    readout = torch.rand(tokens, generator=dice).softmax(0) if spread else torch.eye(tokens)[-1]
    return AttentionRecord.from_weights(
        weights, [f"t{number}" for number in range(tokens)], causal=causal, readout=readout
    )


RECORDS = {
    "dense": lambda: record_of(0),
    "peaked": lambda: record_of(1, temperature=12),
    "even": lambda: record_of(2, temperature=0),
    "sparse": lambda: record_of(3, sparse=0.6),
    "causal": lambda: record_of(4, causal=True),
    "causal, peaked": lambda: record_of(5, causal=True, temperature=12, layers=6),
    "causal, window": lambda: record_of(6, causal=True, window=2, tokens=6),
    "one source": lambda: record_of(7, spread=False),
    "one token": lambda: record_of(8, tokens=1),
    "one layer": lambda: record_of(9, layers=1),
}


@pytest.fixture(params=RECORDS)
def record(request):
    return RECORDS[request.param]()


@pytest.mark.parametrize("heads", ["mean", "max", 1, [0, 1]])
def test_raw(reference, record, heads):
    for layer in (0, -1):
        expected = reference.raw_scores(record.weights, record.readout, heads=heads, layer=layer)
        np.testing.assert_allclose(attnscope.raw(record, heads=heads, layer=layer).scores, expected, atol=1e-6)


@pytest.mark.parametrize("heads", ["mean", "max", 1])
@pytest.mark.parametrize("residual", [0.0, 0.3, 0.5, 1.0])
def test_rollout(reference, record, heads, residual):
    scores = attnscope.rollout(record, heads=heads, residual=residual)
    maps = reference.rollout_maps(record.weights, residual=residual, heads=heads)
    np.testing.assert_allclose(scores.map, maps, atol=1e-6)
    np.testing.assert_allclose(scores.scores, record.readout.numpy() @ maps[-1], atol=1e-6)
    np.testing.assert_allclose(
        attnscope.rollout(record, heads=heads, residual=residual).at(query=-1, layer=0), maps[0, -1], atol=1e-6
    )


def test_rollout_from_a_later_layer_and_of_some_queries(reference):
    record = record_of(0)
    maps = reference.rollout_maps(record.weights, start_layer=2)
    scores = attnscope.rollout(record, start_layer=2)
    np.testing.assert_allclose(scores.map, maps, atol=1e-6)
    np.testing.assert_allclose(scores.scores, record.readout.numpy() @ maps[-1], atol=1e-6)
    some = attnscope.rollout(record, queries=[0, -1])
    np.testing.assert_allclose(some.map[:, [0, 4]], reference.rollout_maps(record.weights)[:, [0, 4]], atol=1e-6)
    assert some.map[:, 1:4].isnan().all()


def test_per_head_rollout_averages_to_rollout(reference, record):
    scores = attnscope.rollout(record)
    per_head = reference.per_head_rollout(record.weights)
    np.testing.assert_allclose(scores.per_head, np.einsum("q,lhqk->lhk", record.readout, per_head), atol=1e-6)
    np.testing.assert_allclose(scores.per_head.mean(1), np.einsum("q,lqk->lk", record.readout, scores.map), atol=1e-6)


def test_flow_is_exact_against_two_solvers(reference, record):
    maps = reference.mixed(record.weights)
    scores = attnscope.flow(record)
    by_ortools, by_igraph = reference.flow_maps(maps, solver="ortools"), reference.flow_maps(maps, solver="igraph")
    np.testing.assert_allclose(scores.map, by_ortools, atol=1e-9, rtol=0)
    np.testing.assert_allclose(scores.map, by_igraph, atol=1e-9, rtol=0)
    np.testing.assert_allclose(scores.scores, record.readout.double().numpy() @ by_ortools[-1], atol=1e-9, rtol=0)
    for layer in range(len(maps)):
        np.testing.assert_allclose(
            attnscope.flow(record).at(query=0, layer=layer), by_ortools[layer, 0], atol=1e-9, rtol=0
        )


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**16),
    layers=st.integers(1, 7),
    tokens=st.integers(1, 8),
    temperature=st.sampled_from([0.5, 4, 12, 30]),
    causal=st.booleans(),
    sparse=st.sampled_from([0.0, 0.5, 0.9]),
    residual=st.sampled_from([0.0, 0.5, 0.05]),
)
def test_flow_is_exact_on_any_graph(reference, seed, layers, tokens, temperature, causal, sparse, residual):
    record = record_of(seed, layers, 1, tokens, temperature, causal, sparse)
    maps = reference.mixed(record.weights, residual=residual)
    table = attnscope.flow(record, residual=residual).map
    dice = np.random.default_rng(seed)
    for layer, query, key in zip(*(dice.integers(size, size=6) for size in table.shape), strict=True):
        assert table[layer, query, key].item() == pytest.approx(
            reference.flow_value_exact(maps, layer, query, key), abs=1e-9
        )


def test_many_cuts_are_not_trivial(reference):
    """The exactness above would mean little if every flow were its trivial cut."""
    record = record_of(5, causal=True, temperature=12, layers=6, tokens=8, heads=1)
    assert attnscope.flow(record).saturated[2:].max() < 0.7


def test_large_graphs_in_threads_equal_one_thread():
    record = record_of(11, layers=6, heads=3, tokens=48)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        together = attnscope.flow(record).map
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
        alone = attnscope.flow(record).map
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(together, alone)


def test_first_layer_of_rollout_and_flow_agree(record):
    np.testing.assert_allclose(attnscope.rollout(record).map[0], attnscope.flow(record).map[0], atol=1e-6)


def test_flow_of_some_layers_and_queries(reference):
    record = record_of(4, causal=True)
    scores = attnscope.flow(record, layers=[-1], queries=[2, 4])
    whole = attnscope.flow(record)
    assert torch.equal(scores.map[-1, [2, 4]], whole.map[-1, [2, 4]])
    assert scores.map[0].isnan().all()
    assert scores.map[-1, 3].isnan().all()
    assert scores.saturated[-1].isfinite()
    assert scores.saturated[0].isnan()


def test_saturation_is_the_share_at_the_trivial_cut(reference, record):
    scores = attnscope.flow(record)
    maps = reference.mixed(record.weights)
    for layer in range(len(maps)):
        at_source = at_token = either = pairs = 0
        for query in range(len(record.tokens)):
            for key in range(query + 1 if record.causal else len(record.tokens)):
                cut = reference.trivial_cut(maps, layer, query, key, record.causal)
                value = scores.map[layer, query, key].item()
                source, token = abs(value - cut[0]) < 1e-9, abs(value - cut[1]) < 1e-9
                at_source, at_token, either, pairs = (
                    at_source + source,
                    at_token + token,
                    either + (source or token),
                    pairs + 1,
                )
        found = (scores.saturation.source[layer], scores.saturation.token[layer], scores.saturated[layer])
        np.testing.assert_allclose(found, np.array([at_source, at_token, either]) / pairs, atol=1e-12)


def test_deep_dense_flow_warns_and_shallow_does_not():
    deep = attnscope.flow(record_of(0, layers=8))
    assert deep.saturated[-1] > 0.5
    assert "tell nothing of the way between" in deep.warnings[0]
    assert attnscope.flow(record_of(0, layers=1)).warnings == ()


def test_per_head_flow(reference):
    for causal in (False, True):
        record = record_of(12, layers=3, tokens=4, causal=causal)
        expected = np.einsum("q,lhqk->lhk", record.readout.double(), reference.per_head_flow(record.weights))
        np.testing.assert_allclose(attnscope.flow(record).per_head, expected, atol=1e-9, rtol=0)


def test_readout_as_a_layer_of_the_graph(reference, record):
    maps = reference.mixed(record.weights)
    expected = [
        reference.flow_with_readout_layer(maps, record.readout.double(), key) for key in range(len(record.tokens))
    ]
    np.testing.assert_allclose(attnscope.flow(record, readout="layer").scores, expected, atol=1e-9, rtol=0)


def test_minimum_cut(reference, record):
    maps = reference.mixed(record.weights)
    dice = np.random.default_rng(0)
    for layer, query, key in zip(*(dice.integers(size, size=5) for size in maps.shape), strict=True):
        cut = attnscope.minimum_cut(record, int(query), int(key), int(layer))
        assert sum(edge.capacity for edge in cut.edges) == pytest.approx(cut.flow, abs=1e-9)
        assert cut.flow == pytest.approx(reference.flow_value_exact(maps, layer, query, key), abs=1e-9)
        if cut.flow > 0:
            expected = reference.minimum_cut_nearest_source(maps, layer, query, key)
            found = {
                ((edge.layer + 1, edge.query), (edge.layer, edge.key)) for edge in cut.edges if edge.capacity > 1e-12
            }
            assert found == set(map(tuple, expected))


def test_layerwise_tracing_worked_by_hand():
    """Two layers and two heads, read three quarters from the first token; rows of the lower layer come first."""
    lower = [[[0.2, 0.8], [1.0, 0.0]], [[0.5, 0.5], [0.25, 0.75]]]
    upper = [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]]
    record = AttentionRecord.from_weights([lower, upper], ["dull", "film"], causal=False, readout=[0.75, 0.25])
    traced = attnscope.layerwise_tracing(record)
    # head 0: (.75 · 1 + .25 · .5, .25 · .5) = (.875, .125), then (.875 · .2 + .125 · 1, .875 · .8) = (.3, .7)
    assert traced.per_head[1, 0].tolist() == pytest.approx([0.875, 0.125])
    assert traced.per_head[0, 0].tolist() == pytest.approx([0.3, 0.7])
    # head 1: all to the second token, then its row below
    assert traced.per_head[1, 1].tolist() == pytest.approx([0, 1])
    assert traced.per_head[0, 1].tolist() == pytest.approx([0.25, 0.75])
    assert traced.scores.tolist() == pytest.approx([0.55, 1.45])


def test_layerwise_tracing(reference, record):
    scores = attnscope.layerwise_tracing(record)
    expected = reference.layerwise_tracing(record.weights, record.readout)
    np.testing.assert_allclose(scores.per_head, expected.per_head, atol=1e-6)
    np.testing.assert_allclose(scores.scores, expected.scores, atol=1e-6)
    np.testing.assert_allclose(scores.per_head.sum(-1), 1, atol=1e-5)
    assert scores.scores.sum().item() == pytest.approx(record.weights.shape[1], abs=1e-5)
    softened = attnscope.attribute(record, "lat", normalize="softmax")
    np.testing.assert_allclose(softened.scores, reference.softmax_over_tokens(expected.scores), atol=1e-6)


def with_vectors(record, width=3, seed=0):
    """The record with random values and gradients."""
    dice = torch.Generator().manual_seed(seed)
    layers, heads, _, keys = record.weights.shape
    # values after the output projection: many numbers, but no more directions than the head is wide
    values = torch.randn(layers, heads, keys, width, generator=dice) @ torch.randn(
        layers, heads, width, 7, generator=dice
    )
    gradients = torch.randn(record.weights.shape, generator=dice)
    return replace(record, values=values, attention_gradients=gradients)


@pytest.mark.parametrize("name", [name for name in RECORDS if name != "sparse"])  # zeros at random are no mask
def test_effective_attention(reference, name):
    record = with_vectors(RECORDS[name]())
    visible = None
    if record.causal:
        window = 2 if (record.weights.tril(-2) == 0).all() and len(record.tokens) > 2 else len(record.tokens)
        visible = torch.ones(len(record.tokens), len(record.tokens)).tril().triu(1 - window).bool().numpy()
    expected = reference.effective_weights(record.weights, record.values, visible=visible, tolerance=1e-5)
    scores = attnscope.effective(record)
    np.testing.assert_allclose(scores.map, expected.mean(1), atol=1e-5)
    np.testing.assert_allclose(scores.map.sum(-1), 1, atol=1e-6)
    rolled = attnscope.rollout(record, attention="effective")
    np.testing.assert_allclose(
        rolled.map, reference.roll(0.5 * expected.mean(1) + 0.5 * np.eye(len(record.tokens))), atol=1e-5
    )
    assert bool(scores.warnings) == (len(record.tokens) > 4)


def test_flow_of_effective_attention_clips_and_renormalises(reference):
    record = with_vectors(record_of(0, layers=3))
    effective = reference.effective_weights(record.weights, record.values, tolerance=1e-5)
    maps = reference.clipped_rows(0.5 * effective.mean(1) + 0.5 * np.eye(5))
    np.testing.assert_allclose(
        attnscope.flow(record, attention="effective").map, reference.flow_maps(maps), atol=1e-5, rtol=0
    )


def test_value_weighted_and_gradient_rollout(reference, record):
    record = with_vectors(record)
    carried = reference.value_weighted(record.weights, record.values)
    np.testing.assert_allclose(attnscope.value_weighted(record).map, carried.mean(1), atol=1e-5)
    rolled = reference.gradient_rollout(record.weights, record.attention_gradients)
    maps = rolled[0] if isinstance(rolled, tuple) else rolled
    found = attnscope.gradient_rollout(record)
    # what a token begins with on itself is set aside
    np.testing.assert_allclose(found.map + torch.eye(len(record.tokens)), maps, atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(found.scores, record.readout.double() @ found.map[-1], atol=1e-12)


@pytest.mark.parametrize("method", ["raw", "rollout", "flow"])
def test_receptive_field_of_even_attention_is_even(method):
    for window in (None, 3):
        record = record_of(0, temperature=0, causal=True, tokens=6, window=window, spread=False)
        scores = attnscope.attribute(record, method, normalize="receptive_field")
        field = scores.scores > 0
        np.testing.assert_allclose(scores.scores[field], 1 / int(field.sum()), atol=1e-6)
        for row, values in enumerate(scores.map[-1]):
            inside = values > 0
            assert inside[row]
            np.testing.assert_allclose(values[inside], 1 / int(inside.sum()), atol=1e-6)


@pytest.mark.parametrize("method", ["raw", "rollout", "flow"])
def test_receptive_field_divides_by_even_attention(method, record):
    plain = attnscope.attribute(record, method)
    scores = attnscope.attribute(record, method, normalize="receptive_field")
    reached = record.readout @ torch.ones_like(record.weights[0, 0])
    assert scores.scores.sum().item() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(scores.map.sum(-1), 1, atol=1e-6)
    assert ((scores.scores > 0) == (plain.scores > 0)).all()
    assert reached.isfinite().all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda record: attnscope.rollout(record, residual=1.5), "residual=1.5"),
        (lambda record: attnscope.rollout(record, start_layer=9), "no layer 9"),
        (lambda record: attnscope.rollout(record, queries=[9]), "no query 9"),
        (lambda record: attnscope.rollout(record, attention="imagined"), "weights"),
        (lambda record: attnscope.flow(record, queries=[-9]), "no query -9"),
        (lambda record: attnscope.flow(record, layers=[4]), "no layer 4"),
        (lambda record: attnscope.flow(record, readout="all"), "sources"),
        (lambda record: attnscope.flow(record, normalize="twice"), "receptive_field"),
        (lambda record: attnscope.flow(record).at(query=5), "no query 5"),
        (lambda record: attnscope.minimum_cut(record, 0, 9), "no key 9"),
        (lambda record: attnscope.layerwise_tracing(record, normalize="sum"), "softmax"),
        (attnscope.effective, "values=True"),
        (attnscope.value_weighted, "values=True"),
        (attnscope.gradient_rollout, "gradients=True"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(BadInput, match=sentence) as caught:
        call(record_of(0))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", [attnscope.rollout, attnscope.flow, attnscope.layerwise_tracing])
def test_cross_attention_cannot_be_joined(method):
    cross = AttentionRecord.from_weights(torch.full((2, 1, 2, 3), 1 / 3), ["a", "b"], key_tokens=["x", "y", "z"])
    with pytest.raises(BadInput, match="one text to another"):
        method(cross)
    assert attnscope.raw(cross).scores.tolist() == pytest.approx([1 / 3] * 3)


def test_scores_as_words_without_special_and_as_a_table():
    record = AttentionRecord.from_weights(
        torch.full((1, 1, 3, 3), 1 / 3), ["[CLS]", "play", "##ing"], word_ids=[None, 0, 0], special=[True, False, False]
    )
    scores = attnscope.rollout(record)
    assert scores.words().tokens == ("[CLS]", "playing")
    assert scores.words().scores.sum().item() == pytest.approx(1)
    assert scores.without_special().tokens == ("play", "##ing")
    assert list(scores.to_frame().columns) == ["token", "score", "word", "special"]
    assert "play" in scores.__rich__().plain


def test_a_decoder_that_leans_on_its_first_token_is_warned_of():
    weights = torch.tensor([[1.0, 0, 0], [0.98, 0.02, 0], [0.97, 0.01, 0.02]]).expand(6, 2, 3, 3)
    sink = AttentionRecord.from_weights(weights, ["a", "b", "c"])
    assert "first token takes" in attnscope.rollout(sink).warnings[0]
    assert "first token takes" in attnscope.layerwise_tracing(sink).warnings[0]
    assert attnscope.rollout(sink, normalize="receptive_field").warnings == ()
    assert attnscope.rollout(record_of(4, causal=True)).warnings == ()


@settings(max_examples=25)
@given(seed=st.integers(0, 2**16), masked=st.sets(st.integers(0, 4), max_size=3), causal=st.booleans())
def test_masked_queries_pass_on_only_their_residual(reference, seed, masked, causal):
    plain = record_of(seed, layers=4, causal=causal, sparse=0.3)
    weights = plain.weights.clone()
    weights[:, :, list(masked)] = 0
    record = AttentionRecord.from_weights(
        weights, plain.tokens, causal=causal, readout=plain.readout, masked_queries=[row in masked for row in range(5)]
    )
    maps = reference.mixed(weights)
    np.testing.assert_allclose(attnscope.rollout(record).map, reference.roll(maps), atol=1e-6)
    table = attnscope.flow(record).map
    dice = np.random.default_rng(seed)
    for layer, query, key in zip(*(dice.integers(size, size=8) for size in table.shape), strict=True):
        exact = reference.flow_value_exact(maps, layer, query, key)
        assert table[layer, query, key].item() == pytest.approx(exact, abs=1e-9)
    assert attnscope.layerwise_tracing(record).scores.isfinite().all()


@pytest.mark.parametrize("window", [None, 90, 20])
def test_effective_attention_of_a_long_text_is_the_naive_projection(reference, window):
    """More tokens than a head is wide, keys that repeat, every mask: a basis of singular vectors says the same."""
    dice = torch.Generator().manual_seed(3)
    tokens, width = 90, 8
    places = torch.arange(tokens)
    distance = places[:, None] - places
    visible = torch.ones(tokens, tokens).bool() if window is None else (distance >= 0) & (distance < window)
    weights = torch.randn(1, 2, tokens, tokens, generator=dice).masked_fill(~visible, -torch.inf).softmax(-1)
    values = torch.randn(1, 2, tokens, width, generator=dice) @ torch.randn(1, 2, width, 30, generator=dice)
    values[:, :, 3:7] = values[:, :, :1]
    record = replace(AttentionRecord.from_weights(weights, list(map(str, places.tolist()))), values=values)
    expected = reference.effective_weights(record.weights, values, visible=visible.numpy(), tolerance=1e-5)
    scores = attnscope.effective(record)
    np.testing.assert_allclose(scores.map, expected.mean(1), atol=1e-5)
    np.testing.assert_allclose(scores.scores, record.readout.double() @ scores.map[-1], atol=1e-9)
    np.testing.assert_allclose(scores.at(query=40), scores.map[-1, 40], atol=1e-9)
    assert np.abs(expected - record.weights.numpy()).max() > 0.01


def test_gradient_rollout_does_not_give_the_read_out_a_start():
    """Where no gradient speaks for anything, nothing is left, also not on the token that is read."""
    record = with_vectors(record_of(0, layers=2))
    silent = replace(record, attention_gradients=torch.full_like(record.attention_gradients, -1.0))
    assert attnscope.gradient_rollout(silent).scores.abs().max() == 0
