"""Benchmarks: what they measure is the same thing, and what they report is told rightly. Times are not tested."""

import json

import pytest
import torch

import attnscope
from attnscope.attribution.choosing import every_method
from attnscope.bench import BENCHMARKS, explain, figure, long
from attnscope.bench.flow import _full_table, _one_source, random_graph, solvers


def test_peers_agree_on_a_small_graph():
    graph = random_graph(4, 6, causal=False)
    found = {}
    for name, prepare in solvers(graph.capacity).items():
        solve, source, sink = prepare(2, 3)
        found[name] = solve(source, sink)
    assert found["ortools"] == graph.table()[3, 2, 3]
    assert found["igraph"] == pytest.approx(found["ortools"], abs=2**16)
    assert found["networkx"] == found["ortools"]


@pytest.mark.parametrize("causal", [False, True])
def test_flow_figures_hold_on_a_small_graph(causal):
    graph = random_graph(4, 8, causal=causal)
    figures = [*_one_source("one", graph), *_full_table("all", graph, 1, 1)]
    assert {row.other for row in figures} == {"ortools", "igraph", "networkx"}
    assert all(row.ratio == pytest.approx(row.others / row.ours) for row in figures)


def test_a_wrong_flow_stops_the_benchmark(monkeypatch):
    graph = random_graph(4, 6, causal=False)
    monkeypatch.setattr(type(graph), "table", lambda self: self.capacity + 2**30)
    with pytest.raises(RuntimeError, match="differ by"):
        list(_full_table("all", graph, None, None))


def test_long_texts_are_measured_on_the_same_attention():
    size = long.LARGE | {"hidden_size": 36, "intermediate_size": 40, "num_hidden_layers": 2}
    figures = list(long._measure_time(size, 24))
    assert long._peak_here("recorded", size, 24, 1) >= long._weight_bytes(size, 24)
    assert {row.other for row in figures} == {"forward pass", "all weights"}
    model = long.LlamaModel(long.LlamaConfig(**size)).eval()
    ids = torch.arange(24)[None]
    weights = torch.stack([layer[0] for layer in long._all_weights(model, ids)])
    torch.testing.assert_close(long._recorded(model, ids).full().weights, weights, atol=1e-5, rtol=0)


def test_figures_say_whether_the_goal_is_met():
    assert figure.faster("a", "b", 1.0, 10.0, 5).met is True
    assert figure.faster("a", "b", 1.0, 10.0, 50).met is False
    assert figure.faster("a", "b", 1.0, 10.0, None).met is None
    assert figure.share("a", "b", 1.0, 100.0, 0.05).met is True
    assert json.loads(json.dumps(figure.share("a", "b", 1.0, 100.0, 0.05).to_dict()))["ratio"] == 0.01
    table = figure.table_of([figure.faster("a", "b", 1.0, 10.0, 5), figure.share("a", "b", 1.0, 100.0, 0.05)])
    assert table.row_count == 2


def test_work_takes_turns():
    order = []
    seconds = figure.taking_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=2)
    assert order == ["a", "b", "a", "b", "a", "b"]
    assert set(seconds) == {"a", "b"}


def test_every_benchmark_is_a_function_without_arguments():
    assert set(BENCHMARKS) == {"flow", "rollout", "blank_out", "explain", "long", "memory", "survey", "sweep", "views"}
    assert all(callable(measure) for measure in BENCHMARKS.values())


def test_every_method_has_its_figure_and_slow_ones_a_peer(monkeypatch):
    """On a model that is small enough to be quick; what is compared in time must say the same."""
    pytest.importorskip("captum", reason="captum is in the extra attnscope[bench]")
    model = explain.made_model(layers=2, width=64)
    figures = list(explain.measure_text("small", model, 20, rounds=1))
    asked = {row.case.split(",")[0]: row.other for row in figures}
    assert set(asked) == set(every_method())
    assert [row.other for row in figures if row.case.startswith("integrated")] == ["50 steps", "captum"]
    record = explain.record_of(model, 20)
    assert len(record.tokens) >= 20
    ours = attnscope.integrated_gradients(record, model, baseline="unk", quantity="probability", signed=True).scores
    torch.testing.assert_close(ours, explain.by_captum(model, record), atol=0.01 * float(ours.abs().sum()), rtol=0)
    monkeypatch.setattr(explain, "blank_out_whole", lambda *_: torch.zeros(len(record.tokens)))
    with pytest.raises(RuntimeError, match="Blank-out differs by"):
        list(explain._blank_out("small", model, record, 1))
