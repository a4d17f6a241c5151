"""One text by every method."""

import io
import json

import pytest
import torch
from rich.console import Console

import attnscope
from attnscope.explaining import explain, show

TEXT = "the key to the cabinets"


@pytest.fixture(scope="module")
def model():
    return attnscope.load("demo")


def printed(explanation):
    file = io.StringIO()
    show(Console(file=file, width=160), explanation)
    return file.getvalue()


def test_every_method_is_there_and_warnings_are_said(model):
    explanation = explain(model, TEXT)
    assert set(explanation.comparison.methods) == set(attnscope.METHODS) - {"lat"}
    text = printed(explanation)
    assert "flow: " in text
    assert "no longer depends on the query" in text
    assert json.loads(json.dumps(explanation.to_dict()))["prediction"][0]["label"] == "singular"


def test_another_query_and_layer(model):
    record = model.record(TEXT)
    explanation = explain(model, TEXT, ["rollout", "flow", "gradient"], query=2, layer=1)
    assert explanation.comparison.methods == ("rollout", "flow")
    assert "gradient" in explanation.comparison.left_out
    expected = attnscope.rollout(record).at(query=2, layer=1)
    torch.testing.assert_close(explanation.comparison.scores[0].scores, expected)
    only_layer = explain(model, TEXT, ["rollout"], layer=0)
    torch.testing.assert_close(
        only_layer.comparison.scores[0].scores, record.readout @ attnscope.rollout(record).map[0]
    )


def test_questions_that_cannot_be_answered_get_one_sentence(model):
    for options, sentence in (
        ({"methods": ["guess"]}, "no method 'guess'"),
        ({"methods": ["gradient"], "query": 0}, "has a map"),
        ({"methods": ["rollout"], "query": 99}, "no query 99"),
        ({"methods": ["rollout"], "layer": 9}, "no layer 9"),
    ):
        with pytest.raises(attnscope.BadInput, match=sentence):
            explain(model, TEXT, **options)


def test_a_headless_model_still_shows_what_attention_says(real_model):
    explanation = explain(attnscope.load(real_model("minilm")), "The key to the cabinets.")
    assert "rollout" in explanation.comparison.methods
    assert "blank_out" in explanation.comparison.left_out
    assert "no answer" in printed(explanation)
