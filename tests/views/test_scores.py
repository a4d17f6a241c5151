"""The scores view from Python: what travels, what is left out and said, its table, its printed figure."""

import math
import re
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
import torch

import attnscope
from attnscope import AttentionRecord, BadInput
from attnscope.attribution import compare, flow, raw, rollout
from attnscope.attribution.comparing import spearman
from attnscope.record.scores import scores_of
from attnscope.views import scores
from attnscope.views.scales import Scale
from attnscope.views.weights import inflate

TOKENS = ["[CLS]", "the", "un", "##told", "<key>", "[SEP]"]
SPECIAL = [True, False, False, False, False, True]
LAYERS = 3


def record_of(tokens=TOKENS, special=SPECIAL, layers=LAYERS, **more):
    torch.manual_seed(0)
    weights = (3 * torch.randn(layers, 4, len(tokens), len(tokens))).softmax(-1)
    return AttentionRecord.from_weights(weights, tokens, causal=False, special=special, **{"readout": 0, **more})


def signed(record, seed=1):
    torch.manual_seed(seed)
    return scores_of(record, "gradient_x_input", torch.randn(len(record.key_tokens)))


@pytest.fixture
def record():
    return record_of()


@pytest.fixture
def several(record):
    return [raw(record), rollout(record), flow(record), signed(record)]


def own_of(view):
    rows = np.frombuffer(inflate(view.blobs["own"]), "<f8")
    return rows.reshape(len(view.payload["methods"]), -1)


def rows_of(view, name):
    keys = len(view.payload["keys"]["texts"])
    content = inflate(view.blobs[name])
    count = len(content) // (4 + 2 * keys)
    largest = np.frombuffer(content[: 4 * count], "<f4")
    return largest[:, None] * np.frombuffer(content[4 * count :], "<f2").reshape(count, keys).astype(np.float64)


def described(view):
    return {method["name"]: method for method in view.payload["methods"]}


def test_it_is_a_name_of_the_package():
    assert attnscope.views.scores is scores


def test_the_bytes_are_the_scores(record, several):
    view = scores(several, record=record)
    np.testing.assert_array_equal(own_of(view), torch.stack([one.scores.double() for one in several]).numpy())
    for place, one in enumerate(several[:3]):
        for layer in range(LAYERS):
            whole = rows_of(view, f"map{place}_{layer}")
            np.testing.assert_allclose(whole, one.map[layer].double().numpy(), rtol=2**-11, atol=1e-7)
        np.testing.assert_allclose(
            rows_of(view, f"rows{place}"), one.map[:, 0].double().numpy(), rtol=2**-11, atol=1e-7
        )
    assert "rows3" not in view.blobs
    assert [method["signed"] for method in view.payload["methods"]] == [False, False, False, True]
    assert [method["shares"] for method in view.payload["methods"]] == [True, True, False, False]


def test_tiny_and_huge_scores_keep_their_digits(record):
    for size in (1e-9, 1e9):
        scaled = scores_of(
            record,
            "mine",
            raw(record).scores * size,
            compute_map=lambda size=size: raw(record).map * size,
            compute_row=lambda layer, query, size=size: raw(record).map[layer, query] * size,
        )
        view = scores(scaled, record=record)
        found, expected = rows_of(view, "map0_1"), raw(record).map[1].double().numpy() * size
        np.testing.assert_allclose(found, expected, rtol=2**-11, atol=size * 1e-7)


def test_one_method_a_sequence_and_a_comparison_are_taken(record):
    assert list(described(scores(raw(record)))) == ["raw"]
    assert list(described(scores((raw(record), raw(record, layer=0))))) == ["raw", "raw 2"]
    compared = compare(record)
    view = scores(compared, record=record)
    assert list(described(view)) == list(compared.methods)
    assert view.payload["left_out"] == dict(compared.left_out)
    assert view.state["reference"] == compared.reference


@pytest.mark.parametrize("readout", [0, 5, [1 / 6] * 6])
def test_the_readout_is_found_without_the_record(readout):
    record = record_of(readout=readout)
    told = scores([raw(record), rollout(record), signed(record)])
    np.testing.assert_allclose(told.payload["readout"], record.readout.tolist(), atol=1e-6)
    np.testing.assert_allclose(
        rows_of(told, "rows1"), rows_of(scores([raw(record), rollout(record)], record=record), "rows1"), atol=1e-4
    )


def test_scores_alone_tell_no_readout_where_there_is_no_map(record):
    view = scores(signed(record))
    assert view.payload["readout"] is None
    assert described(view)["gradient_x_input"]["without"] == "gradient_x_input scores tokens for the read-out only"


def test_a_budget_leaves_maps_out_and_says_so():
    record = record_of([f"t{place}" for place in range(150)], None, layers=4)
    methods = [signed(record), rollout(record), raw(record)]
    whole, cut = scores(methods, record=record), scores(methods, record=record, size_budget=560_000)
    assert [described(whole)[name]["map"] for name in ("raw", "rollout")] == [True, True]
    assert len(cut.html()) <= 560_000 * 4 / 3
    maps = {name: method["map"] for name, method in described(cut).items()}
    assert maps == {"gradient_x_input": False, "rollout": True, "raw": False}
    assert "would take 0.2 MB and is left out (size_budget)" in described(cut)["raw"]["without"]
    assert described(cut)["raw"]["rows"]
    with pytest.raises(BadInput, match="does not fit into 1,000 bytes"):
        scores(methods, record=record, size_budget=1_000)


def test_flow_of_a_long_text_has_no_map_and_says_so():
    record = record_of([f"t{place}" for place in range(100)], None, layers=4)
    view = scores([flow(record), raw(record)], record=record)
    found = described(view)["flow"]
    assert (found["map"], found["rows"]) == (False, True)  # one source: its rows are quick
    assert found["without"] == "the map of flow would take long to compute for 100 tokens and is left out"
    np.testing.assert_allclose(rows_of(view, "rows0")[1], flow(record).at(0, 1).numpy(), rtol=2**-10)


def test_rows_that_were_not_computed_travel_as_such(record):
    some = flow(record, queries=[0, 2])
    view = scores(some, record=record)
    rows = rows_of(view, "map0_2")
    np.testing.assert_array_equal(np.isnan(rows).all(-1), [False, True, False, True, True, True])
    np.testing.assert_allclose(rows[2], some.at(2, 2).numpy(), rtol=2**-11)
    assert view.to_frame().query("query == 1")["score"].isna().all()


def test_scores_of_words_are_shown_as_they_are(record):
    view = scores([raw(record).words(), rollout(record).words()])
    assert view.payload["keys"]["texts"] == ["[CLS]", "the", "untold", "<key>", "[SEP]"]
    assert not any(method["map"] or method["rows"] for method in view.payload["methods"])


def test_words_and_sentences_of_a_record_keep_its_pair_and_its_sinks(monkeypatch):
    """One token of a word makes it a sink; a sentence is one only where it holds nothing else."""
    tokens = ["[CLS]", "dogs", "sl", "##eep", ".", "[SEP]", "go", "[SEP]"]
    special = [True, False, False, False, False, True, False, True]
    monkeypatch.setattr("attnscope.views.sides.sinks_of", lambda record: [3])  # "##eep"
    weights = torch.full((2, 2, 8, 8), 1 / 8)
    record = AttentionRecord.from_weights(weights, tokens, causal=False, special=special, readout=0)
    record = replace(record, text=("dogs sleep.", "go"))
    for by, texts, sinks, pair in (
        ("word", ["[CLS]", "dogs", "sleep", ".", "[SEP]", "go", "[SEP]"], [2], [0, 0, 0, 0, 0, 1, 1]),
        ("sentence", ["[CLS]", "dogs sleep.", "[SEP]", "go", "[SEP]"], [], [0, 0, 0, 1, 1]),
    ):
        view = scores(raw(record).sum_by(by), record=record)
        keys = view.payload["keys"]
        assert (keys["texts"], keys["sinks"], keys["sentences"]) == (texts, sinks, pair)
        assert view.payload["layers"] == []
    with pytest.raises(BadInput, match="not the one that was scored"):
        scores(raw(record).words(), record=record_of())


def test_the_layout_follows_the_length_unless_asked(record):
    long = record_of([f"t{place}" for place in range(60)], None)
    assert scores(raw(record)).state["layout"] == "aligned"
    assert scores(raw(long)).state["layout"] == "text"
    assert scores(raw(record), layout="text").state["layout"] == "text"


def test_a_mapping_and_a_table_of_trust_stand_beside_the_methods(record):
    plain = scores([raw(record), rollout(record)], trust={"raw": {"value": 0.4, "low": 0.3, "high": 0.5}})
    assert described(plain)["raw"]["trust"] == {"value": 0.4, "low": 0.3, "high": 0.5}
    assert described(plain)["rollout"]["trust"] is None
    row = {"against": "blank_out", "measure": "spearman", "special": "without", "bucket": "all", "layer": None}
    table = pd.DataFrame([
        {"method": "raw", **row, "value": 0.2, "low": 0.1, "high": 0.3},
        {"method": "raw", **row, "special": "with", "value": 0.9, "low": 0.8, "high": 1.0},
        {"method": "rollout", **row, "value": math.nan, "low": math.nan, "high": math.nan},
        {"method": "raw", **row, "against": "gradient", "value": 0.7, "low": 0.6, "high": 0.8},
    ])  # fmt: skip
    view = scores([raw(record), rollout(record)], trust=table)
    assert described(view)["raw"]["trust"] == {"value": 0.2, "low": 0.1, "high": 0.3}
    assert not described(view)["rollout"]["trust"]
    assert "rank agreement with blank_out" in view.payload["trust"]


def test_the_table_has_every_score_with_its_rank(record, several):
    table = scores(several, record=record).to_frame()
    assert list(table.columns) == ["method", "layer", "query", "position", "token", "score", "rank"]
    assert len(table) == 4 * 6 + 3 * LAYERS * 6 + 3 * LAYERS * 36
    own = table[(table["method"] == "rollout") & table["layer"].isna()]
    assert own["token"].tolist() == ["[CLS]", "the", "un", "told", "<key>", "[SEP]"]
    np.testing.assert_allclose(own["score"], rollout(record).scores.numpy(), rtol=1e-6)
    at = table[(table["method"] == "raw") & (table["layer"] == 1) & (table["query"] == 4)]
    expected = raw(record).at(4, 1)
    np.testing.assert_allclose(at["score"], expected.numpy(), rtol=1e-6)
    assert at.loc[at["rank"] == 1, "position"].item() == int(expected.argmax())


def test_layers_are_called_by_their_numbers(record):
    some = record.select(layers=[1, 2])
    view = scores(raw(some), record=some, layer=-1)
    assert (view.payload["layers"], view.state["layer"]) == ([1, 2], 2)
    assert set(view.to_frame()["layer"].dropna()) == {1, 2}


def test_cross_attention_has_queries_of_its_own():
    torch.manual_seed(0)
    weights = torch.randn(2, 3, 3, 5).softmax(-1)
    record = AttentionRecord.from_weights(weights, ["so", "it", "is"], key_tokens=["das", "ist", "nun", "so", "."])
    view = scores(raw(record), record=record, query=-1)
    assert (view.payload["stack"], view.state["queries"]) == ("cross", [2])
    assert view.payload["queries"]["texts"] == ["so", "it", "is"]
    without = scores(raw(record))
    assert (without.payload["stack"], without.payload["queries"]["texts"]) == ("cross", ["0", "1", "2"])


def test_the_figure_has_the_same_bytes_and_its_tokens_as_text(record, several, tmp_path):
    view = scores(several, record=record)
    first, second = (view.save(tmp_path / f"{name}.svg").read_bytes() for name in "ab")
    assert sha256(first).digest() == sha256(second).digest()
    text = first.decode()
    for token in ("[CLS]", "told", "&lt;key&gt;", "gradient_x_input", "±"):
        assert token in text
    for kind in ("pdf", "png"):
        assert view.save(tmp_path / f"a.{kind}").stat().st_size > 1000


def test_the_figure_shows_what_is_selected(record, several):
    view = scores(several, record=record, layer=1, query=4, reference="rollout")
    texts = [text.get_text() for text in view.figure().figure.axes[0].texts]
    without = spearman(raw(record).at(4, 1), rollout(record).at(4, 1))
    assert f"{without:.2f}".replace("-", "−") in texts
    assert "–" in texts  # gradients are of another query
    caption = view.figure().caption
    assert "for the query “<key>” at layer 1" in caption
    assert "What gradient_x_input says is of the read-out." in caption
    grounds = view.figure().figure.axes[0].collections[0].get_facecolors()
    darkest = int(np.argmin(grounds[:, :3].sum(-1)))
    assert darkest == int(raw(record).at(4, 1).argmax())


def test_hidden_tokens_and_words_are_said_in_the_figure(record, several):
    view = scores(several, record=record)
    plot = view.draw({**view.state, "special": False, "words": True, "threshold": 0.2, "scale": "shared"}, None)
    texts = [text.get_text() for text in plot.figure.axes[0].texts]
    assert "untold" in texts
    assert "[CLS]" not in texts
    mass = float(raw(record).scores[[0, 5]].sum())
    assert f"raw {100 * mass:.1f} %" in plot.caption
    assert "Scores below 0.2 of the end" in plot.caption


@pytest.mark.parametrize(("width", "layout"), [(6.8, "text"), (6.8, "aligned"), (3.3, "aligned")])
def test_a_long_text_is_printed_on_one_page_with_what_scores_high(width, layout):
    record = record_of([f"token{place}" for place in range(400)], None, layers=1)
    methods = [raw(record), rollout(record), signed(record)]
    view = scores(methods, record=record, layout=layout)
    plot = view.draw({**view.state, "keys": [7]}, width)
    assert 6 < plot.figure.get_size_inches()[1] <= 9
    texts = [text.get_text() for text in plot.figure.axes[0].texts]
    shown = {int(text.removeprefix("token")) for text in texts if text.startswith("token")}
    left = set(range(400)) - shown
    said = re.search(r"… stands for (\d+) of the 400 tokens, which reach at most ([\d.]+) of the scale", plot.caption)
    assert int(said[1]) == len(left) > 0
    shares = np.max([np.abs(one.scores.numpy()) / np.abs(one.scores.numpy()).max() for one in methods], axis=0)
    assert max(shares[list(left)]) == pytest.approx(float(said[2]), rel=0.1)
    assert min(shares[list(shown - {7})]) >= max(shares[list(left)])
    assert texts.count("token7") == 3  # pinned
    right = [text.get_window_extent().x1 for text in plot.figure.axes[0].texts]
    assert max(right) <= plot.figure.bbox.x1 + 1


def test_more_methods_than_a_page_holds_are_refused_with_a_way_out():
    record = record_of()
    view = scores([replace(raw(record), method=f"method{place}") for place in range(30)], record=record, layout="text")
    with pytest.raises(BadInput, match=r"room for 16 methods, and these are 30: choose some with view\.selecting"):
        view.figure()
    assert view.selecting(methods=["method3"]).figure()


@pytest.mark.parametrize(
    ("make", "options", "sentence"),
    [
        (lambda record: [], {}, "at least one method"),
        (lambda record: [raw(record), raw(record).words()], {}, "Methods stand side by side on the same tokens"),
        (lambda record: [raw(record), raw(record.select(layers=[0]))], {}, "has 3 layers and 6 queries"),
        (raw, {"layer": 3}, "There is no layer 3"),
        (raw, {"query": 6}, "There is no query 6: this text has 6 tokens"),
        (raw, {"layout": "wide"}, "There is no layout 'wide': choose one of aligned, text."),
        (raw, {"reference": "flow"}, "There is no reference 'flow'"),
        (raw, {"trust": 3}, "trust is a mapping"),
        (raw, {"trust": {"raw": 0.4}}, "The trust in raw is"),
        (raw, {"trust": pd.DataFrame({"method": ["raw"]})}, "This is no trust table"),
        (raw, {"record": record_of(["a", "b"], None)}, "This record is not the one that was scored"),
    ],
)
def test_bad_input_is_one_sentence(record, make, options, sentence):
    with pytest.raises(BadInput, match=sentence):
        scores(make(record), **options)


def test_the_figure_outlines_pinned_tokens_and_says_their_sums(record, several):
    view = scores(several[:2], record=record)
    plain = view.figure()
    plot = view.draw({**view.state, "keys": [2, 3], "words": True, "scale": "shared"}, None)
    assert len(plot.figure.axes[0].collections) == len(plain.figure.axes[0].collections) + 2  # one for each method
    first, second = (float(one.scores[2:4].sum()) for one in several[:2])
    assert f"Outlined: “untold”, in sum raw {first:.4g}, rollout {second:.4g}." in plot.caption
    assert "shares of one whole have one scale" in plot.caption


def test_the_figure_has_the_layout_that_is_chosen(record, several):
    long = record_of([f"word{number}" for number in range(30)], None)
    view = scores([raw(long), rollout(long)], record=long)
    aligned = view.draw({**view.state, "layout": "aligned"}, None).figure.axes[0]
    running = view.draw({**view.state, "layout": "text"}, None).figure.axes[0]
    names = [[text.get_text() for text in axes.texts if text.get_text() == "rollout"] for axes in (aligned, running)]
    assert len(names[0]) > 1  # before each line of the text
    assert len(names[1]) == 1

    def heights(axes, token):
        return [text.get_position()[1] for text in axes.texts if text.get_text() == token]

    assert heights(aligned, "word0")[1] < heights(aligned, "word29")[0]
    assert heights(running, "word29")[0] < heights(running, "word0")[1]


def test_what_a_state_names_that_is_not_there_is_as_on_the_screen(record, several):
    view = scores(several[:2], record=record)
    odd = {**view.state, "methods": ["nothing"], "reference": "nothing", "layer": 99}
    texts = [text.get_text() for text in view.draw(odd, None).figure.axes[0].texts]
    assert {"raw", "rollout", "ref."} <= set(texts)


def test_queries_that_are_all_masked_have_scores_of_nothing():
    record = AttentionRecord.from_weights(
        torch.zeros(2, 2, 3, 3), list("abc"), causal=False, masked_queries=[True] * 3, readout=0
    )
    view = scores(raw(record), record=record, query=1)
    assert view.html()
    assert not np.isnan(own_of(view)).any()
    assert "for the read-out" in view.figure().caption


@pytest.mark.parametrize(
    ("values", "quiet", "span"),
    [
        ([0.9, 0.02, 0.05, 0.01], [True, False, False, False], (0.0, 0.05)),
        ([0.6, 1.0, 0.8], [False] * 3, (0.6, 1.0)),
        ([1.0, 0.5, 0.51], [True, False, False], (0.5, 0.55)),
        ([0.6, 1.0, -0.1], [False, False, True], (0.0, 1.0)),
        ([0.2, 0.1, 0.0], [True, True, False], (0.0, 0.2)),
        ([math.nan, 0.0], [False, False], (0.0, 0.0)),
    ],
)
def test_a_scale_leaves_special_tokens_out_and_begins_late_where_all_are_alike(values, quiet, span):
    # the cases of tests/views/js/numbers.test.mjs: the printed figure has the colours of the screen
    scale = Scale.of(np.array(values), quiet)
    assert (scale.start, scale.end) == pytest.approx(span)
    beyond = [scale.is_beyond(value) for value in values]
    assert beyond == [value > span[1] + 1e-6 for value in values]
    assert all(-1 <= scale.share(value) <= 1 for value in values)


def test_a_row_of_one_special_token_still_shows_the_others(record):
    held = scores_of(record, "gradient_rollout", torch.tensor([0.97, 0.001, 0.004, 0.002, 0.003, 0.02]))
    view = scores([held], record=record)
    figure = view.draw(view.state, 6.8)
    assert "have an orange bar above" in figure.caption
    grounds = {
        colour
        for bars in figure.figure.axes[0].collections
        for colour in map(tuple, bars.get_facecolor().round(3).tolist())
    }
    assert len(grounds) == 5  # four words apart, the darkest like both special tokens, and the bar


def test_a_token_that_most_rests_on_is_a_sink_also_without_the_record(record):
    held = scores_of(record, "rollout", torch.tensor([0.01, 0.9, 0.03, 0.01, 0.04, 0.01]))
    view = scores([held, raw(record)])
    assert view.payload["keys"]["sinks"] == [1]
    assert scores([raw(record)]).payload["keys"]["sinks"] == []
    drawn = view.draw({**view.state, "methods": ["rollout"]}, 6.8)
    assert any(text.get_text() == "0.04" for text in drawn.figure.axes[0].texts)  # not 0.9
