"""The reference itself, on examples small enough to work out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

for_flow = pytest.mark.usefixtures("flow_libraries")

# Two layers, two tokens, no residual left to mix in: A_1 below, A_2 above.
TWO = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]])

# Three layers, two tokens. Only (1, 1) leads to token 0 and only (1, 0) to token 1, each with capacity 1.
THREE = np.array([[[0, 1], [1, 0]], [[0.9, 0.1], [0.8, 0.2]], [[0.5, 0.5], [0.5, 0.5]]])

# Two causal layers, three tokens.
CAUSAL = np.array([[[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]], [[1, 0, 0], [0.6, 0.4, 0], [0.1, 0.7, 0.2]]])


@pytest.fixture(scope="module")
def flow_libraries():
    for name in ("networkx", "igraph", "ortools"):
        pytest.importorskip(name)


def random_weights(layers, heads, tokens, seed, causal=False, sharpness=3.0):
    logits = np.random.default_rng(seed).normal(scale=sharpness, size=(layers, heads, tokens, tokens))
    if causal:
        logits = np.where(np.tri(tokens, dtype=bool), logits, -np.inf)
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def close(first, second, tolerance=1e-12):
    return np.allclose(first, second, rtol=0, atol=tolerance)


# ---- heads, raw, residual

# One layer, two heads, two tokens.
HEADS = np.array([[[[1, 0], [0.5, 0.5]], [[0.5, 0.5], [0.25, 0.75]]]])


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ("mean", [[0.75, 0.25], [0.375, 0.625]]),
        ("max", [[1 / 1.5, 0.5 / 1.5], [0.5 / 1.25, 0.75 / 1.25]]),  # the maxima are 1, .5 and .5, .75
        (1, [[0.5, 0.5], [0.25, 0.75]]),
        ([0, 0, 1], [[2.5 / 3, 0.5 / 3], [1.25 / 3, 1.75 / 3]]),
    ],
)
def test_heads_are_pooled(reference, heads, expected):
    assert close(reference.pooled(HEADS, heads)[0], expected)
    assert close(reference.mixed(HEADS, 0.5, heads)[0], 0.5 * np.array(expected) + 0.5 * np.eye(2))


def test_raw_is_the_read_out_times_one_layer(reference):
    # 0.5 x (0.75, 0.25) + 0.5 x (0.375, 0.625)
    assert close(reference.raw_scores(HEADS, [0.5, 0.5]), [0.5625, 0.4375])
    assert close(reference.raw_scores(HEADS, [1, 0], "max"), [1, 0.5])
    assert close(reference.raw_scores(TWO[:, None], [0, 1], layer=0), [0.4, 0.6])


def test_a_residual_of_a_fifth(reference):
    # 0.8 x 0.75 + 0.2 = 0.8, 0.8 x 0.25 = 0.2; 0.8 x 0.375 = 0.3, 0.8 x 0.625 + 0.2 = 0.7
    assert close(reference.mixed(HEADS, 0.2)[0], [[0.8, 0.2], [0.3, 0.7]])


# ---- rollout


def test_rollout_of_two_layers(reference):
    # row 0: 0.7 x (0.9, 0.1) + 0.3 x (0.4, 0.6) = (0.75, 0.25); row 1: 0.2 x (...) + 0.8 x (...) = (0.5, 0.5)
    maps = reference.rollout_maps(TWO[:, None], residual=0)
    assert close(maps[0], TWO[0])
    assert close(maps[1], [[0.75, 0.25], [0.5, 0.5]])
    assert close(reference.rollout_scores(TWO[:, None], [0.5, 0.5], residual=0), [0.625, 0.375])


def test_rollout_of_two_layers_with_residual(reference):
    # A_1 = ((0.95, 0.05), (0.2, 0.8)), A_2 = ((0.85, 0.15), (0.1, 0.9))
    # row 0: 0.85 x (0.95, 0.05) + 0.15 x (0.2, 0.8) = (0.8375, 0.1625); row 1: (0.275, 0.725)
    assert close(reference.rollout_maps(TWO[:, None])[1], [[0.8375, 0.1625], [0.275, 0.725]])


def test_layers_below_the_start_are_left_out(reference):
    maps = reference.rollout_maps(TWO[:, None], residual=0, start_layer=1)
    assert close(maps[0], np.eye(2))
    assert close(maps[1], TWO[1])


def test_rollout_of_one_head(reference):
    # Below, pooled, without residual: HEADS' mean M. Head 0 on top: (1, 0) takes row 0 of M, (.5, .5) its rows' mean.
    weights = np.concatenate([HEADS, HEADS])
    per_head = reference.per_head_rollout(weights, residual=0)
    assert close(per_head[1, 0], [[0.75, 0.25], [0.5625, 0.4375]])


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 0.5]), st.booleans())
def test_the_mean_of_per_head_rollout_is_rollout(reference, seed, residual, causal):
    weights = random_weights(3, 4, 5, seed, causal)
    rollout = reference.rollout_maps(weights, residual)
    assert close(reference.per_head_rollout(weights, residual).mean(1), rollout)
    assert close(rollout.sum(-1), 1)


# ---- flow


@for_flow
@pytest.mark.parametrize("solver", ["networkx", "ortools", "igraph"])
def test_flow_of_two_layers(reference, solver):
    # With two layers the paths share no edge: the flow is the sum over the middle of min(A_2[i, m], A_1[m, j]).
    # 0 to 0: min(.7, .9) + min(.3, .4) = 1;  0 to 1: min(.7, .1) + min(.3, .6) = .4
    # 1 to 0: min(.2, .9) + min(.8, .4) = .6; 1 to 1: min(.2, .1) + min(.8, .6) = .7
    flows = reference.flow_maps(TWO, solver)
    assert close(flows[0], TWO[0])
    assert close(flows[1], [[1, 0.4], [0.6, 0.7]])


@for_flow
def test_flow_of_three_layers_is_held_back_in_the_middle(reference):
    # To token 0 everything must enter (1, 1): 0.1 + 0.2. To token 1: all that leaves the source, 0.5 + 0.5.
    for value in (reference.flow_value, reference.flow_value_exact, reference.flow_value_igraph):
        assert close(value(THREE, 2, 0, 0), 0.3)
        assert close(value(THREE, 2, 0, 1), 1)
        assert close(value(THREE, -1, 0, 0), 0.3)


@for_flow
def test_the_minimum_cut_is_the_one_nearest_the_source(reference):
    assert reference.minimum_cut_nearest_source(THREE, 2, 0, 0) == [((2, 0), (1, 1)), ((2, 1), (1, 1))]
    # For token 1 the two edges of the source (0.5 + 0.5) and the edge of the token (1) are both minimum cuts.
    assert reference.minimum_cut_nearest_source(THREE, 2, 0, 1) == [((3, 0), (2, 0)), ((3, 0), (2, 1))]
    # Two layers, 0 to 1: through (1, 0) the lower edge is the narrow one (.1), through (1, 1) the upper (.3).
    assert reference.minimum_cut_nearest_source(TWO, 1, 0, 1) == [((1, 0), (0, 1)), ((2, 0), (1, 1))]


@for_flow
def test_a_token_out_of_reach_gets_nothing(reference):
    assert reference.minimum_cut_nearest_source(CAUSAL, 1, 0, 2) == []
    for value in (reference.flow_value, reference.flow_value_exact, reference.flow_value_igraph):
        assert value(CAUSAL, 1, 0, 2) == 0
        assert value(np.zeros((2, 3, 3)), 1, 0, 2) == 0


@for_flow
def test_trivial_cuts(reference):
    # Query 2, token 1, dense: the whole row, and 0 + .5 + .3. Causal: .7 + .2, and .5 + .3.
    # The flow is neither: min(.7, .5) + min(.2, .3) = .7.
    assert close(reference.trivial_cut(CAUSAL, 1, 2, 1, causal=False), (1, 0.8))
    assert close(reference.trivial_cut(CAUSAL, 1, 2, 1, causal=True), (0.9, 0.8))
    assert close(reference.flow_value_exact(CAUSAL, 1, 2, 1), 0.7)
    # Query 2, token 2: (2, 2) to (1, 2) alone, and (1, 2) to (0, 2) alone; the source holds it back.
    assert close(reference.trivial_cut(CAUSAL, 1, 2, 2, causal=True), (0.2, 0.5))
    assert close(reference.flow_value_exact(CAUSAL, 1, 2, 2), 0.2)
    # Dense: for token 0 the sums are 1 and 1, yet the middle lets through only .3.
    assert close(reference.trivial_cut(THREE, 2, 0, 0, causal=False), (1, 1))


@for_flow
def test_a_spread_read_out(reference):
    # Averaged: 0.5 x (1, .4) + 0.5 x (.6, .7) = (.8, .55). As one more layer, to token 0: .5 to each of (2, 0), (2, 1);
    # from there to (1, 0) up to .7 and .2, to (1, 1) up to .3 and .8; out of (1, 0) .9, out of (1, 1) .4.
    # What can enter the token is .9 + .4, what can leave the source 1. (2, 1) puts .2 on (1, 0) and .3 on (1, 1),
    # (2, 0) puts .5 on (1, 0): (1, 0) carries .7 and (1, 1) .3, within .9 and .4. So 1. To token 1: .1 + .6 = .7.
    assert close(reference.flow_scores(TWO, [0.5, 0.5]), [0.8, 0.55])
    assert close(reference.flow_scores(TWO, [0.5, 0.5], normalize=True), [0.8 / 1.35, 0.55 / 1.35])
    assert close([reference.flow_with_readout_layer(TWO, [0.5, 0.5], key) for key in (0, 1)], [1, 0.7])
    assert close([reference.flow_with_readout_layer(TWO, [0, 1], key) for key in (0, 1)], [0.6, 0.7])


@for_flow
def test_flow_of_one_head(reference):
    # HEADS twice, no residual. Head 0 on top, query 1 (.5, .5), below the mean ((.75, .25), (.375, .625)):
    # to token 0: min(.5, .75) + min(.5, .375) = .875; to token 1: min(.5, .25) + min(.5, .625) = .75
    weights = np.concatenate([HEADS, HEADS])
    per_head = reference.per_head_flow(weights, residual=0)
    assert close(per_head[0], HEADS[0])
    assert close(per_head[1, 0, 1], [0.875, 0.75])


@for_flow
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_flow_keeps_its_laws(reference, seed, causal):
    weights = random_weights(4, 2, 5, seed, causal)
    maps = reference.mixed(weights, 0.2)
    flows = reference.flow_maps(maps)
    assert close(flows, reference.flow_maps(maps, "networkx"), 1e-11)
    assert close(flows, reference.flow_maps(maps, "igraph"), 1e-10)
    rollout = reference.rollout_maps(weights, 0.2)
    assert close(flows[0], rollout[0])
    assert (flows >= rollout - 1e-12).all()  # rollout is a flow within the capacities
    assert (reference.per_head_flow(weights, 0.2).mean(1) <= flows + 1e-12).all()  # a maximum flow is concave
    between = 0
    for layer, query, key in np.ndindex(flows.shape):
        cut = reference.minimum_cut_nearest_source(maps, layer, query, key)
        capacity = sum(maps[start[0] - 1][start[1], end[1]] for start, end in cut)
        assert close(capacity, flows[layer, query, key], 1e-10)
        smaller = min(reference.trivial_cut(maps, layer, query, key, causal))
        if not causal or key <= query:
            assert flows[layer, query, key] <= smaller + 1e-12
            between += layer > 0 and flows[layer, query, key] < smaller - 1e-6
    assert between > 0  # some cuts are not trivial, or these examples show nothing


# ---- layer-wise attention tracing


def test_tracing_of_two_layers(reference):
    # Head 0 is TWO. From (.5, .5): layer 1 gives .5 x (.7, .3) + .5 x (.2, .8) = (.45, .55);
    # layer 0 gives .45 x (.9, .1) + .55 x (.4, .6) = (.625, .375). Head 1 looks at token 1 alone: (0, 1) and (0, 1).
    to_the_second = np.array([[0.0, 1], [0, 1]])
    weights = np.stack([TWO, np.stack([to_the_second, to_the_second])], axis=1)
    tracing = reference.layerwise_tracing(weights, [0.5, 0.5])
    assert close(tracing.per_head[1], [[0.45, 0.55], [0, 1]])
    assert close(tracing.per_head[0], [[0.625, 0.375], [0, 1]])
    assert close(tracing.scores, [0.625, 1.375])
    # e^.625 / (e^.625 + e^1.375) = 1 / (1 + e^.75)
    assert close(reference.softmax_over_tokens(tracing.scores)[0], 1 / (1 + math.exp(0.75)))


@given(st.integers(0, 10**6), st.booleans())
def test_tracing_loses_no_mass_and_is_rollout_for_one_head(reference, seed, causal):
    weights = random_weights(3, 2, 4, seed, causal)
    readout = np.random.default_rng(seed).dirichlet(np.ones(4))
    tracing = reference.layerwise_tracing(weights, readout)
    assert close(tracing.per_head.sum(-1), 1)
    assert close(tracing.scores.sum(), 2)
    alone = reference.layerwise_tracing(weights[:, :1], readout)
    assert close(alone.scores, reference.rollout_scores(weights[:, :1], readout, residual=0))


# ---- effective, by value, by gradient


def test_effective_attention_of_three_tokens(reference):
    # Tokens 0 and 1 have the same value: what they get can be exchanged. (.6, .2) becomes (.4, .4).
    values = np.array([[[[0.0], [0], [1]]]])
    weights = np.array([[[[0.6, 0.2, 0.2], [0.1, 0.5, 0.4], [0, 0, 1]]]])
    assert close(reference.effective_weights(weights, values)[0, 0], [[0.4, 0.4, 0.2], [0.3, 0.3, 0.4], [0, 0, 1]])
    # Values 0, 1, 2: the null space is (1, -2, 1) / sqrt 6. Of (1, 0, 0) the part (1, -2, 1) / 6 goes.
    values = np.array([[[[0.0], [1], [2]]]])
    rows = reference.effective_weights(np.eye(3)[None, None], values)[0, 0]
    assert close(rows[0], [5 / 6, 1 / 3, -1 / 6])
    assert close(reference.clipped_rows(rows)[0], [5 / 7, 2 / 7, 0])
    # Causal: two visible tokens with values 0 and 1 leave no null space, so only the last row changes.
    causal = np.array([[[[1, 0, 0], [0.5, 0.5, 0], [1, 0, 0]]]])
    rows = reference.effective_weights(causal, values, visible=np.tri(3, dtype=bool))[0, 0]
    assert close(rows, [[1, 0, 0], [0.5, 0.5, 0], [5 / 6, 1 / 3, -1 / 6]])


@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([np.float64, np.float32]))
def test_effective_attention_changes_neither_output_nor_sum(reference, seed, causal, kind):
    # Head width 2, model width 6, 7 tokens: the null space has 7 - 3 dimensions, seen through the noise of float32 too.
    generator = np.random.default_rng(seed)
    weights = random_weights(2, 2, 7, seed, causal)
    values = (generator.normal(size=(2, 2, 7, 2)) @ generator.normal(size=(2, 2, 2, 6))).astype(kind)
    visible = np.tri(7, dtype=bool) if causal else None
    effective = reference.effective_weights(weights, values, visible)
    tolerance = 1e-10 if kind is np.float64 else 1e-3
    assert close(effective @ values.astype(float), weights @ values.astype(float), tolerance)
    assert close(effective.sum(-1), 1, tolerance)
    assert close(reference.effective_weights(effective, values, visible), effective, tolerance)
    assert not close(effective, weights, 1e-6)
    if causal:
        assert close(effective[..., ~visible], 0)


def test_attention_times_the_length_of_the_value(reference):
    # Values (3, 4) and (0, 2): lengths 5 and 2. Two heads with opposite values cancel when added before the norm.
    weights = np.array([[[[0.5, 0.5], [0.2, 0.8]]]])
    values = np.array([[[[3.0, 4], [0, 2]]]])
    assert close(reference.value_weighted(weights, values)[0, 0], [[2.5, 1], [1, 1.6]])
    assert close(reference.value_weighted_rows(weights, values)[0, 0], [[2.5 / 3.5, 1 / 3.5], [1 / 2.6, 1.6 / 2.6]])
    twice, opposite = np.concatenate([weights, weights], axis=1), np.concatenate([values, -values], axis=1)
    assert close(reference.value_weighted_layer(weights, values)[0], [[2.5, 1], [1, 1.6]])
    assert close(reference.value_weighted_layer(twice, opposite), 0)


def test_gradient_rollout_of_two_layers(reference):
    # Gradient times attention: ((1, -.5), (1, 0)), positive part M = ((1, 0), (1, 0)), in both layers.
    # I + M = ((2, 0), (1, 1)), squared ((4, 0), (3, 1)). Rows to one: ((1, 0), (.5, .5)), squared ((1, 0), (.75, .25)).
    # M' = M, as its rows sum to one, so (M + I) / 2 squared is a quarter of the first.
    weights = np.array([[[[0.5, 0.5], [0.25, 0.75]]]] * 2)
    gradients = np.array([[[[2.0, -1], [4, 0]]]] * 2)
    result = reference.gradient_rollout(weights, gradients)
    assert close(result.chefer[0], [[2, 0], [1, 1]])
    assert close(result.chefer[1], [[4, 0], [3, 1]])
    assert close(result.chefer_rows[1], [[1, 0], [0.75, 0.25]])
    assert close(result.residual[1], [[1, 0], [0.75, 0.25]])
    assert close(result.residual_rows[1], [[1, 0], [0.75, 0.25]])
    # The positive part is taken per head: a second head with the opposite sign leaves half of M, not nothing.
    both = reference.gradient_weighted(weights.repeat(2, axis=1), np.concatenate([gradients, -gradients], axis=1))
    assert close(both[0], [[0.5, 0.25], [0.5, 0]])


# ---- the receptive field


@for_flow
@pytest.mark.parametrize("window", [4, 2])
@pytest.mark.parametrize("method", ["raw", "rollout", "flow"])
def test_uniform_attention_has_a_uniform_field(reference, window, method):
    maps = {
        "raw": lambda weights: reference.pooled(weights)[-1],
        "rollout": lambda weights: reference.rollout_maps(weights, 0.3)[-1],
        "flow": lambda weights: reference.flow_maps(reference.mixed(weights, 0.3))[-1],
    }
    visible = np.tri(4, dtype=bool) & ~np.tri(4, k=-window, dtype=bool)
    weights = reference.uniform_attention([visible, visible], heads=2)
    result = reference.receptive_field(weights, [0, 0, 0, 1], maps[method])
    # Two layers of a window of two reach three tokens back; of one layer (raw) two.
    reach = min(4, window if method == "raw" else 2 * window - 1)
    assert close(result.scores, [0] * (4 - reach) + [1 / reach] * reach)
    assert close(result.map[3], result.scores)
    assert close(result.map[0], [1, 0, 0, 0])


def test_the_receptive_field_of_two_tokens(reference):
    # Raw, one layer: rows (1, 0), (.8, .2); reference (1, 0), (.5, .5).
    # Row 1: .8/.5, .2/.5 = 1.6, .4, to one: .8, .2. Read-out (.5, .5): (.9, .1) / (.75, .25) = 1.2, .4: .75, .25.
    weights = np.array([[[[1, 0], [0.8, 0.2]]]])
    result = reference.receptive_field(weights, [0.5, 0.5], lambda weights: reference.pooled(weights)[-1])
    assert close(result.map, [[1, 0], [0.8, 0.2]])
    assert close(result.scores, [0.75, 0.25])


# ---- agreement, faithfulness


def test_ranks_share_ties_and_rounding_keeps_them(reference):
    assert reference.ranks([3, 1, 3, 2]).tolist() == [3.5, 1, 3.5, 2]
    assert reference.ranks([0.3, 0.1 + 0.2]).tolist() == [1.5, 1.5]
    assert reference.ranks([0.3, 0.1 + 0.2], digits=None).tolist() == [1, 2]


def test_spearman_and_kendall(reference):
    # Ranks 1 2 3 and 1 3 2: 1 - 6 x 2 / (3 x 8) = .5; of three pairs two agree: (2 - 1) / 3.
    assert close(reference.spearman([1, 2, 3], [10, 30, 20]), 0.5)
    assert close(reference.kendall([1, 2, 3], [10, 30, 20]), 1 / 3)
    # Ranks 1.5 1.5 3 and 1 2 3, less 2: (-.5, -.5, 1) and (-1, 0, 1): 1.5 / sqrt(1.5 x 2). Pairs: 2 / sqrt(2 x 3).
    assert close(reference.spearman([0, 0, 1], [1, 2, 3]), 1.5 / math.sqrt(3))
    assert close(reference.kendall([0, 0, 1], [1, 2, 3]), 2 / math.sqrt(6))
    assert math.isnan(reference.spearman([1, 1], [1, 2]))
    assert math.isnan(reference.kendall([1, 1], [1, 2]))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9))
def test_spearman_and_kendall_are_those_of_scipy(reference, pairs):
    from scipy import stats

    first, second = zip(*pairs, strict=True)
    if len(set(first)) > 1 and len(set(second)) > 1:
        assert close(reference.spearman(first, second), stats.spearmanr(first, second).statistic)
        assert close(reference.kendall(first, second), stats.kendalltau(first, second).statistic)


def test_comprehensiveness_and_sufficiency(reference):
    share = {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1, "?": 0.05}

    def probability(tokens):
        return sum(share[token] for token in tokens)

    tokens, scores = list("dabc"), [1, 4, 3, 2]
    # A quarter removes a (.4), a half a and b (.7): mean .55. Alone they leave 1 - .4 and 1 - .7: mean .45.
    assert close(reference.aopc_comprehensiveness(probability, tokens, scores, [0.25, 0.5]), 0.55)
    assert close(reference.aopc_sufficiency(probability, tokens, scores, [0.25, 0.5]), 0.45)
    # Replaced by "?": .4 - .05 and .7 - .1: mean .475; alone, three and two others are "?": .6 - .15, .3 - .1.
    assert close(reference.aopc_comprehensiveness(probability, tokens, scores, [0.25, 0.5], "?"), 0.475)
    assert close(reference.aopc_sufficiency(probability, tokens, scores, [0.25, 0.5], "?"), 0.325)
    # A share that is no whole number of tokens is rounded up, and equal scores go from left to right.
    assert reference.best_positions([1, 2, 2, 1], 0.3) == [1, 2]
    assert reference.best_positions([1, 2, 2, 1], 0.25) == [1]
