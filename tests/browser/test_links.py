"""A link may say anything: what does not fit a view changes nothing, in every view."""

import json
from dataclasses import replace
from urllib.parse import quote

import pandas as pd
import pytest
import torch
from playwright.sync_api import expect

from attnscope import AttentionRecord, compare, views
from attnscope.attribution import raw
from attnscope.views.choices import KEPT

from .conftest import settled

NONSENSE = ["x", -1, 1.5, 10**9, True, {}, [], [None], [-1], [1.5], ["x"], [[1]], {"a": 1}, None]


def a_record():
    torch.manual_seed(0)
    weights = torch.randn(2, 3, 5, 5).softmax(-1)
    return AttentionRecord(
        weights=weights, query_tokens=tuple("abcde"), key_tokens=tuple("abcde"), stack="encoder", causal=False,
        readout=torch.eye(5)[0], queries=torch.randn(2, 3, 5, 4), keys=torch.randn(2, 3, 5, 4), scaling=(0.5, 0.5),
    )  # fmt: skip


MADE = {
    "head": lambda record: views.head(record, sentence_b_start=2),
    "model": lambda record: views.model(record, sentence_b_start=2),
    "neuron": views.neuron,
    "flow": views.flow,
    "tracing": views.tracing,
    "scores": lambda record: views.scores(compare(record), record=record),
    "image": lambda record: views.image(raw(record), torch.rand(3, 8, 20), grid=(1, 5)),
    "learning": lambda _: views.learning(
        [{"step": step, "quantity": "A", "name": name, "value": step} for step in range(3) for name in "xy"]
    ),
}


TABLE = pd.DataFrame([{"layer": layer, "head": head, "value": 0.5} for layer in range(2) for head in range(3)])
SURVEY = {"entropy": TABLE, "patterns": TABLE.assign(pattern="next"), "roles": TABLE.assign(role="broad")}


def test_every_view_but_two_is_tried():
    assert MADE.keys() == views.VIEWS.keys() - {"survey", "answer"}  # test_answer_view tries the link of an answer


@pytest.fixture(scope="module")
def address_and_states(tmp_path_factory):
    made = [make(a_record()) for make in MADE.values()]
    path = views.write_page(tmp_path_factory.mktemp("links") / "views.html", made, "Every view")
    return path.as_uri(), [view.state for view in made]


@pytest.mark.parametrize("value", NONSENSE, ids=json.dumps)
def test_nonsense_is_drawn_like_nothing(page, seen, address_and_states, value):
    """All views on one page, and in its link the same for everything that each of them knows, and for more."""
    address, states = address_and_states
    said = [dict.fromkeys([*state, "payload", "blobs", "other"], value) for state in states]
    page.goto(f"{address}#{quote(json.dumps(said))}")
    expect(page.locator("[data-drawn]")).to_have_count(len(MADE))
    for name, text in zip(MADE, settled(page).locator(".view").all_inner_texts(), strict=True):
        assert "NaN" not in text, name
        assert "undefined" not in text, name
    assert seen.errors == []


def another(view, name):
    """A value of its kind that the view does not open with."""
    allowed = [value for value in view.choices.get(name, ()) if value is not None]
    return {
        "number": lambda: next(number for number in allowed or (1, 2) if number != view.state[name]),
        "numbers": lambda: [1],
        "switch": lambda: not view.state[name],
        "share": lambda: 0.25,
        "text": lambda: next(text for text in allowed or ("log", "patterns", "broad") if text != view.state[name]),
        "texts": lambda: [allowed[-1] if allowed else "next"],
        "places": lambda: [[1, 2]],
        "sorting": lambda: ["mean", True],
    }[KEPT[name].kind]()


@pytest.mark.parametrize("name", views.VIEWS)
def test_all_that_a_view_declares_survives_a_link(page, seen, tmp_path, name):
    """What is chosen in one page is in its address, and a second page that is opened with it has chosen the same."""
    view = MADE[name](a_record()) if name in MADE else views.survey(SURVEY, {"model": "tiny"})
    wanted = {kept: another(view, kept) for kept in view.state}
    assert wanted.keys() == view.kept.keys()
    address = view.save(tmp_path / "view.html").as_uri()
    page.goto(address)
    expect(page.locator("[data-drawn]")).to_have_count(1)
    page.evaluate(
        "(all) => { const [model] = attnscopeHost.models;"
        " for (const [name, value] of Object.entries(all)) model.set(name, value); model.save_changes(); }",
        wanted,
    )
    link = settled(page).evaluate("location.hash")
    page.goto("about:blank")
    page.goto(f"{address}{link}")
    expect(settled(page).locator("[data-drawn]")).to_have_count(1)
    assert page.evaluate("attnscopeHost.models[0].state()") == wanted
    assert seen.errors == []


def test_a_script_that_chooses_what_its_view_does_not_declare_fails(page, seen, tmp_path):
    view = views.head(a_record())
    less = replace(view, state={name: value for name, value in view.state.items() if name != "words"})
    page.goto(less.save(tmp_path / "view.html").as_uri())
    expect(page.locator(".view")).to_have_count(1)
    page.wait_for_function("() => document.querySelector('[aria-busy]') === null")
    assert any("keeps no words" in error for error in seen.errors)
