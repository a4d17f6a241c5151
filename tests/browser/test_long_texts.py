"""Long texts in a browser: only what is in sight is made, strips lead to the rest, and figures are true."""

import re

import pytest
import torch
from playwright.sync_api import expect

from attnscope import VectorRecord
from attnscope.attribution import raw, rollout
from attnscope.paint import colour, rgb
from attnscope.record.vectors import LayerVectors, normalizers_of
from attnscope.views import head, model, scores

from .conftest import Seen, settled

TOKENS = 3000
NODES = 2000
"""More elements than any of these pages has: one for each token would be more."""


@pytest.fixture(scope="module")
def record():
    """One layer of two heads: the first looks one token back, the second anywhere."""
    torch.manual_seed(0)
    turns = torch.arange(-1, TOKENS).unsqueeze(-1) / torch.tensor([2.0, 17.0, 301.0])
    turning = torch.cat([turns.cos(), turns.sin()], -1)
    keys = torch.stack([turning[1:], torch.randn(TOKENS, 6)]).unsqueeze(0)
    queries = torch.stack([40 * turning[:-1], 2 * torch.randn(TOKENS, 6)]).unsqueeze(0)
    normalizers = normalizers_of(LayerVectors(queries[0], keys[0], torch.zeros(2, TOKENS), 1.0, ahead=0)).unsqueeze(0)
    names = tuple(f"Ġword{number}" for number in range(TOKENS))
    return VectorRecord(
        queries=queries,
        group_keys=keys,
        normalizers=normalizers,
        scaling=(1.0,),
        back=(None,),
        ahead=(0,),
        query_tokens=names,
        key_tokens=names,
        stack="decoder",
        causal=True,
        readout=torch.eye(TOKENS)[-1],
    )


def open_view(page, view, tmp_path):
    page.set_viewport_size({"width": 1200, "height": 900})
    page.goto(view.save(tmp_path / "long.html").as_uri())
    page.wait_for_selector("[data-drawn]")
    assert settled(page).evaluate("document.querySelectorAll('*').length") < NODES
    return page


def test_the_scores_of_a_long_text_are_a_document_with_strips(page, record, seen, tmp_path):
    methods = [raw(record), rollout(record)]
    open_view(page, scores(methods, record=record), tmp_path)
    token = page.locator(".document .token")
    lines = page.locator(".document").evaluate("node => node.scene.lines")
    assert lines > 100
    # a click near the foot of a strip goes there
    strip = page.locator(".document canvas").nth(1)
    box = strip.bounding_box()
    strip.click(position={"x": 5, "y": box["height"] - 2})
    last = token.filter(has_text=f"word{TOKENS - 1}")
    expect(last).to_be_visible()
    expect(token.filter(has_text="word0")).to_have_count(0)
    assert page.evaluate("document.querySelectorAll('*').length") < NODES
    # no line is wider than the document, and all tokens in sight are in the order of the text
    assert page.locator(".document .area").evaluate("area => area.scrollWidth <= area.clientWidth")
    places = token.evaluate_all("tokens => tokens.map((token) => Number(token.dataset.place))")
    assert places == list(range(places[0], TOKENS))
    # the ground of a token is its score, on a square-root scale
    found = page.locator(".document").evaluate("node => node.scene.rows")[0]
    for place in (TOKENS - 1, TOKENS - 2, TOKENS - 30):
        assert found["scores"][place] == pytest.approx(float(methods[0].scores[place]), abs=1e-9)
        share = min(found["scores"][place] / found["end"], 1.0)
        wanted = rgb(colour(share**0.5, 1.0))
        shown = token.filter(has_text=f"word{place}").evaluate("token => token.style.backgroundColor")
        assert shown == f"rgb{wanted}"
    last.hover()
    expect(page.locator(".reading")).to_contain_text(f"raw: “word{TOKENS - 1}”")
    # another method, by its name; a token is pinned and walked on from
    page.get_by_role("button", name="rollout", exact=True).click()
    expect(page.locator(".said")).to_contain_text("on the colour of rollout")
    token.filter(has_text="word2990").click()
    expect(token.filter(has_text="word2990")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".picked")).to_contain_text("“word2990”")
    page.keyboard.press("p")
    expect(token.filter(has_text="word2989")).to_be_focused()
    page.keyboard.press("m")
    settled(page)
    scored = methods[1].scores.abs()
    assert int(page.evaluate("Number(document.activeElement.dataset.place)")) in scored.topk(20).indices.tolist()
    page.locator("summary").click()
    expect(page.locator("table tbody tr")).to_have_count(500)
    assert seen == Seen()


def test_the_heads_of_a_long_text_have_pictures_and_lines(page, record, seen, tmp_path):
    open_view(page, model(record), tmp_path)
    drawn = page.locator("canvas.cells").evaluate("canvas => canvas.scene.map(({ pixels, head }) => [head, pixels])")
    side = model(record).payload["maps"]["tokens"]["shape"][0]
    first = torch.tensor(drawn[0][1]).reshape(side, side)
    weights = record.rows(0, 0, range(TOKENS))
    whole = torch.nn.functional.pad(weights, (0, 24 * side - TOKENS) * 2)  # 125 blocks of 24 tokens
    blocks = whole.reshape(side, 24, side, 24).sum((1, 3)) / 24
    torch.testing.assert_close(first.float(), blocks, atol=4e-3, rtol=0)
    expect(page.locator(".legend").first).to_contain_text("what each of 24 tokens gives to 24 tokens together")
    box = page.locator("canvas.cells").bounding_box()
    page.mouse.click(box["x"] + 30, box["y"] + 30)
    expect(page.locator("h3")).to_have_text("Layer 0, head 0")
    lines = settled(page).locator(".lines").evaluate("canvas => canvas.scene")
    assert {(line["query"], line["key"]) for line in lines} >= {(row + 1, row) for row in range(20)}
    expect(page.locator(".said")).to_contain_text("of 3,000 rows are in sight")
    assert seen == Seen()


def test_the_lines_of_a_long_text_are_those_of_the_rows_in_sight(page, record, seen, tmp_path):
    view = head(record)
    kept = view.payload["weights"]["kept"]
    open_view(page, view, tmp_path)
    strip = page.locator(".strip")
    box = strip.bounding_box()
    strip.click(position={"x": 5, "y": box["height"] / 2})
    token = page.locator(".column.queries .token")
    expect(token.filter(has_text="word1500")).to_be_visible()
    assert page.evaluate("document.querySelectorAll('*').length") < NODES
    rows = {number: record.rows(0, number, range(TOKENS)) for number in (0, 1)}
    lines = settled(page).locator(".lines").evaluate("canvas => canvas.scene")
    assert lines
    for line in lines:
        weight = float(rows[line["head"]][line["query"], line["key"]])
        assert line["weight"] == pytest.approx(weight, abs=0.01)
        assert abs(line["query"] - 1500) < 30
    # the figures beside the keys, and those of a key over all queries that have it among their largest
    token.filter(has_text="word1500").hover()
    expect(page.locator(".reading")).to_contain_text("“word1500” attends to")
    page.locator(".column.keys .token", has_text="word1500").hover()
    means = (rows[0][:, 1500] + rows[1][:, 1500]) / 2
    best = int(means.argmax())
    expect(page.locator(".reading")).to_contain_text(f"attended to by · “word{best}”")
    told = re.search(rf"“word{best}” ([0-9.]+)", page.locator(".reading").inner_text())
    assert float(told[1]) == pytest.approx(float(means[best]), abs=0.005)
    expect(page.locator(".said")).to_contain_text(f"each query has its {kept} largest keys")
    # a pinned token scrolls out of sight and back
    page.locator(".column.keys .token", has_text="word1500").click()
    page.locator(".area").evaluate("area => (area.scrollTop = 0)")
    expect(token.filter(has_text="word0").first).to_be_visible()
    page.keyboard.press("g")  # to the query that attends to it most, the next
    expect(token.filter(has_text="word1501")).to_be_visible()
    expect(page.locator(".column.keys .token[aria-selected=true]")).to_have_text("word1500")
    assert seen == Seen()
