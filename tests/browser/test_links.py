"""A link may say anything: what does not fit a view changes nothing, in every view."""

import json
from urllib.parse import quote

import pytest
import torch
from playwright.sync_api import expect

from attnscope import AttentionRecord, compare, views
from attnscope.attribution import raw

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
    "head": views.head,
    "model": views.model,
    "neuron": views.neuron,
    "flow": views.flow,
    "tracing": views.tracing,
    "scores": lambda record: views.scores(compare(record), record=record),
    "image": lambda record: views.image(raw(record), torch.rand(3, 8, 20), grid=(1, 5)),
    "learning": lambda _: views.learning(
        [{"step": step, "quantity": "A", "name": name, "value": step} for step in range(3) for name in "xy"]
    ),
}


def test_every_view_but_the_survey_is_tried():
    assert MADE.keys() == views.VIEWS.keys() - {"survey"}


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
