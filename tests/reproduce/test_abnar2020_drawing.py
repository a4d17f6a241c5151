"""Figures 1 to 3 of abnar2020: what is drawn is what the methods give, and what is said fits it."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

from attnscope import AttentionRecord
from attnscope.errors import BadInput
from attnscope.reproduce.abnar2020.drawing import (
    Example,
    attention_graph,
    figures_of,
    maps_by_method,
    raw_maps,
    readout_maps,
)
from attnscope.reproduce.document import Code, Figure, Heading, Table, pieces
from attnscope.views.layer_maps import LayerMap, layer_maps
from attnscope.views.printing import file_bytes


def random_record(layers: int, tokens: int, seed: int = 0, readout: int = 0) -> AttentionRecord:
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.full(tokens, 0.4), (layers, 2, tokens))
    names = ["[CLS]", *(f"word{place}" for place in range(1, tokens))]
    return AttentionRecord.from_weights(torch.from_numpy(weights).float(), names, causal=False, readout=readout)


def by_hand(record: AttentionRecord) -> dict[str, np.ndarray]:
    """The three maps by loops over edges, and networkx's maximum flow."""
    weights = record.weights.double().numpy().mean(1)
    layers, tokens, _ = weights.shape
    mixed = 0.5 * weights + 0.5 * np.eye(tokens)
    rolled = [mixed[0]]
    for layer in range(1, layers):
        rolled.append(np.array([[sum(mixed[layer, i, k] * rolled[-1][k, j] for k in range(tokens))
                                 for j in range(tokens)] for i in range(tokens)]))  # fmt: skip
    graph = nx.DiGraph()
    for layer in range(layers):
        for i in range(tokens):
            for j in range(tokens):
                graph.add_edge((layer + 1, i), (layer, j), capacity=float(mixed[layer, i, j]))
    flows = np.array(
        [
            [[nx.maximum_flow_value(graph, (layer + 1, i), (0, j)) for j in range(tokens)] for i in range(tokens)]
            for layer in range(layers)
        ]
    )
    return {"raw": weights, "rollout": np.stack(rolled), "flow": flows / flows.sum(-1, keepdims=True)}


def judged(text: str, changed: str, *, right: bool, outcomes: tuple[str, str]) -> Example:
    records = []
    for words in (text, changed):
        tokens = ("[CLS]", *words.split(), "[EOS]")
        record = random_record(layers=3, tokens=len(tokens), seed=len(words))
        records.append(replace(record, text=words, query_tokens=tokens, key_tokens=tokens))
    return Example(text, *records, right, *outcomes)


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return [
        judged("the key to the cabinets", "the keys to the cabinets", right=True, outcomes=("singular", "plural")),
        judged("the dog near the keys", "the dogs near the keys", right=True, outcomes=("singular", "singular")),
        judged("here the keys differ", "here the key differ", right=False, outcomes=("plural", "singular")),
    ]


def texts_in(plot) -> list[str]:
    return [text.get_text() for axes in plot.figure.axes for text in axes.texts]


def meshes(plot) -> list[np.ndarray]:
    """The cells of every map, without the scale below."""
    found = [c.get_array() for c in plot.figure.axes[0].collections if hasattr(c, "get_coordinates")]
    return [np.asarray(cells) for cells in found][:-1]


def test_maps_are_those_of_a_loop_and_of_networkx():
    record = random_record(layers=3, tokens=5)
    expected = by_hand(record)
    maps = maps_by_method(record)
    assert list(maps) == list(expected) == ["raw", "rollout", "flow"]
    for name, weights in maps.items():
        np.testing.assert_allclose(weights, expected[name], atol=1e-6)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(maps["rollout"][0], maps["flow"][0], atol=1e-6)


def test_the_graph_has_a_line_for_each_pair_as_dark_as_its_weight():
    record = random_record(layers=2, tokens=4)
    plot = attention_graph(record)
    panels = [collection for collection in plot.figure.axes[0].collections if len(collection.get_segments())]
    assert len(panels) == 3
    for panel, weights in zip(panels, by_hand(record).values(), strict=True):
        xs = sorted({round(float(end[0]), 4) for line in panel.get_segments() for end in line})
        ys = sorted({round(float(end[1]), 4) for line in panel.get_segments() for end in line}, reverse=True)
        assert len(xs) == 4
        assert len(ys) == 3  # the input, and one row for each layer
        drawn = np.zeros_like(weights)
        for (start, end), ink in zip(panel.get_segments(), panel.get_colors(), strict=True):
            layer = ys.index(round(float(end[1]), 4))
            assert ys.index(round(float(start[1]), 4)) == layer + 1
            drawn[layer, xs.index(round(float(start[0]), 4)), xs.index(round(float(end[0]), 4))] = ink[3]
        np.testing.assert_allclose(drawn, weights / weights.max(), atol=1 / 254)
    words = texts_in(plot)
    assert [words.count(token) for token in record.tokens] == [6] * 4
    assert {"1", "2"} <= set(words)
    assert {"(a) raw attention", "(b) rollout", "(c) flow"} <= set(words)
    assert "0" not in words
    assert "divided by their sum" in plot.caption


@pytest.mark.parametrize(("tokens", "panels_in_a_row"), [(2, 3), (16, 3), (20, 1), (50, 1)])
def test_a_longer_text_is_stacked_and_no_figure_is_higher_than_a_page(tokens, panels_in_a_row):
    plot = attention_graph(random_record(layers=2, tokens=tokens))
    places = [text.get_position() for text in plot.figure.axes[0].texts if text.get_text().startswith("(")]
    assert len({round(left, 3) for left, _ in places}) == panels_in_a_row
    assert plot.figure.get_size_inches()[1] <= 9.001


def test_a_text_that_cannot_be_read_is_refused():
    with pytest.raises(BadInput, match="holds 53 tokens readably"):
        attention_graph(random_record(layers=1, tokens=60))
    with pytest.raises(BadInput, match="take a shorter text"):
        readout_maps({"long": random_record(layers=2, tokens=40)})


@pytest.mark.parametrize("readout", [0, 2])
def test_maps_are_the_row_of_the_readout(readout):
    records = {f"text {n}": random_record(3, 5, seed=n, readout=readout) for n in range(2)}
    plot = readout_maps(records)
    drawn = meshes(plot)
    assert len(drawn) == 6
    expected = [weights[:, readout] for record in records.values() for weights in by_hand(record).values()]
    for cells, rows in zip(drawn, expected, strict=True):
        np.testing.assert_allclose(cells.reshape(rows.shape), rows, atol=1e-6)
        assert f"0–{rows.max():.2g}" in texts_in(plot)
    words = texts_in(plot)
    assert {"text 0", "text 1", "1", "2", "3"} <= set(words)
    # the methods are named once, above the first row
    assert [words.count(name) for name in ("raw attention", "rollout", "flow")] == [1, 1, 1]


def test_the_first_layer_is_lowest():
    grid = np.array([[1.0, 0.0], [0.0, 0.5]])
    plot = layer_maps({"one": [LayerMap("map", ["a", "b"], grid)]}, [1, 2], "share", "")
    mesh = plot.figure.axes[0].collections[0]
    corners = mesh.get_coordinates()[:, :, 1]
    assert (corners[0] > corners[-1]).all()  # inches are counted from above
    numbers = {text.get_text(): text.get_position()[1] for text in plot.figure.axes[0].texts}
    assert numbers["1"] > numbers["2"]


@pytest.mark.parametrize("count", [1, 4, 8])
def test_one_to_eight_texts_fit_on_a_page_without_overlap(count):
    plot = readout_maps({f"text {n}": random_record(6, 9, seed=n) for n in range(count)})
    figure = plot.figure
    assert figure.get_size_inches()[1] <= 9.21
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    for place, box in enumerate(boxes):
        assert box.y0 >= -1
        assert box.x1 <= figure.bbox.x1 + 1
        assert not any(_overlap(box, other) for other in boxes[place + 1 :])


def _overlap(one, other, slack: float = 1.0) -> bool:
    """Whether two boxes share more than the air around their letters."""
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    down = min(one.y1, other.y1) - max(one.y0, other.y0)
    return across > slack and down > slack


@pytest.mark.parametrize("count", [0, 9])
def test_none_or_too_many_texts_are_refused(count):
    with pytest.raises(BadInput, match="1 to 8 texts"):
        readout_maps({str(n): random_record(1, 3) for n in range(count)})
    with pytest.raises(BadInput, match="1 to 8 texts"):
        figures_of([Example("x", random_record(1, 3), None, True, "singular", None)] * count)


def test_records_of_different_depth_are_not_drawn_together():
    with pytest.raises(BadInput, match="same layers"):
        readout_maps({"two": random_record(2, 3), "three": random_record(3, 3)})


def test_raw_maps_are_three_in_a_row(examples):
    plot = raw_maps([*examples, examples[0]])
    assert len(meshes(plot)) == 4
    words = texts_in(plot)
    assert "raw attention, examples 1 to 3" in words
    assert "raw attention, example 4" in words
    assert "2: the dog near the keys" in words


def test_blocks_have_the_papers_figures_and_what_became_of_each_sentence(examples):
    blocks = figures_of(examples)
    assert [block.text for block in blocks if isinstance(block, Heading)] == [
        "Figure 1: attention in every layer",
        "Figures 2 and 3: what [CLS] has from each word",
    ]
    figures = {block.name: block for block in blocks if isinstance(block, Figure)}
    assert list(figures) == ["fig01_attention_graph", "fig02_raw_maps", "fig03_maps", "fig03_maps_changed"]
    for figure in figures.values():
        words = "".join(piece if isinstance(piece, str) else piece.text for piece in pieces(figure.words))
        assert "In the paper" in words
        assert "Look" in words
    assert "3: here the keys differ → plural (wrong)" in texts_in(figures["fig03_maps"].plot)
    assert "1: the keys to the cabinets → plural" in texts_in(figures["fig03_maps_changed"].plot)
    (table,) = [block for block in blocks if isinstance(block, Table)]
    assert all(len(row) == len(table.names) for row in table.rows)
    assert table.rows[0] == [[Code("the key to the cabinets")], ["singular"], ["yes"],
                             [Code("the keys to the cabinets")], ["plural"], ["yes"]]  # fmt: skip
    assert table.rows[1][4:] == [["singular"], ["no"]]
    assert table.rows[2][2] == ["no"]


def test_an_example_without_a_change_says_so(examples):
    alone = Example("the key", examples[0].record, None, True, "singular", None)
    blocks = figures_of([alone])
    assert [block.name for block in blocks if isinstance(block, Figure)] == [
        "fig01_attention_graph",
        "fig02_raw_maps",
        "fig03_maps",
    ]
    (table,) = [block for block in blocks if isinstance(block, Table)]
    assert table.rows == [[[Code("the key")], ["singular"], ["yes"], ["–"], ["–"], ["–"]]]


def test_a_figure_has_the_same_bytes_every_time(examples):
    record = examples[0].record
    assert file_bytes(attention_graph(record), "svg") == file_bytes(attention_graph(record), "svg")
    assert file_bytes(readout_maps({"a": record}), "svg") == file_bytes(readout_maps({"a": record}), "svg")
