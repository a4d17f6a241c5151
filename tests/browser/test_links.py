"""A link may say anything: what does not fit a view changes nothing, in every view."""

import json
from urllib.parse import quote

import pytest
import torch

from attnscope import AttentionRecord, compare, views

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
}


def test_every_view_of_a_record_is_tried():
    assert MADE.keys() == views.VIEWS.keys() - {"survey"}


@pytest.mark.parametrize("name", MADE)
def test_nonsense_is_drawn_like_nothing(page, seen, name, tmp_path):
    view = MADE[name](a_record())
    address = view.save(tmp_path / "view.html").as_uri()
    for value in NONSENSE:
        page.goto("about:blank")
        page.goto(f"{address}#{quote(json.dumps([dict.fromkeys([*view.state, 'payload', 'blobs', 'other'], value)]))}")
        page.wait_for_selector("[data-drawn]", timeout=20_000)
        assert "NaN" not in page.locator(".view").inner_text()
        assert "undefined" not in page.locator(".view").inner_text()
    assert seen.errors == []
