"""Views of records of vectors: pooled maps, figures and cut rows are those of the weights, and pages stay small."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnscope import AttentionRecord, BadInput, VectorRecord, views
from attnscope.attribution import raw, rollout
from attnscope.record.vectors import LayerVectors, normalizers_of
from attnscope.views import record_view
from attnscope.views.head_statistics import head_statistics
from attnscope.views.weights import Form, form_for, inflate, largest_of_rows, weight_blobs


def vectors_of(tokens=150, layers=2, heads=3, back=None, special=False):
    """A causal record of random vectors, whose attention is sharp; with a window where `back` says so."""
    torch.manual_seed(0)
    queries, keys = torch.randn(2, layers, heads, tokens, 8)
    normalizers = torch.stack(
        [
            normalizers_of(LayerVectors(asking, asked, torch.zeros(heads, tokens), 1.0, back=back, ahead=0))
            for asking, asked in zip(queries, keys, strict=True)
        ]
    )
    names = tuple(f"Ġword{place % 40}" if place % 3 else "ing" for place in range(tokens))
    words = tuple(np.cumsum([name.startswith("Ġ") for name in names]).tolist())
    return VectorRecord(
        queries=queries,
        group_keys=keys,
        normalizers=normalizers,
        scaling=(1.0,) * layers,
        back=(back,) * layers,
        ahead=(0,) * layers,
        query_tokens=names,
        key_tokens=names,
        query_word_ids=words,
        query_special=(special, *[False] * (tokens - 1)),
        stack="decoder",
        causal=True,
        readout=torch.eye(tokens)[-1],
    )


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Even short texts come in several blocks, and are shown as long ones are."""
    monkeypatch.setattr("attnscope.record.vectors.BLOCK", 3 * 150 * 16)
    monkeypatch.setattr(record_view, "FEW_BYTES", 0)


def pixels_of(view, name):
    maps = view.payload["maps"][name]
    codes = np.frombuffer(inflate(view.blobs[name]), dtype=np.uint8)
    return (codes.reshape(len(view.payload["weights"]["layers"]), -1, *maps["shape"]) / 255.0) ** 2


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("back", [None, 20])
def test_pooled_maps_and_figures_are_those_of_all_weights(back, special):
    record = vectors_of(tokens=300, back=back, special=special)
    weights = record.full().weights.numpy()
    view = views.model(record)
    blocks = np.zeros((2, 3, 100, 100))  # 128 pixels at most: blocks of three tokens
    for query in range(300):
        for key in range(query + 1):
            place = (..., query // 3, key // 3)
            blocks[place] = np.maximum(blocks[place], weights[:, :, query, key])
    np.testing.assert_allclose(pixels_of(view, "tokens"), blocks, atol=4e-3)
    assert view.payload["maps"]["tokens"]["block"] == [3, 3]
    assert set(view.payload["maps"]) == ({"tokens", "tokens-quiet"} if special else {"tokens"})
    frame = view.to_frame()
    entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1)[:, :, 1:].mean(-1)
    np.testing.assert_allclose(frame["entropy"].to_numpy().reshape(2, 3), entropy, atol=1e-4)
    before = weights[:, :, range(1, 300), range(299)].mean(-1)
    np.testing.assert_allclose(frame["previous"].to_numpy().reshape(2, 3), before, atol=1e-5)
    largest = weights[:, :, 1:].reshape(2, 3, -1)
    np.testing.assert_allclose(frame["weight"].to_numpy().reshape(2, 3), largest.max(-1), atol=1e-5)
    assert frame["query"].to_list() == (1 + largest.argmax(-1) // 300).flatten().tolist()


def test_large_blocks_have_the_mean_of_what_queries_give(monkeypatch):
    monkeypatch.setattr("attnscope.views.head_statistics.MOST_LARGEST", 2)
    record = vectors_of(tokens=299)  # the last blocks are smaller
    view = views.model(record)
    weights = record.full().weights.numpy()
    padded = np.pad(weights, ((0, 0), (0, 0), (0, 1), (0, 1))).reshape(2, 3, 100, 3, 100, 3)
    means = padded.sum((3, 5)) / np.array([3] * 99 + [2])[:, None]
    assert view.payload["maps"]["tokens"]["mean"]
    np.testing.assert_allclose(pixels_of(view, "tokens"), means, atol=4e-3)
    np.testing.assert_allclose(
        view.to_frame()["weight"].to_numpy().reshape(2, 3), weights[:, :, 1:].max((2, 3)), atol=1e-5
    )
    assert "gives to 3 (columns) together" in view.figure().caption


def test_figures_and_roles_of_vectors_are_those_of_the_full_record():
    light = vectors_of()
    found, expected = head_statistics(light), head_statistics(light.full())
    assert found.roles == expected.roles
    for name, values in expected.figures.items():
        torch.testing.assert_close(found.figures[name], values, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("back", [None, 3])
def test_the_rows_that_travel_are_the_largest_of_each_row(back):
    record = vectors_of(back=back)
    described, blobs = weight_blobs(record, Form("uint8", 5))
    weights = record.full().weights.numpy()
    for place, layer in enumerate(weights):
        content = inflate(blobs[f"layer{place}"])
        rows = 3 * 150
        rest = np.frombuffer(content, "<f4", rows)
        keys = np.frombuffer(content, "<u2", rows * 5, 4 * rows).reshape(3, 150, 5)
        expected = -np.sort(-layer, -1)[..., :5]
        np.testing.assert_allclose(np.take_along_axis(layer, keys.astype(int), -1), expected, atol=1e-6)
        assert all(len(set(row)) == 5 for row in keys.reshape(-1, 5).tolist())  # also where fewer keys are seen
        np.testing.assert_allclose(rest.reshape(3, 150), 1 - expected.sum(-1), atol=1e-5)
    assert described["rest"] == pytest.approx(1 - np.sort(weights)[..., -5:].sum(-1).mean(), abs=1e-5)


def test_the_largest_of_long_rows_are_those_of_topk():
    torch.manual_seed(0)
    for keys in (700, 704, 1001):
        weights = torch.randn(2, 5, keys).mul(4).softmax(-1)
        weights[0, 0] = torch.eye(keys)[-1]  # but for one all are alike
        values, places = largest_of_rows(weights, 7)
        assert torch.equal(values, weights.topk(7).values)
        assert torch.equal(weights.gather(-1, places), values)
        assert all(len(set(row)) == 7 for row in places.flatten(0, 1).tolist())


def test_a_page_holds_the_layers_that_fit_and_names_the_others(tmp_path):
    record = vectors_of(layers=7)
    row = 3 * 150 * (8 + 3 * 8) * 1.19
    texts = len(json.dumps(views.head(record).payload["keys"])) * 2
    budget = int(250_000 + texts + 3.5 * row)
    view = views.head(record, size_budget=budget)
    assert view.payload["weights"]["layers"] == [0, 3, 6]
    assert view.payload["weights"]["left_out"] == [1, 2, 4, 5]
    assert view.save(tmp_path / "head.html").stat().st_size <= budget
    frame = view.to_frame()
    assert set(frame["layer"]) == {0, 3, 6}
    one = frame[(frame["layer"] == 3) & (frame["head"] == 1) & (frame["query"] == 100)].iloc[0]
    assert one["weight"] == pytest.approx(float(record.rows(3, 1, 100).max()), abs=1e-6)
    assert one["key_token"] == views.head(record).payload["keys"]["texts"][one["key"]]
    whole = views.model(record, size_budget=budget + 500_000)
    assert pixels_of(whole, "tokens").shape[:2] == (7, 3)
    assert form_for(record, 1000).layers == ()
    assert views.model(record, size_budget=300_000).payload["weights"]["left_out"] == list(range(7))
    with pytest.raises(BadInput, match="give a larger size_budget"):
        views.head(record, size_budget=1000)


def test_few_weights_are_shown_as_those_of_any_record(monkeypatch):
    monkeypatch.setattr(record_view, "FEW_BYTES", 10**9)
    record = vectors_of(tokens=12)
    view = views.head(record)
    assert view.payload["weights"]["kept"] is None
    assert len(view.to_frame()) == 2 * 3 * 12 * 12
    assert isinstance(views.flow(record).payload["readout"], list)


def test_what_needs_all_weights_is_refused_in_one_sentence(tmp_path):
    record = vectors_of()
    with pytest.raises(BadInput, match=r"150 tokens are too many.*attnscope\.rollout"):
        views.flow(record)
    with pytest.raises(BadInput, match="64 tokens in a column readably"):
        views.head(record).save(tmp_path / "head.svg")
    assert views.model(record).save(tmp_path / "model.svg").stat().st_size > 1000


def test_scores_of_vectors_have_no_maps_of_other_queries():
    record = vectors_of()
    for given in (record, None):
        view = views.scores([raw(record), rollout(record)], record=given)
        assert [(method["map"], method["rows"]) for method in view.payload["methods"]] == [
            (False, given is not None)
        ] * 2
    assert "row by row" in view.payload["methods"][0]["without"]
    assert isinstance(record, AttentionRecord)
    assert len(view.to_frame()) == 2 * 150


def test_in_a_document_what_has_half_of_all_is_a_sink(monkeypatch):
    record = vectors_of(tokens=40)
    resting = replace(raw(record), scores=torch.full((40,), 0.4 / 39).index_fill(0, torch.tensor([7]), 0.6))
    assert views.scores(resting, record=record).payload["keys"]["sinks"] == []
    monkeypatch.setattr(sys.modules["attnscope.views.scores"], "LONG", 30)  # the name itself is the function
    view = views.scores(resting, record=record)
    assert view.payload["keys"]["sinks"] == [7]
    assert view.state["root"]


def test_a_document_knows_where_its_lines_end():
    record = vectors_of(tokens=3)
    tokens = ("Ġa", "Ċ", "Ġb")
    named = VectorRecord(**{**vars(record), "query_tokens": tokens, "key_tokens": tokens})
    assert views.scores(raw(named), record=named).payload["breaks"] == [1]
