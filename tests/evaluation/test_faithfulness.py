"""trust, end to end on the shipped model: figures, resuming, and what it refuses."""

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch

import attnscope
from attnscope.attribution import blank_out, raw, rollout
from attnscope.errors import BadInput
from attnscope.evaluation.faithfulness import price
from attnscope.evaluation.per_text import BASELINES, layer_scores
from attnscope.record.scores import scores_of


@pytest.fixture(scope="module")
def sentences(sentences):
    """Fewer than elsewhere: each is run some fifty times."""
    return sentences[:12]


@pytest.fixture(scope="module")
def result(demo, sentences):
    return attnscope.trust(demo, sentences, ["raw", "rollout"])


def own(table, method, against="blank_out", measure="spearman", special="without"):
    chosen = table[
        (table["bucket"] == "all")
        & table["layer"].isna()
        & (table["method"] == method)
        & (table["against"] == against)
        & (table["measure"] == measure)
        & (table["special"] == special)
    ]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_every_figure_is_there(result, demo, sentences):
    table = result.table
    layers = demo.model.config.num_hidden_layers
    columns = "method layer against measure special bucket value low high texts baseline above above_low above_high"
    assert list(table.columns) == columns.split()
    assert set(table["method"]) == {"raw", "rollout", "blank_out", "gradient", *BASELINES}
    everywhere = table[table["bucket"] == "all"]
    mapped = everywhere[everywhere["method"].isin(["raw", "rollout"]) & everywhere["layer"].notna()]
    assert len(mapped) == 2 * layers * 2 * 3 * 2  # methods, layers, references, rank measures, special
    assert not everywhere["layer"][everywhere["method"] == "gradient"].notna().any()
    assert (everywhere["texts"] <= len(sentences)).all()
    inside = everywhere.dropna(subset=["low"])
    assert (inside["low"] <= inside["value"] + 1e-12).all()
    assert (inside["value"] <= inside["high"] + 1e-12).all()
    assert not ((table["method"] == "gradient") & (table["against"] == "gradient")).any(), "held against itself"


def test_the_figures_are_those_of_a_plain_loop(result, demo, sentences):
    found = {"with": [], "without": []}
    for text in sentences:
        record = demo.record(text)
        pairs = zip(*(method.scores.double() for method in (rollout(record), blank_out(record, demo))), strict=True)
        rows = np.array([[float(value) for value in pair] for pair in pairs]).round(9)
        found["with"].append(scipy.stats.spearmanr(*rows.T).statistic)
        found["without"].append(scipy.stats.spearmanr(*rows[1:-1].T).statistic)
    for special, values in found.items():
        assert own(result.table, "rollout", special=special)["value"] == pytest.approx(np.mean(values), abs=1e-4)


def test_the_last_layer_is_the_method_itself(result, demo):
    last = demo.model.config.num_hidden_layers - 1
    table = result.table[(result.table["bucket"] == "all") & (result.table["method"] == "rollout")]
    keys = ["against", "measure", "special"]
    ranked = table[table["against"] != "erasure"]
    merged = ranked[ranked["layer"].isna()].merge(ranked[ranked["layer"] == last], on=keys)
    assert len(merged) == 12
    np.testing.assert_allclose(merged["value_x"], merged["value_y"], atol=1e-6)


def test_random_is_near_nothing(result):
    assert own(result.table, "random", "gradient")["low"] < 0.1
    assert own(result.table, "random", "gradient")["high"] > -0.1


def test_a_method_made_of_the_answer_is_trusted(demo, sentences):
    def oracle(record, model):
        return blank_out(record, model)

    result = attnscope.trust(demo, sentences[:4], [oracle], against=["blank_out"])
    assert own(result.table, "oracle")["value"] == pytest.approx(1.0)
    assert result.verdict().startswith("Only 4 texts were read, so these are figures without a verdict")
    assert "Conclusion" not in result.verdict()


def test_layers_can_be_chosen(demo, sentences):
    result = attnscope.trust(demo, sentences[:2], ["raw"], against=["gradient"], layers=[0, -1])
    assert set(result.table["layer"].dropna()) == {0, demo.model.config.num_hidden_layers - 1}


def test_layer_scores_of_a_spread_readout_are_its_rows_of_the_map():
    weights = torch.rand(2, 2, 4, 4).softmax(-1)
    record = attnscope.AttentionRecord.from_weights(weights, list("abcd"), causal=False)
    found = layer_scores(record, raw(record), None)
    for layer in (0, 1):
        torch.testing.assert_close(found[layer], record.readout @ raw(record).map[layer])
    assert layer_scores(record, scores_of(record, "flat", torch.ones(4)), None) == {}


def test_pairs_and_split_words_are_texts(demo):
    texts = [("the key to", "the cabinets"), ["the", "keys"]]
    assert attnscope.trust(demo, texts, ["raw"], against=["gradient"]).card["texts"] == 2


def test_by_default_everything_that_reads_a_record(demo, sentences):
    result = attnscope.trust(demo, sentences[:2])
    assert {"raw", "rollout", "flow", "layerwise_tracing", "gradient_x_input"} <= set(result.table["method"])
    assert "integrated_gradients" not in set(result.table["method"]), "it runs the model again"
    assert result.card["left_out"] == {}


# ---- killed and resumed


def test_killed_in_the_middle_and_resumed_it_ends_with_the_same_table(demo, sentences, tmp_path):
    calls = []

    def fragile(record):
        calls.append(record)
        if len(calls) == 9:  # three to set up, then one for each text: in the middle of the third batch
            raise KeyboardInterrupt
        return raw(record, layer=0)

    sentences = sentences[:6]
    options = dict(methods=["raw", fragile], against=["gradient"], batch_size=2)
    with pytest.raises(KeyboardInterrupt):
        attnscope.trust(demo, sentences, out=tmp_path / "cut", **options)
    kept = sorted(path.name for path in (tmp_path / "cut" / "unfinished").iterdir())
    assert kept == ["000000.safetensors", "000001.safetensors", "recipe.json"]
    resumed = attnscope.trust(demo, iter(sentences), out=tmp_path / "cut", resume=True, **options)
    assert len(calls) == 9 + 3 + len(sentences) - 4, "the first two batches were not computed again"
    through = attnscope.trust(demo, sentences, **options)
    pd.testing.assert_frame_equal(resumed.table, through.table, check_exact=True)
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == ["trust.csv", "trust.json"]


def test_what_is_saved_is_loaded_exactly_and_a_finished_run_is_given_back(demo, sentences, tmp_path):
    asked = dict(methods=["raw"], against=["gradient"], out=tmp_path / "out")
    made = attnscope.trust(demo, sentences[:3], **asked)
    pd.testing.assert_frame_equal(attnscope.Trust.load(tmp_path / "out").table, made.table, check_exact=True)
    again = attnscope.trust(demo, sentences[:3], resume=True, **asked)
    pd.testing.assert_frame_equal(again.table, made.table, check_exact=True)
    with pytest.raises(BadInput, match="already holds a finished measurement"):
        attnscope.trust(demo, sentences[:3], **asked)
    with pytest.raises(BadInput, match=r"another measurement \(seed was 0, is now 1\)"):
        attnscope.trust(demo, sentences[:3], resume=True, seed=1, **asked)


def test_the_cost_is_told_before_and_the_texts_are_counted(demo):
    seen = []
    texts = ["the key", "the keys", "the dog", "the dogs", "the boy"]
    attnscope.trust(demo, texts, ["raw"], ["gradient"], batch_size=2, watch=lambda *told: seen.append(told))
    assert [done for done, _ in seen] == [0, 2, 4, 5]
    assert seen[0][1].texts == 5


def test_the_cost_bounds_the_runs():
    cost = price([10, 20], scored=4, running=1, gradients=True)
    assert (cost.texts, cost.tokens, cost.backward, cost.blank_out) == (2, 30, 2, 30)
    # shares of 10 tokens are 1, 2 or 5 of them, of 20 they are 1, 2, 4 or 10
    assert cost.erasure == 4 * 4 * (3 + 4)
    assert "at most 144 forward runs" in str(cost)


# ---- what is shown


def test_shown_in_a_notebook_and_as_text(result):
    page = result._repr_html_()
    assert "rollout" in page
    assert "need not be an explanation" in page
    assert result.verdict() in repr(result)
    assert list(result.summary().columns) == ["blank_out", "gradient", "comprehensiveness", "sufficiency"]
    assert list(result.summary().index)[-3:] == list(BASELINES)


def test_the_name_of_a_method_is_escaped(demo, sentences):
    def method(record):
        return raw(record)

    method.__name__ = "<script>"
    assert "<script>" not in attnscope.trust(demo, sentences[:2], [method], ["gradient"])._repr_html_()


# ---- refused


def test_bad_input(demo, sentences, tmp_path):
    def refused(match, *arguments, **options):
        with pytest.raises(BadInput, match=match):
            attnscope.trust(demo, *arguments, **options)

    refused("There is no file 'the key': a corpus is .* or a list of sentences or texts", "the key")
    refused("not a mapping", {"the key": 1})
    refused("no texts", [])
    refused(r"Text 1 \(counted from 0\): The text is empty", ["the key", " "])
    refused(r"Text 0 \(counted from 0\): This text has", ["the key " * 99])
    refused("There is no method 'nope'", ["the key"], ["nope"])
    refused("at least one reference", ["the key"], ["raw"], [])
    refused("There is no layer 6", ["the key"], ["raw"], layers=[6])
    refused("top must be at least 1, not 0", ["the key"], top=0)
    refused("batch_size must be at least 1, not 0", ["the key"], batch_size=0)
    refused("seed must be at least 0, not -1", ["the key"], seed=-1)
    (tmp_path / "file").write_text("")
    refused("A measurement is kept in a folder, but .* is a file", ["the key"], out=tmp_path / "file")
    refused("is not empty and holds no measurement", ["the key"], out=tmp_path, resume=True)

    def random(record):
        return raw(record)

    refused("Two methods are called 'random'", ["the key"], [random])
    with pytest.raises(BadInput, match="holds no finished trust table"):
        attnscope.Trust.load(tmp_path)


def test_a_refused_run_leaves_nothing_behind(demo, tmp_path):
    with pytest.raises(BadInput):
        attnscope.trust(demo, ["the key", ""], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_where_the_probability_does_not_move_blank_out_follows_the_log_odds(demo, sentences, monkeypatch):
    texts = sentences[:3]
    unmoved = attnscope.trust(demo, texts, ["raw"], against=["blank_out"])
    monkeypatch.setattr(sys.modules["attnscope.attribution.blank_out"], "NOTHING", 2.0)  # no change is as large
    moved = attnscope.trust(demo, texts, ["raw"], against=["blank_out"])
    assert (unmoved.card["on_log_odds"], moved.card["on_log_odds"]) == (0, 3)
    assert moved.verdict().endswith(
        "On 3 of 3 texts no token moves the probability by 0.01: there blank-out follows the log-odds."
    )
    assert "log-odds" not in unmoved.verdict()
    for result, quantity in ((unmoved, "probability"), (moved, "log_odds")):
        agreements = []
        for text in texts:
            record = demo.record(text)
            kept = [place for place, special in enumerate(record.key_special) if not special]
            reference = attnscope.blank_out(record, demo, quantity=quantity).scores[kept]
            agreements.append(scipy.stats.spearmanr(attnscope.raw(record).scores[kept], reference).statistic)
        found = result.summary().loc["raw", "blank_out"]
        assert found == pytest.approx(sum(agreements) / len(agreements), abs=1e-6)
