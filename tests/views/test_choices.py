"""What cannot be shown or selected is refused in one sentence, and a page is called by what it shows."""

import re
import subprocess
import sys

import pytest
import torch

from attnscope import AttentionRecord, views
from attnscope.attribution import raw
from attnscope.errors import BadInput

RECORD = AttentionRecord.from_weights(
    torch.randn(3, 2, 4, 4, generator=torch.Generator().manual_seed(0)).softmax(-1),
    ["the", "key", "is", "lost"],
    causal=False,
    card={"model": "tiny <model>"},
)
MADE = {
    "head": views.head(RECORD),
    "model": views.model(RECORD),
    "flow": views.flow(RECORD),
    "tracing": views.tracing(RECORD),
    "scores": views.scores(raw(RECORD), record=RECORD),
}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("head", {"layer": 99}),
        ("head", {"layer": "1"}),
        ("head", {"layer": None}),
        ("head", {"layer": True}),
        ("head", {"heads": 1}),
        ("head", {"heads": [0, 2]}),
        ("head", {"heads": "01"}),
        ("head", {"queries": [4]}),
        ("head", {"words": 1}),
        ("head", {"threshold": -0.1}),
        ("head", {"threshold": float("nan")}),
        ("head", {"threshold": "high"}),
        ("head", {"between": "01"}),
        ("head", {"colour": "red"}),
        ("model", {"head": 7}),
        ("model", {"statistic": "luck"}),
        ("flow", {"layer": 3}),
        ("flow", {"keys": [-5]}),
        ("tracing", {"head": 2}),
        ("scores", {"layout": "wide"}),
        ("scores", {"methods": ["flow"]}),
        ("scores", {"reference": None}),
    ],
)
def test_what_is_not_there_cannot_be_selected(name, wrong):
    with pytest.raises(BadInput) as refused:
        MADE[name].selecting(**wrong)
    assert re.fullmatch(r"[^\n]+\.", str(refused.value))


def test_what_is_there_can_be_selected_from_either_end_or_not_at_all():
    chosen = MADE["head"].selecting(layer=-1, heads=(0, -1), queries=[3], threshold=0, words=True)
    assert chosen.state | {"layer": 2, "heads": [0, 1], "queries": [3], "threshold": 0.0, "words": True} == chosen.state
    assert chosen.selecting(heads=None).state["heads"] is None
    assert MADE["scores"].selecting(layer=None, methods=["raw"]).state["methods"] == ["raw"]


WRONG = """
import torch
from attnscope import AttentionRecord, views
from attnscope.errors import BadInput
record = AttentionRecord.from_weights(torch.full((3, 2, 4, 4), .25), ["the", "key", "is", "lost"], causal=False)
NAMES = ("head", "model", "neuron", "flow", "tracing", "scores")
calls = [(name, given, {}) for name in NAMES for given in (None, "a text", 3, [1, 2], torch.zeros(2, 2), {"a": 1})]
calls += [("head", record, {name: wrong}) for name, wrong in (
    ("layer", 1.5), ("layer", "last"), ("heads", 0), ("heads", ["first"]), ("heads", [None]), ("heads", {0: 1}),
    ("size_budget", "1 MB"), ("keys_per_query", 1.5), ("sentence_b_start", "two"))]
calls += [("model", record, wrong) for wrong in ({"layer": 0, "head": 5}, {"size_budget": 1e6})]
calls += [("flow", record, wrong) for wrong in ({"query": "the"}, {"key": 1.5}, {"layer": []}, {"queries": "ab"})]
calls += [("tracing", record, wrong) for wrong in ({"layer": "top"}, {"head": 1.5})]
calls += [("scores", views.scores, {}), ("survey", None, {"card": {}}), ("survey", {"a": 1}, {"card": {}}),
          ("learning", 3, {})]
for name, given, more in calls:
    try:
        views.VIEWS[name](given, **more)
        print("accepted", name, given, more)
    except BadInput as refused:
        if "\\n" in str(refused) or not str(refused).endswith("."):
            print("no sentence", name, refused)
    except Exception as error:
        print("raw", name, given, more, type(error).__name__, error)
"""


def test_what_is_no_record_and_wrong_arguments_are_refused_in_one_sentence():
    """In a process of its own: these tests check types at run time, and a user does not."""
    ran = subprocess.run([sys.executable, "-c", WRONG], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == ("", 0), ran.stderr


@pytest.mark.parametrize("name", MADE)
def test_a_saved_page_is_called_by_its_view_its_text_and_its_model(name, tmp_path):
    page = MADE[name].save(tmp_path / "page.html").read_text(encoding="utf-8")
    title = f"{name.capitalize()} view: “the key is lost” · tiny &lt;model&gt;"
    assert f"<title>{title}</title>" in page
    assert f"<h1>{title}</h1>" in page


def test_a_page_of_a_long_text_without_a_model_is_called_by_its_beginning():
    tokens = [f"token{place}" for place in range(40)]
    weights = torch.full((1, 1, 40, 40), 1 / 40)
    view = views.head(AttentionRecord.from_weights(weights, tokens, causal=False))
    assert view.title == "Head view: “token0 token1 token2 token3 token4 token5 token6 token7 tok…”"


def test_one_layer_that_is_asked_for_is_the_only_one_written():
    alone, every = views.head(RECORD, layer=-1), views.head(RECORD, layer=2, include_layers=[0, 2])
    assert (list(alone.blobs), alone.payload["weights"]["layers"], alone.state["layer"]) == (["layer0"], [2], 2)
    assert (len(every.blobs), every.state["layer"]) == (2, 2)
    assert len(views.head(RECORD).blobs) == 3
