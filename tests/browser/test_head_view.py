"""The head view in a browser: every line is a weight of the record, and every figure is one hover away."""

import json
import re
from urllib.parse import quote

import pytest
import torch
from playwright.sync_api import expect

from attnscope import AttentionRecord
from attnscope.views import head, write_page

from .conftest import settled

TOKENS = ["[CLS]", "the", "un", "##told", "key", "<script>throw 1</script>", "is", "[SEP]"]
SPECIAL = [True, *[False] * 6, True]


def record_of(tokens=TOKENS, special=SPECIAL, layers=3, heads=10, **more):
    torch.manual_seed(0)
    weights = (3 * torch.randn(layers, heads, len(tokens), len(tokens))).softmax(-1)
    return AttentionRecord.from_weights(weights, tokens, causal=False, special=special, **more)


@pytest.fixture
def record():
    return record_of()


@pytest.fixture
def opened(page, record, tmp_path):
    return open_view(page, every_line(record, layer=1), tmp_path)


def every_line(record, layer=None, **more):
    """The view with all its layers and all its lines, faint ones too."""
    return head(record, **more).selecting(layer=record.layers[0] if layer is None else layer, threshold=0)


def open_view(page, view, tmp_path, link=""):
    page.goto(view.save(tmp_path / "head.html").as_uri() + link)
    page.wait_for_selector("[data-drawn]")
    return page


def scene(page):
    return settled(page).locator(".lines").evaluate("canvas => canvas.scene")


def settle(page):
    """Wait for the redraw that a change has asked for."""
    # what watches the size is told with the next frame
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    settled(page)


def state(page):
    return page.evaluate("attnscopeHost.models[0].state()")


def exact(weight):
    """A weight with the digits that a 16-bit float leaves sure."""
    return f"{weight:.4f}" if weight / 2048 <= 0.00005 else f"{weight:.3f}"


def token(page, side, text):
    return page.locator(f".tokens.{side} .token", has_text=re.compile(f"^{re.escape(text)}$")).first


def test_it_opens_offline_and_every_line_is_a_weight(opened, record, seen):
    drawn = {(line["head"], line["query"], line["key"]): line for line in scene(opened)}
    expected = {tuple(place): None for place in (record.weights[1] >= 1 / 255).nonzero().tolist()}
    assert drawn.keys() == expected.keys()
    for (number, query, key), line in drawn.items():
        weight = float(record.weights[1, number, query, key])
        assert line["weight"] == pytest.approx(weight, rel=1e-3)
        ink = 0.1 if SPECIAL[query] or SPECIAL[key] else 1
        assert line["opacity"] == pytest.approx(ink * weight, rel=1e-3)
        assert (line["from"], line["to"]) == (24 * query + 12, 24 * key + 12)
    assert seen.requests == []
    assert seen.errors == []


def test_it_opens_with_some_lines_for_each_token_and_fades_special_ones(page, record, tmp_path):
    view = head(record, layer=1, include_heads=[0, 1, 2])
    open_view(page, view, tmp_path)
    drawn = scene(page)
    inner = [line for line in drawn if not SPECIAL[line["key"]]]
    assert len(TOKENS) * 4 <= len(inner) <= len(TOKENS) * 5
    assert min(line["weight"] for line in drawn) >= view.state["threshold"] > 0
    expect(page.locator(".said")).to_contain_text("are faded until one of these tokens is looked at")
    expect(page.locator(".said")).to_contain_text("Layer 1. Opacity is the weight")  # no control names it
    token(page, "queries", "[CLS]").hover()
    assert 0 < view.state["threshold"] < 0.25
    assert view.state["root"]  # lines this faint would hardly be seen on a linear scale
    assert all(line["opacity"] == pytest.approx(line["weight"] ** 0.5) for line in scene(page))


def test_the_lines_are_really_on_the_canvas(page, tmp_path):
    weights = torch.zeros(1, 1, 3, 3)
    weights[..., [0, 1, 2], [1, 1, 1]] = 1.0
    open_view(page, every_line(AttentionRecord.from_weights(weights, ["a", "b", "c"], causal=False)), tmp_path)
    inks = page.locator(".lines").evaluate(
        "canvas => [12, 36, 60].map((y) => canvas.getContext('2d')"
        ".getImageData(canvas.width - 3, y * devicePixelRatio, 1, 1).data[3])"
    )
    # all three lines end at the second token, and none at the others
    assert inks[1] > 200
    assert inks[0] == inks[2] == 0


def test_hovering_a_token_shows_its_lines_alone_and_its_figures(opened, record):
    before = opened.locator(".view").bounding_box()
    token(opened, "queries", "key").hover()
    assert {line["query"] for line in scene(opened)} == {4}
    means = record.weights[1, :, 4].mean(0)
    best = int(means.argmax())
    reading = opened.locator(".reading").inner_text()
    assert reading.startswith("“key” attends to")
    assert f"{float(means[best]):.3f}" in reading
    assert opened.locator(".view").bounding_box() == before
    opened.mouse.move(2, 2)
    assert len({line["query"] for line in scene(opened)}) == 8
    token(opened, "keys", "is").hover()
    assert {line["key"] for line in scene(opened)} == {6}


def test_with_a_pinned_token_hovering_tells_the_exact_weight_and_its_rank(opened, record):
    opened.locator("button.chip").nth(3).dblclick()
    settle(opened)
    token(opened, "queries", "key").click()
    token(opened, "keys", "is").hover()
    weight = float(record.weights[1, 3, 4, 6])
    rank = 1 + int((record.weights[1, 3, 4] > weight).sum())
    note = opened.locator(".note").inner_text()
    assert "“key” → “is”" in note
    assert f"Layer 1, head 3: {exact(weight)}, rank {rank} of 8" in note


def test_several_tokens_are_summed(opened, record):
    opened.locator("button.chip").nth(2).dblclick()
    settle(opened)
    token(opened, "queries", "the").click()
    token(opened, "queries", "key").click(modifiers=["Shift"])
    assert state(opened)["queries"] == [1, 4]
    token(opened, "keys", "is").hover()
    total = float(record.weights[1, 2, [1, 4], 6].sum())
    expect(opened.locator(".note")).to_contain_text(f"{exact(total)} in sum", use_inner_text=True)


def test_words_sum_over_keys_and_average_over_queries(opened, record):
    opened.get_by_role("checkbox", name="Words").check()
    settle(opened)
    words = record.words()
    expect(opened.locator(".tokens.queries .token")).to_have_text(list(words.query_tokens), use_inner_text=True)
    for line in scene(opened):
        weight = float(words.weights[1, line["head"], line["query"], line["key"]])
        assert line["weight"] == pytest.approx(weight, rel=2e-3, abs=1e-4)


def test_hidden_tokens_are_told_with_their_mass(opened, record):
    opened.get_by_role("checkbox", name="Special tokens").uncheck()
    settle(opened)
    assert "[CLS]" not in opened.locator(".tokens.keys .token").all_inner_texts()
    hidden = float(record.weights[1, :, 1:7][..., [0, 7]].sum() / record.weights[1, :, 1:7].sum())
    assert f"tokens that are hidden take {100 * hidden:.1f} %" in opened.locator(".said").inner_text().lower()


def test_a_threshold_hides_lines_and_says_how_much(opened, record):
    opened.locator(".tokens.queries .token").first.focus()
    for _ in range(3):
        opened.keyboard.press("t")
    settle(opened)
    assert state(opened)["threshold"] == 0.2
    below = record.weights[1] < 0.2
    mass = float(record.weights[1][below].sum() / record.weights[1].sum())
    assert min(line["weight"] for line in scene(opened)) >= 0.2
    assert f"{int(below.sum())} lines below 0.200 are not drawn ({100 * mass:.1f} %" in (
        opened.locator(".said").inner_text()
    )


def test_keys_step_through_layers_heads_and_tokens(opened):
    opened.locator(".tokens.queries .token").first.focus()
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("ArrowDown")
    settle(opened)
    assert (state(opened)["layer"], state(opened)["heads"]) == (2, [1])
    assert {line["head"] for line in scene(opened)} == {1}
    opened.keyboard.press("n")
    opened.keyboard.press("Enter")
    assert state(opened)["queries"] == [1]
    opened.keyboard.press("n")
    opened.keyboard.press("Shift+Enter")
    assert state(opened)["queries"] == [1, 2]
    opened.keyboard.press("Escape")
    assert state(opened)["queries"] == []
    opened.keyboard.press("?")
    expect(opened.locator("dialog")).to_be_visible()


def test_chips_show_hide_and_isolate_heads(opened):
    opened.locator("button.chip").nth(4).click()
    settle(opened)
    assert {line["head"] for line in scene(opened)} == {0, 1, 2, 3, 5, 6, 7, 8, 9}
    opened.locator("button.chip").nth(9).dblclick()
    settle(opened)
    assert {line["head"] for line in scene(opened)} == {9}
    opened.get_by_role("button", name="All").click()
    settle(opened)
    assert len({line["head"] for line in scene(opened)}) == 10


def test_a_link_restores_what_was_selected(opened, page, record, tmp_path):
    opened.locator("button.chip").nth(3).dblclick()
    token(opened, "queries", "key").click()
    address = opened.evaluate("location.href")
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("[data-drawn]")
    assert (state(page)["heads"], state(page)["queries"], state(page)["layer"]) == ([3], [4], 1)
    assert {(line["head"], line["query"]) for line in scene(page)} == {(3, 4)}


def test_a_link_of_nonsense_changes_nothing(page, record, tmp_path):
    for link in ("#%", "#" + quote(json.dumps([{"layer": 99, "heads": [77], "payload": 1}]))):
        page.goto("about:blank")
        open_view(page, every_line(record, layer=1), tmp_path, link)
        expect(page.locator(".tokens.queries .token")).to_have_count(8)


def test_what_did_not_travel_is_not_called_zero(page, record, tmp_path):
    open_view(page, every_line(record, layer=1, heads=[3], keys_per_query=2), tmp_path)
    row = record.weights[1, 3, 4]
    smallest, largest = int(row.argmin()), int(row.argmax())
    token(page, "queries", "key").click()
    page.locator(".tokens.keys .token").nth(smallest).hover()
    expect(page.locator(".note")).to_contain_text("not among the 2 largest of its row", use_inner_text=True)
    page.locator(".tokens.keys .token").nth(largest).hover()
    expect(page.locator(".note")).to_contain_text("rank 1 of 8", use_inner_text=True)


def test_a_broad_head_says_that_its_lines_are_too_faint(page, tmp_path):
    count = 300
    record = AttentionRecord.from_weights(
        torch.full((1, 1, count, count), 1 / count), [f"t{place}" for place in range(count)], causal=False
    )
    open_view(page, every_line(record), tmp_path)
    assert scene(page) == []
    assert "90,000 lines too faint to be seen are not drawn (100.0 % of the attention)" in (
        page.locator(".said").inner_text()
    )
    page.get_by_role("checkbox", name="Square-root scale").check()
    settle(page)
    assert len(scene(page)) > 0


def test_stated_errors_hold(page, tmp_path):
    record = record_of([f"t{place}" for place in range(40)], None, layers=3, heads=12)
    open_view(page, every_line(record), tmp_path)
    assert page.evaluate("attnscopeHost.models[0].get('payload').weights.code") == "uint8"
    page.get_by_text("View as table").click()
    rows = [row.split("\t") for row in page.locator(".plain tbody").inner_text().splitlines()]
    assert len(rows) == 200
    for query, key, number, told in rows:
        value, _, error = told.partition(" ± ")
        weight = float(record.weights[0, int(number), int(query[1:]), int(key[1:])])
        assert abs(float(value) - weight) <= float(error or 0.0005) + 0.0006


def test_hostile_tokens_change_nothing(page, seen, tmp_path):
    tokens = [
        "<script>throw 1</script>",
        "</script><img src=x onerror=throw>",
        "\"'&amp;",
        "\u202eevil\u2066",
        "x" * 10_000,
        "ok",
    ]
    open_view(page, every_line(record_of(tokens, None, layers=1, heads=1)), tmp_path)
    assert page.locator(".tokens.keys .token").all_inner_texts() == tokens
    expect(page.locator("img")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert seen.errors == []


def test_512_tokens_scroll_inside_and_draw_what_is_in_sight(page, tmp_path):
    tokens = [f"t{place}" for place in range(512)]
    record = record_of(tokens, [False] * 511 + [True], layers=2, heads=4)
    open_view(page, every_line(record, keys_per_query=16), tmp_path)
    assert page.locator(".area").evaluate("area => area.scrollHeight > 12000 && area.clientHeight <= 600")
    expect(page.locator(".strip")).to_be_visible()
    rest = float(1 - record.weights[0].topk(16).values.sum(-1).mean())
    expect(page.locator(".said")).to_contain_text(
        f"16 largest keys here, all others together take {100 * rest:.1f} %", use_inner_text=True
    )
    page.locator(".area").evaluate("area => { area.scrollTop = 6000; }")
    settle(page)
    drawn = scene(page)
    assert all(min(line["query"], line["key"]) <= 275 and max(line["query"], line["key"]) >= 250 for line in drawn)
    # of a special token out of sight no line is drawn until one asks for it
    assert record.weights[0, :, 250:275].topk(16).indices.eq(511).any()
    assert all(line["key"] != 511 for line in drawn)
    token(page, "queries", "t260").hover()
    drawn = scene(page)
    assert {line["query"] for line in drawn} == {260}
    for line in drawn:
        weight = float(record.weights[0, line["head"], 260, line["key"]])
        assert line["weight"] == pytest.approx(weight, abs=0.01)


def test_it_resizes_without_shrinking(opened):
    width = opened.locator(".lines").bounding_box()["width"]
    opened.set_viewport_size({"width": 420, "height": 700})
    settle(opened)
    narrow = opened.locator(".lines").bounding_box()["width"]
    assert opened.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    opened.set_viewport_size({"width": 1280, "height": 720})
    settle(opened)
    assert opened.locator(".lines").bounding_box()["width"] == width > narrow


def test_two_views_on_one_page_do_not_disturb_each_other(page, record, tmp_path, seen):
    page.goto(
        write_page(tmp_path / "two.html", [every_line(record, layer=0), every_line(record, layer=2)], "Two").as_uri()
    )
    page.wait_for_selector(".attnscope:nth-of-type(2) [data-drawn]")
    page.get_by_role("button", name="Layer after").first.click()
    settle(page)
    layers = page.evaluate("attnscopeHost.models.map((model) => model.get('layer'))")
    assert layers == [1, 2]
    assert seen.errors == []


def test_it_is_dark_in_the_dark(browser, record, tmp_path):
    context = browser.new_context(color_scheme="dark", device_scale_factor=2)
    page = open_view(context.new_page(), every_line(record), tmp_path)
    ground = page.locator(".attnscope").first.evaluate("element => getComputedStyle(element).backgroundColor")
    assert ground == "rgb(15, 20, 27)"
    assert page.locator(".lines").evaluate("canvas => canvas.width / canvas.clientWidth") == 2
    context.close()


def test_cross_attention_has_other_tokens_on_each_side(page, tmp_path):
    torch.manual_seed(0)
    record = AttentionRecord.from_weights(
        torch.randn(1, 2, 3, 5).softmax(-1), ["le", "chat", "dort"], key_tokens=["the", "cat", "is", "a", "sleep"]
    )
    open_view(page, every_line(record), tmp_path)
    expect(page.locator(".tokens.queries .token")).to_have_text(["le", "chat", "dort"], use_inner_text=True)
    expect(page.locator(".tokens.keys .token")).to_have_count(5)
    assert max(line["key"] for line in scene(page)) == 4


def test_the_sentences_of_a_pair_can_be_looked_at_alone(page, record, tmp_path):
    open_view(page, every_line(record, sentence_b_start=4), tmp_path)
    page.get_by_label("Sentences").select_option("A → B")
    settle(page)
    expect(page.locator(".tokens.queries .token")).to_have_text(["[CLS]", "the", "un", "told"], use_inner_text=True)
    expect(page.locator(".tokens.keys .token")).to_have_count(4)
    assert all(line["query"] < 4 <= line["key"] for line in scene(page))


def test_it_is_read_out_as_a_table(opened, record):
    opened.get_by_text("View as table").click()
    first = opened.locator(".plain tbody tr").first.inner_text().split("\t")
    assert float(first[-1]) == pytest.approx(float(record.weights[1].max()), abs=1e-3)
    expect(opened.locator(".summary")).to_contain_text("Layer 1: ", use_inner_text=True)
