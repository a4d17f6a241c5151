"""The flow view: its numbers are those of the methods, its budget and its printed figure."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import attnscope
from attnscope import AttentionRecord
from attnscope.errors import BadInput
from attnscope.views import VIEWS, flow
from attnscope.views.flow_figure import Panel
from attnscope.views.flow_scene import passing_between, passing_mass, reachable_edges
from attnscope.views.printing import file_bytes
from attnscope.views.weights import inflate

TOKENS = ["[CLS]", "the", "un", "##believ", "##able", "key", "<b>", "[SEP]"]
SPECIAL = [True, *[False] * 6, True]


def record_of(layers=3, heads=2, tokens=TOKENS, causal=False, special=SPECIAL, seed=0):
    count = len(tokens)
    scores = 2 * torch.randn(layers, 1, heads, count, count, generator=torch.Generator().manual_seed(seed))
    if causal:
        scores = scores.masked_fill(torch.ones(count, count).triu(1).bool(), -torch.inf)
    return AttentionRecord.from_weights(list(scores.softmax(-1)), tokens, causal, special=special)


def blob(view, name, kind, *shape):
    return np.frombuffer(inflate(view.blobs[name]), kind).reshape(shape)


@pytest.mark.parametrize("causal", [False, True])
def test_its_arrays_are_the_numbers_of_the_methods(causal):
    record = record_of(causal=causal)
    view = VIEWS["flow"](record)
    shape = (3, 8, 8)
    maps = record.weights.double().mean(1).numpy()
    assert view.payload["code"] == "float64"
    assert np.array_equal(blob(view, "maps", "<f8", *shape), maps)
    expected = attnscope.flow(record)
    assert np.array_equal(blob(view, "flow", "<f4", *shape), expected.map.numpy().astype(np.float32))
    assert np.array_equal(blob(view, "rollout", "<f4", *shape), attnscope.rollout(record).map.numpy())
    assert [row["total"] for row in view.payload["saturation"]] == expected.saturated.tolist()
    ends = blob(view, "ends", np.uint8, *shape)
    possible = np.tri(8).astype(bool) if causal else np.ones((8, 8), bool)
    shares = [(layer[possible] > 0).mean() for layer in ends]
    assert shares == pytest.approx(expected.saturated.tolist())


def test_it_opens_with_the_whole_read_out_where_that_is_a_mean():
    """Then it speaks of the same flows as the warning of the method; of a long text its flow waits to be asked for."""
    view = flow(record_of(layers=6))
    assert view.state["queries"] == list(range(8))
    assert sum(view.payload["readout"]) == pytest.approx(1, abs=1e-4)
    warned = attnscope.flow(record_of(layers=6)).warnings[0]
    assert "of the flows from the 8 tokens that the read-out averages are" in warned
    assert warned.startswith(f"{view.payload['saturation'][-1]['total']:.0%}")
    long = [f"t{number}" for number in range(60)]
    view = flow(record_of(layers=1, tokens=long, special=[False] * 60))
    assert view.state["queries"] == list(range(60))
    assert (view.payload["computed"]["sources"], view.state["keys"]) == ([], [])


def test_it_opens_with_the_read_out_at_the_last_layer():
    record = record_of(causal=True)
    state = flow(record).state
    flows = attnscope.flow(record).at(7)
    target = max(range(1, 6), key=lambda token: flows[token])  # neither special nor "<b>", which comes after nothing
    assert (state["queries"], state["layer"]) == ([7], 2)
    assert state["keys"] == [target if flows[target] > flows[6] else 6]
    assert flow(record, key=[]).state["keys"] == []
    state = flow(record, -2, [-1, 1], 0).state
    assert (state["queries"], state["keys"], state["layer"]) == ([6], [1, 7], 0)


def test_the_table_is_tidy():
    record = record_of()
    table = flow(record).to_frame()
    assert list(table.columns) == ["method", "layer", "query", "key", "query_token", "key_token", "value"]
    assert len(table) == 3 * 3 * 8 * 8
    row = table.query("method == 'flow' and layer == 2 and query == 1 and key == 5").iloc[0]
    assert row["value"] == pytest.approx(float(attnscope.flow(record).map[2, 1, 5]), abs=1e-12)
    assert row["key_token"] == "key"
    raw = table.query("method == 'raw' and layer == 0 and query == 1")["value"]
    assert raw.to_numpy() == pytest.approx(record.weights[0, :, 1].double().mean(0).numpy())
    rolled = table.query("method == 'rollout' and layer == 2 and query == 0")["value"].to_numpy()
    assert rolled == pytest.approx(attnscope.rollout(record).at(0).numpy())


def test_heads_and_residual_are_those_asked_for():
    record = record_of()
    view = flow(record, heads=1, residual=0.25)
    found = blob(view, "flow", "<f4", 3, 8, 8)
    assert found == pytest.approx(attnscope.flow(record, heads=1, residual=0.25).map.numpy(), abs=1e-7)
    assert np.array_equal(blob(view, "maps", "<f8", 3, 8, 8), record.weights[:, 1].double().numpy())


def test_a_long_text_has_only_the_sources_that_were_asked_for():
    tokens = [f"t{place}" for place in range(60)]
    record = record_of(2, 1, tokens, special=None)
    view = flow(record, 3, queries=[3, 9])
    assert view.payload["computed"] == {"layers": [1], "sources": [3, 9]}
    expected = attnscope.flow(record, layers=[1], queries=[3, 9])
    assert blob(view, "flow", "<f4", 1, 2, 60)[0] == pytest.approx(expected.map[1, [3, 9]].numpy(), abs=1e-7)
    assert view.payload["saturation"][0]["total"] == pytest.approx(float(expected.saturated[1]))
    assert flow(record, 5).payload["computed"] == {"layers": [1], "sources": [5]}
    assert set(view.to_frame()["query"]) == {3, 9}


def test_a_very_long_text_travels_small_and_waits_for_nothing():
    record = record_of(4, 1, [f"t{place}" for place in range(400)], special=None)
    view = flow(record)
    assert view.payload["computed"]["sources"] == []
    assert view.payload["code"] == "float32"
    assert len(view.blobs["maps"]) < 4 * 400 * 400 * 4 * 1.01
    assert view.to_frame().empty


def test_edges_of_rollout_sum_to_one_and_end_in_its_row():
    record = record_of()
    maps = 0.5 * record.weights.double().mean(1).numpy() + 0.5 * np.eye(8)
    edges = passing_mass(maps, [2])
    assert edges.sum((1, 2)) == pytest.approx(np.ones(3))
    assert edges[0].sum(0) == pytest.approx(attnscope.rollout(record).at(2).numpy(), abs=1e-6)
    words = passing_between(edges, [[0], [1], [2, 3, 4], [5], [6], [7]])
    assert words.sum((1, 2)) == pytest.approx(np.ones(3))


@pytest.mark.parametrize("causal", [False, True])
def test_edges_of_flow_are_a_flow_as_large_as_the_maximum(causal):
    record = record_of(causal=causal)
    maps = 0.5 * record.weights.double().mean(1).numpy() + 0.5 * np.eye(8)
    edges = attnscope.minimum_cut(record, 6, 1).along
    assert (edges <= maps + 1e-8).all()
    assert edges[2].sum() == pytest.approx(float(attnscope.flow(record).at(6)[1]), abs=1e-7)
    assert edges[0].sum(0) == pytest.approx(edges[2].sum() * (np.arange(8) == 1), abs=1e-12)
    for layer in (1, 2):
        assert edges[layer].sum(0) == pytest.approx(edges[layer - 1].sum(1), abs=1e-12)


def test_what_lies_behind_weak_edges_is_not_reached():
    edges = np.zeros((2, 3, 3))
    edges[1, 0] = [0.5, 0.1, 0.4]
    edges[0] = 0.3
    kept = reachable_edges(edges, [0], 0.2)
    assert kept[1, 0].tolist() == [0.5, 0.0, 0.4]
    assert kept[0].tolist() == [[0.3] * 3, [0.0] * 3, [0.3] * 3]


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_figure_has_the_same_bytes_every_time(kind):
    view = flow(record_of(), 0, 5)
    assert file_bytes(view.figure(), kind) == file_bytes(view.figure(), kind)


def test_the_figure_shows_tokens_as_text_and_says_the_flow():
    record = record_of()
    plot = flow(record, 0, 5).figure()
    drawing = file_bytes(plot, "svg").decode()
    assert drawing.count(">key<") == 6
    assert ">Rollout<" in drawing
    assert f"{float(attnscope.flow(record).at(0)[5]):.4f}" in plot.caption
    assert "minimum cut" in plot.caption
    assert plot.figure.get_figwidth() == pytest.approx(6.8)


def test_the_figure_follows_what_is_selected():
    view = flow(record_of(tokens=[*TOKENS[:2], "##s", *TOKENS[3:]]), 0, 5, 1)
    words = {**view.state, "words": True, "special": False, "threshold": 0.1, "root": True}
    assert view.draw is not None
    plot = view.draw(words, None)
    drawing = file_bytes(plot, "svg").decode()
    assert ">[CLS]<" not in drawing
    assert "Lines below 0.1" in plot.caption
    assert "square root" in plot.caption


def test_a_long_text_is_printed_with_its_quiet_tokens_folded_away():
    record = record_of(2, 1, [f"t{place}" for place in range(60)], special=None)
    view = flow(record, 3, 9)
    plot = view.figure()
    drawing = file_bytes(plot, "svg").decode()
    shown = {place for place in range(60) if f">t{place}<" in drawing}
    assert {3, 9} <= shown
    assert f"{60 - len(shown)} quiet tokens are folded away" in plot.caption
    # what the first of both layers brings, and the second: an independent count of the loudest
    maps = 0.5 * record.weights.double().mean(1).numpy() + 0.5 * np.eye(60)
    loudness = np.maximum(maps[1, 3], maps[1, 3] @ maps[0])
    expected = sorted(set(range(60)) - {3, 9}, key=lambda place: -loudness[place])[: len(shown) - 2]
    assert shown == {3, 9, *expected}
    with pytest.raises(BadInput, match=r"this text has 60: fold quiet tokens, take a shorter text, or save the view"):
        view.draw({**view.state, "folded": False}, None)


def test_scales_of_lines_leave_out_what_stays_or_rests_and_rollout_has_one_for_each_layer():
    edges = np.zeros((2, 3, 3))
    edges[1] = [[0.5, 0.3, 0.2], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    edges[0] = [[0.4, 0.08, 0.02], [0.2, 0.1, 0.0], [0.0, 0.0, 0.2]]
    quiet = (True, False, False)
    raw = Panel("Raw attention", edges, np.ones(3), quiet)
    assert raw.ends.tolist() == [0.3, 0.3]
    assert Panel("Rollout", edges, np.ones(3), quiet).ends.tolist() == [0.08, 0.3]
    assert Panel("Rollout", edges * 1e-6, np.ones(3), quiet).ends.tolist() == [1e-4, 1e-4]
    assert Panel("Flow", edges, np.ones(3), quiet, whole=True).ends.tolist() == [0.5, 0.5]
    assert raw.rests.tolist() == [[True, False, False], [True, True, False], [True, False, True]]
    many = Panel("Raw attention", np.random.default_rng(0).random((1, 40, 40)), np.ones(40), (False,) * 40)
    weakest = np.sort(many.edges[0][~np.eye(40, dtype=bool)])[-120]
    assert (many.followed()[0] & ~np.eye(40, dtype=bool)).sum() == 120  # three for each of forty columns
    assert many.edges[0][many.followed()[0] & ~np.eye(40, dtype=bool)].min() == weakest


def test_a_record_of_head_means_has_no_other_heads():
    record = replace(record_of(heads=1), pooled="mean")
    assert flow(record).payload["heads"] == "the mean over heads"
    with pytest.raises(BadInput, match="only the mean over heads"):
        flow(record, heads="max")


def test_what_cannot_be_joined_is_refused():
    crossing = AttentionRecord.from_weights(torch.full((1, 1, 1, 2, 3), 1 / 3), ["a", "b"], key_tokens=["x", "y", "z"])
    with pytest.raises(BadInput, match="its layers cannot be joined"):
        flow(crossing)
    record = record_of()
    for wrong in ({"query": 8}, {"key": -9}, {"queries": [40]}):
        with pytest.raises(BadInput, match="this text has 8 tokens"):
            flow(record, **wrong)
    with pytest.raises(BadInput, match="no layer 3"):
        flow(record, layer=3)
    with pytest.raises(BadInput, match="not a share between 0 and 1"):
        flow(record, residual=2)
    with pytest.raises(BadInput, match="needs a source"):
        flow(record, [])


def test_a_state_without_a_source_is_drawn_as_on_the_screen():
    view = flow(record_of())
    plot = view.draw({**view.state, "queries": [], "layer": 99}, None)
    assert "From “[CLS]” at layer 2" in plot.caption
