"""The flow view in a browser: flows and cuts are Python's, offline, by pointer and by key, whatever the tokens are."""

import json

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import attnscope
from attnscope import AttentionRecord
from attnscope.views import flow, write_page

from .conftest import settled

TOKENS = ["[CLS]", "the", "un", "##believ", "##able", "key", "was", "lost", "[SEP]"]
SPECIAL = [True, *[False] * 7, True]
HOSTILE = ["<script>throw 1</script>", "</script>", '"', "'&amp;", "שלום", "\u202eevil", "x" * 10_000, "", "\n"]


def record_of(layers=4, heads=3, tokens=TOKENS, causal=False, special=SPECIAL, seed=0):
    count = len(tokens)
    scores = 2 * torch.randn(layers, 1, heads, count, count, generator=torch.Generator().manual_seed(seed))
    if causal:
        scores = scores.masked_fill(torch.ones(count, count).triu(1).bool(), -torch.inf)
    return AttentionRecord.from_weights(list(scores.softmax(-1)), tokens, causal, special=special)


def graph_of(record, residual=0.5):
    count = len(record.tokens)
    return (1 - residual) * record.weights.double().mean(1).numpy() + residual * np.eye(count)


def opened(page, tmp_path, *views, address=""):
    page.goto(write_page(tmp_path / "flow.html", list(views), "Flow").as_uri() + address)
    page.wait_for_selector("[data-drawn]")
    return page


def panel(page, place):
    return page.locator(".flow-panel").nth(place)


def scene(page, place):
    return panel(settled(page), place).locator(".graph").evaluate("canvas => canvas.scene")


def state(page, name, view=0):
    return page.evaluate("([view, name]) => attnscopeHost.models[view].get(name)", [view, name])


def choose(page, **values):
    """Selects as a notebook would, and waits until it is drawn."""
    script = (
        "values => { for (const [name, value] of Object.entries(values)) attnscopeHost.models[0].set(name, value); }"
    )
    page.evaluate(script, values)
    settled(page)


def grid_of(edges, layers, count):
    """The values of drawn edges of single tokens."""
    grid = np.zeros((layers, count, count))
    for edge in edges:
        grid[edge["layer"], edge["query"][0], edge["key"][0]] = edge["value"]
    return grid


@pytest.mark.parametrize("causal", [False, True])
def test_every_flow_and_cut_is_that_of_python(page, seen, tmp_path, causal):
    record = record_of(5, 3, [f"t{place}" for place in range(14)], causal, None, seed=3)
    opened(page, tmp_path, flow(record))
    expected = attnscope.flow(record)
    capacity = graph_of(record)
    random = np.random.default_rng(0)
    for layer in (0, 1, 2, 4):
        for query in random.permutation(14)[:4].tolist():
            for key in random.permutation(14)[:3].tolist():
                choose(page, layer=layer, queries=[query], keys=[key])
                drawn = scene(page, 2)
                # the browser's own flow is what leaves the source, and what the cut holds back
                cut = attnscope.minimum_cut(record, query, key, layer)
                found = {(edge["layer"], edge["query"][0], edge["key"][0]): edge["value"] for edge in drawn["cut"]}
                assert found == {(edge.layer, edge.query, edge.key): edge.capacity for edge in cut.edges}
                assert sum(found.values()) == pytest.approx(float(expected.map[layer, query, key]), abs=1e-12)
                expect(panel(page, 2).locator(".result")).to_contain_text(
                    f"{expected.map[layer, query, key]:.4f}", use_inner_text=True
                )
                edges = grid_of(drawn["edges"], 5, 14)
                assert (edges <= capacity + 1e-12).all()
                # lines fainter than a screen can show are left out of the scene
                faint = 14 * drawn["largest"] / 255
                assert edges[layer, query].sum() == pytest.approx(cut.flow, abs=faint)
                assert edges[0][:, key].sum() == pytest.approx(cut.flow, abs=faint)
    assert (seen.requests, seen.errors) == ([], [])


def test_lines_and_tokens_are_the_numbers_of_the_methods(page, tmp_path):
    record = record_of()
    opened(page, tmp_path, flow(record, 5, [], layer=2))
    capacity = graph_of(record)
    raw, rollout, flows = (scene(page, place) for place in range(3))
    lines = grid_of(raw["edges"], 4, 9)
    for edge in raw["edges"]:
        assert edge["value"] == pytest.approx(capacity[edge["layer"], edge["query"][0], edge["key"][0]], abs=1e-12)
        assert edge["opacity"] == pytest.approx(min(edge["value"] / raw["largest"], 1))
        assert edge["from"][1] < edge["to"][1]
        # grey: what stays on its token, or rests on [CLS] or [SEP]
        assert edge["rests"] == (edge["key"] == edge["query"] or edge["key"][0] in (0, 8))
    assert raw["largest"] == max(edge["value"] for edge in raw["edges"] if not edge["rests"])
    assert lines[3].sum() == 0
    assert set(np.nonzero(lines[2].sum(1))[0]) == {5}
    assert raw["scores"] == pytest.approx(record.weights[2, :, 5].mean(0).tolist(), abs=1e-6)

    mass = np.eye(9)[5]
    for layer in (2, 1, 0):
        along = mass[:, None] * capacity[layer]
        assert grid_of(rollout["edges"], 4, 9)[layer] == pytest.approx(along, abs=rollout["ends"][layer] / 255)
        # every layer has a scale of its own
        sideways = (along * ~np.eye(9, dtype=bool))[:, 1:-1]
        assert rollout["ends"][layer] == pytest.approx(max(sideways.max(), 1e-4))
        mass = along.sum(0)
    assert rollout["scores"] == pytest.approx(attnscope.rollout(record).at(5, 2).tolist(), abs=1e-7)
    assert flows["scores"] == pytest.approx(attnscope.flow(record).at(5, 2).tolist(), abs=1e-7)
    assert flows["cut"] == []


def test_pointing_tells_the_exact_numbers_and_previews_the_flow(page, tmp_path):
    record = record_of()
    opened(page, tmp_path, flow(record, 0, []))
    before = panel(page, 2).bounding_box()
    panel(page, 1).locator(".keys .token").nth(5).hover()
    value, row = attnscope.flow(record).at(0)[5], attnscope.rollout(record).at(0)
    rank = 1 + int((row > row[5]).sum())
    lines = page.locator(".note").inner_text().split("\n")
    assert lines[0] == "“key”"
    assert lines[1].startswith(f"Raw attention: {record.weights[-1, :, 0, 5].mean():.4f}, rank ")
    assert lines[2] == f"Rollout: {row[5]:.4f}, rank {rank} of 9"
    assert lines[3].startswith(f"Flow: {value:.4f}, rank ")
    expect(panel(page, 2).locator(".result")).to_contain_text(f"to “key”: {value:.4f}", use_inner_text=True)
    assert len(scene(page, 2)["cut"]) == len(attnscope.minimum_cut(record, 0, 5).edges)
    assert state(page, "keys") == []
    assert panel(page, 2).bounding_box() == before
    page.mouse.move(2, 2)
    assert scene(page, 2)["cut"] == []

    edge = max(scene(page, 0)["edges"], key=lambda edge: edge["value"])
    middle = {"x": (edge["from"][0] + edge["to"][0]) / 2, "y": (edge["from"][1] + edge["to"][1]) / 2}
    panel(page, 0).locator(".graph").hover(position=middle)
    assert (
        f"Layer {edge['layer']}: attention with the residual {edge['value']:.4f}" in page.locator(".note").inner_text()
    )


def test_choosing_by_click_and_key(page, tmp_path):
    opened(page, tmp_path, flow(record_of(), 0))
    panel(page, 0).locator(".queries .token").nth(6).click()
    assert state(page, "queries") == [6]
    panel(page, 2).locator(".keys .token").nth(1).click()
    assert state(page, "keys") == [1]
    panel(page, 0).locator(".keys .token").nth(5).click(modifiers=["Shift"])
    assert state(page, "keys") == [1, 5]
    page.keyboard.press("Escape")
    assert state(page, "keys") == []
    page.keyboard.press("ArrowLeft")
    assert state(page, "layer") == 2
    panel(page, 1).locator(".keys .token").first.focus()
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    assert state(page, "keys") == [1]
    page.keyboard.press("t")
    assert state(page, "threshold") == 0.05
    page.wait_for_function("document.querySelector('.said').textContent.includes('Lines below 0.050')")
    assert all(edge["value"] >= 0.05 for place in range(3) for edge in scene(page, place)["edges"])
    expect(page.get_by_text("of the mass of rollout")).to_be_visible()


def test_words_add_up_and_hidden_tokens_are_still_computed_with(page, tmp_path):
    record = record_of()
    opened(page, tmp_path, flow(record, 0))
    page.keyboard.press("Tab")
    page.keyboard.press("w")
    choose(page, special=False, queries=[2, 3, 4], keys=[2, 3, 4])
    expect(panel(page, 0).locator(".keys .token")).to_have_text(
        ["the", "unbelievable", "key", "was", "lost"], use_inner_text=True
    )
    flows = attnscope.flow(record).map[-1, 2:5].mean(0)
    assert scene(page, 2)["scores"][1] == pytest.approx(float(flows[2:5].sum()), abs=1e-6)
    expect(panel(page, 2).locator(".result")).to_contain_text(
        f"to “unbelievable”: {flows[2:5].sum():.4f}", use_inner_text=True
    )
    rolled = attnscope.rollout(record).map[-1, 2:5].mean(0)
    assert scene(page, 1)["scores"][1] == pytest.approx(float(rolled[2:5].sum()), abs=1e-6)
    hidden = float(rolled[0] + rolled[8])
    assert (
        f"computed on all tokens, and they hold {100 * hidden:.1f} % of the rollout"
        in page.locator(".said").inner_text()
    )
    top = [edge for edge in scene(page, 0)["edges"] if edge["layer"] == 3 and edge["key"] == [5]]
    assert top[0]["value"] == pytest.approx(graph_of(record)[3, 2:5, 5].mean(), abs=1e-12)


def test_lines_too_faint_to_be_seen_are_counted(page, tmp_path):
    weights = torch.tensor([0.9, 0.06, 0.03, 0.0099, 0.0001]).expand(1, 1, 1, 5, 5)
    opened(page, tmp_path, flow(AttentionRecord.from_weights(list(weights), list("abcde"), False), 0, []))
    # from the source at the only layer there are five lines in each panel; scales end with what leads to another token,
    # 0.03, and the weakest, 0.00005, is below 1/255 of that
    assert [len(scene(page, place)["edges"]) for place in range(3)] == [4, 4, 4]
    assert scene(page, 1)["largest"] == pytest.approx(0.03)
    assert {edge["opacity"] for edge in scene(page, 1)["edges"] if edge["value"] >= 0.03} == {1}
    assert "3 lines too faint to be seen, below 1/255 of the end of their scale, are not drawn." in (
        page.locator(".said").inner_text()
    )


def test_who_reads_by_key_stays_on_the_token_when_tokens_become_words(page, seen, tmp_path):
    opened(page, tmp_path, flow(record_of(), 0, []))
    panel(page, 0).locator(".keys .token").nth(4).focus()
    page.keyboard.press("w")
    settled(page)
    assert page.evaluate("document.activeElement.textContent") == "unbelievable"
    expect(page.locator(".note div").first).to_have_text("“unbelievable”", use_inner_text=True)
    page.keyboard.press("Shift+Enter")
    assert state(page, "keys") == [2, 3, 4]
    assert seen.errors == []


def test_saturation_is_said_in_words_and_by_layer(page, tmp_path):
    record = record_of()
    opened(page, tmp_path, flow(record, 0))
    share = attnscope.flow(record).saturation
    said = page.locator(".saturation").inner_text()
    own = round(9 * float(attnscope.flow(record, layers=[3], queries=[0]).saturated[3]))
    assert (
        f"Of the 9 flows from “[CLS]” at layer 3 to the tokens that it can reach, {own} ({100 * own / 9:.1f} %)" in said
    )
    # from the whole read-out, a mean, the view counts what the method warns of
    choose(page, queries=list(range(9)))
    met = round(81 * float(share.total[3]))
    assert f"Of the 81 flows from all 9 tokens on average at layer 3 to the tokens that it can reach, {met} (" in (
        page.locator(".saturation").inner_text()
    )
    choose(page, queries=[0])
    page.get_by_text("Saturation by layer").click()
    cells = page.get_by_role("row").nth(1).locator("th, td").all_inner_texts()
    assert cells == ["0", *(f"{100 * float(side[0]):.1f} %" for side in (share.total, share.source, share.token))]
    page.get_by_text("View as table").click()
    row = page.locator(".foot > details").last.get_by_role("row").nth(1)
    expect(row.locator("th")).to_have_text("[CLS]", use_inner_text=True)
    expect(row.locator("td").last).to_have_text(
        f"{attnscope.flow(record).at(int(record.readout.argmax()))[0]:.4f}", use_inner_text=True
    )


def test_a_long_text_says_what_was_not_computed(page, seen, tmp_path):
    tokens = [f"token{place}" for place in range(512)]
    record = record_of(3, 1, tokens, True, None, seed=1)
    opened(page, tmp_path, flow(record, 500, 480))
    expect(page.locator(".said")).to_contain_text("name the sources with queries=", use_inner_text=True)
    found = attnscope.minimum_cut(record, 500, 480)
    expect(panel(page, 2).locator(".result")).to_contain_text(f"to “token480”: {found.flow:.4f}", use_inner_text=True)
    expected = attnscope.rollout(record, queries=[500]).at(500)
    # quiet tokens are folded away until they are asked for: no token is out of sight, and those chosen are there
    shown = panel(page, 0).locator(".queries .token").all_inner_texts()
    assert {"token500", "token480"} <= set(shown)
    assert 16 < len(shown) < 80
    areas = (
        "() => Math.max(...[...document.querySelectorAll('.area')].map(area => area.scrollWidth - area.clientWidth))"
    )
    assert page.evaluate(areas) == 0
    assert f"{512 - len(shown)} quiet tokens are folded away" in page.locator(".said").inner_text()
    page.get_by_label("Fold quiet tokens").uncheck()
    assert scene(page, 1)["scores"] == pytest.approx(expected.tolist(), abs=1e-6)
    assert sum(edge["value"] for edge in scene(page, 2)["cut"]) == pytest.approx(found.flow, rel=1e-6)
    expect(panel(page, 0).locator(".queries .token").nth(500)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert (seen.requests, seen.errors) == ([], [])


def test_hostile_tokens_change_nothing(page, seen, tmp_path):
    record = record_of(2, 1, HOSTILE, special=None)
    opened(page, tmp_path, flow(record, 0, 1))
    assert panel(page, 0).locator(".keys .token").first.inner_text() == HOSTILE[0]
    panel(page, 0).locator(".keys .token").nth(6).hover()
    expect(page.locator(".note")).to_contain_text("xxx…”", use_inner_text=True)
    choose(page, queries=[99], layer=7)
    assert panel(page, 0).bounding_box()["height"] < 700
    assert (seen.requests, seen.errors) == ([], [])


def test_narrow_and_dark_and_two_on_one_page(page, seen, tmp_path):
    page.set_viewport_size({"width": 360, "height": 800})
    page.emulate_media(color_scheme="dark")
    opened(page, tmp_path, flow(record_of(), 0, 1), flow(record_of(causal=True, seed=2), 5))
    page.wait_for_function("document.querySelectorAll('[data-drawn]').length === 2")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    boxes = [panel(page, place).bounding_box() for place in range(3)]
    assert boxes[0]["x"] == boxes[1]["x"] == boxes[2]["x"]
    panel(page, 3).locator(".keys .token").nth(2).click()
    assert (state(page, "keys", 0), state(page, "keys", 1)) == ([1], [2])
    page.set_viewport_size({"width": 1200, "height": 800})
    page.wait_for_function(
        "() => { const [a, b] = [...document.querySelectorAll('.flow-panel')].map(p => p.getBoundingClientRect());"
        " return a.top === b.top && a.left < b.left; }"
    )
    # at a width at which one explanation has a line more than another, layers stay on one height
    page.set_viewport_size({"width": 940, "height": 800})
    page.wait_for_function("() => document.querySelector('.panels.beside')")
    tops = [panel(page, place).locator(".graph").bounding_box()["y"] for place in range(3)]
    words = [panel(page, place).locator(".means").bounding_box()["height"] for place in range(3)]
    assert tops[0] == tops[1] == tops[2]
    assert len(set(words)) > 1
    assert (seen.requests, seen.errors) == ([], [])


def test_a_link_restores_what_is_selected(page, tmp_path):
    kept = [{"layer": 1, "queries": [3], "keys": [5], "special": False, "root": True}]
    opened(page, tmp_path, flow(record_of(), 0, 1), address="#" + json.dumps(kept))
    expect(panel(page, 2).locator(".result")).to_contain_text("from “believ” at layer 1 to “key”", use_inner_text=True)
    expect(panel(page, 0).locator(".keys .token")).to_have_count(7)
    drawn = scene(page, 1)
    weaker = drawn["edges"][0]
    assert 0 < weaker["opacity"] == pytest.approx((weaker["value"] / drawn["ends"][weaker["layer"]]) ** 0.5)
