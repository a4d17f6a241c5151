"""The model view in a browser: all maps at once, sorted, read out, one enlarged in place, whatever the tokens are."""

import math

import pytest
import torch
from playwright.sync_api import expect

from attnscope import AttentionRecord
from attnscope.views import model, write_page

from .conftest import settled

HOSTILE = ["<script>throw 1</script>", "</script>", '"', "'&amp;", "שלום", "\u202eevil", "x" * 10_000, "##ing"]
TOKENS = ["[CLS]", *HOSTILE, "[SEP]"]
LAYERS, HEADS, LENGTH = 3, 4, len(TOKENS)
SPECIAL = [True, *[False] * len(HOSTILE), True]


def weights_of(layers=LAYERS, heads=HEADS, queries=LENGTH, keys=LENGTH):
    return (2 * torch.randn(layers, heads, queries, keys, generator=torch.Generator().manual_seed(7))).softmax(-1)


@pytest.fixture(scope="module")
def record():
    return AttentionRecord.from_weights(weights_of(), TOKENS, special=SPECIAL)


@pytest.fixture
def opened(page, record, tmp_path):
    page.goto(model(record).save(tmp_path / "model.html").as_uri())
    return drawn(page)


def drawn(page):
    page.wait_for_selector("[data-drawn]")
    return page


def scene(page, selector=".cells"):
    return settled(page).evaluate("(selector) => document.querySelector(selector).scene", selector)


def resettled(page):
    """Waits until nothing is asked to be drawn any more, not even for another size."""
    # what watches the size is told with the next frame
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return settled(page)


def at(page, layer, head):
    """The middle of a picture, wherever it stands now."""
    place = next(item for item in scene(page) if (item["layer"], item["head"]) == (layer, head))
    return {"x": place["left"] + place["side"] / 2, "y": place["top"] + place["side"] / 2}


def state(page, name, view=0):
    return page.evaluate("([view, name]) => attnscopeHost.models[view].get(name)", [view, name])


def order(page):
    """Layers from the top and heads from the left, as they are drawn."""
    items = scene(page)
    layers = [item["layer"] for item in items[::HEADS]]
    return layers, [item["head"] for item in items[:HEADS]]


def entropies(record):
    return -(record.weights * record.weights.log()).sum(-1).mean(-1)


def test_every_pixel_is_a_weight_and_nothing_is_asked_for(opened, record, seen):
    items = scene(opened)
    assert [(item["layer"], item["head"]) for item in items] == [(y, x) for y in range(LAYERS) for x in range(HEADS)]
    for item in items:
        weights = record.weights[item["layer"], item["head"]]
        shown = torch.tensor(item["pixels"]).reshape(weights.shape)
        torch.testing.assert_close(shown, weights, atol=4e-3, rtol=0)
        assert item["value"] == pytest.approx(float(entropies(record)[item["layer"], item["head"]]), rel=1e-4)
    first = items[0]
    # what is on the canvas is the colour of the weight: the darkest place of the first map is its largest weight
    largest = int(record.weights[0, 0].argmax())
    row, column = divmod(largest, LENGTH)
    read = "([x, y]) => [...document.querySelector('.cells').getContext('2d').getImageData(x, y, 1, 1).data]"
    step = first["side"] / LENGTH
    pixel = opened.evaluate(read, [first["left"] + (column + 0.5) * step, first["top"] + (row + 0.5) * step])
    other = opened.evaluate(read, [first["left"] + (int(record.weights[0, 0, 3].argmin()) + 0.5) * step, 3.5 * step])
    assert sum(pixel[:3]) < sum(other[:3]) - 100
    assert opened.evaluate("window.got") is None
    assert (seen.requests, seen.errors) == ([], [])


def test_pointing_reads_out_the_head(opened, record):
    opened.locator(".cells").hover(position=at(opened, 2, 1))
    lines = opened.locator(".note").inner_text().split("\n")
    values = entropies(record)
    rank = 1 + int((values > values[2, 1]).sum())
    assert lines[0] == "Layer 2, head 1"
    assert lines[1] == f"Mean entropy {float(values[2, 1]):.4g} nats, rank {rank} of 12"
    assert lines[2].startswith("On this text: ")
    assert lines[3].endswith(f"{float(record.weights[2, 1].max()):.4f}")
    assert len(opened.locator(".note").inner_text()) < 400
    opened.get_by_role("combobox", name="Statistic").select_option("previous")
    resettled(opened).locator(".cells").hover(position=at(opened, 0, 3))
    previous = float(record.weights[0, 3].diagonal(-1).mean())
    expect(opened.locator(".reading")).to_contain_text(
        f"Attention to the previous token {previous:.4g}", use_inner_text=True
    )


def test_headers_sort_by_the_statistic(opened, record):
    values = entropies(record)
    opened.get_by_role("button", name="Layers by their mean").click()
    resettled(opened)
    assert order(opened)[0] == values.mean(-1).argsort(descending=True).tolist()
    opened.get_by_role("button", name="Layers by their mean").click()
    assert order(resettled(opened))[0] == values.mean(-1).argsort().tolist()
    opened.get_by_role("button", name="Layer 1:").click()
    assert order(resettled(opened))[1] == values[1].argsort(descending=True).tolist()
    assert state(opened, "sort_heads") == [1, True]
    opened.get_by_role("button", name="Head 2:").focus()
    opened.keyboard.press("Enter")
    assert order(resettled(opened))[0] == values[:, 2].argsort(descending=True).tolist()
    # a map is under the header that names it
    numbers = opened.locator(".down .header span").all_inner_texts()
    assert numbers == [str(layer) for layer in order(opened)[0]]
    for _ in range(2):
        opened.get_by_role("button", name="Head 2:").click()
    assert order(resettled(opened))[0] == [0, 1, 2]


def test_a_click_enlarges_in_place_and_escape_returns(opened, record, seen):
    opened.locator(".cells").click(position=at(opened, 1, 2))
    opened.wait_for_selector(".one .lines")
    resettled(opened)
    expect(opened.locator(".cells")).not_to_be_visible()
    expect(opened.locator(".one h3")).to_have_text("Layer 1, head 2", use_inner_text=True)
    lines = scene(opened, ".lines")
    assert {line["head"] for line in lines} == {2}
    for line in lines:
        assert line["weight"] == pytest.approx(float(record.weights[1, 2, line["query"], line["key"]]), abs=1e-3)
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("ArrowDown")
    resettled(opened)
    expect(opened.locator(".one h3")).to_have_text("Layer 2, head 3", use_inner_text=True)
    opened.locator(".one .queries .token").nth(1).click()
    assert state(opened, "queries") == [1]
    opened.keyboard.press("Escape")
    assert state(opened, "queries") == []
    opened.keyboard.press("Escape")
    opened.wait_for_selector(".cells")
    resettled(opened)
    expect(opened.locator(".one")).not_to_be_visible()
    assert opened.evaluate("document.activeElement.className") == "cells"
    assert opened.locator(".reading").inner_text().startswith("Layer 2, head 3 · ")
    expect(opened.locator(".said")).to_contain_text("bar below each map", use_inner_text=True)
    assert seen.errors == []


def test_keys_move_over_the_grid(opened):
    opened.locator(".cells").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        opened.keyboard.press(key)
    resettled(opened)
    assert (state(opened, "layer"), state(opened, "head")) == (1, 1)
    assert opened.locator(".reading").inner_text().startswith("Layer 1, head 1")
    opened.keyboard.press("End")
    opened.keyboard.press("Enter")
    resettled(opened)
    expect(opened.locator(".one h3")).to_have_text("Layer 1, head 3", use_inner_text=True)
    opened.keyboard.press("?")
    expect(opened.get_by_role("dialog")).to_be_visible()


def test_special_tokens_words_and_the_scale_can_be_chosen(opened, record):
    opened.locator(".cells").focus()
    opened.keyboard.press("s")
    resettled(opened)
    shown = torch.tensor(scene(opened)[5]["pixels"]).reshape(LENGTH - 2, LENGTH - 2)
    torch.testing.assert_close(shown, record.weights[1, 1, 1:-1, 1:-1], atol=4e-3, rtol=0)
    rows = record.weights[:, :, 1:-1]
    hidden = 100 * float(1 - rows[..., 1:-1].sum() / rows.sum())
    expect(opened.locator(".said")).to_contain_text(f"hidden take {hidden:.1f} %", use_inner_text=True)
    opened.keyboard.press("s")
    opened.keyboard.press("w")
    resettled(opened)
    shown = torch.tensor(scene(opened)[0]["pixels"]).reshape(LENGTH - 1, LENGTH - 1)
    torch.testing.assert_close(shown, record.words().weights[0, 0], atol=4e-3, rtol=0)
    opened.get_by_role("checkbox", name="Square-root scale").check()
    resettled(opened)
    expect(opened.locator(".legend")).to_contain_text("square-root scale", use_inner_text=True)
    opened.get_by_text("View as table").click()
    opened.locator(".plain tbody tr").first.wait_for()  # the table is made when the browser has unfolded it
    expect(opened.locator(".plain tbody tr")).to_have_count(LAYERS * HEADS)


def test_a_link_restores_what_was_chosen(opened, page, record):
    opened.get_by_role("combobox", name="Statistic").select_option("distance")
    opened.get_by_role("button", name="Heads by their mean").click()
    opened.locator(".cells").click(position=at(resettled(opened), 2, 0))
    resettled(opened)
    address = opened.evaluate("location.href")
    again = page.context.new_page()
    again.goto(address)
    drawn(again)
    expect(again.locator(".one h3")).to_have_text("Layer 2, head 0", use_inner_text=True)
    again.get_by_role("button", name="All heads").click()
    again.wait_for_selector(".cells")
    far = torch.tensor([[abs(query - key) for key in range(LENGTH)] for query in range(LENGTH)])
    means = (record.weights * far).sum(-1).mean((0, 2))
    assert order(resettled(again))[1] == means.argsort(descending=True).tolist()


def test_it_is_dark_narrow_and_twice_on_a_page(page, record, tmp_path, seen):
    page.set_viewport_size({"width": 360, "height": 700})
    cross = AttentionRecord.from_weights(weights_of(6, 8, 3, 9), list("abc"), key_tokens=list("defghijkl"))
    page.goto(write_page(tmp_path / "two.html", [model(record), model(cross)], "Two").as_uri())
    page.wait_for_function("document.querySelectorAll('[data-drawn]').length === 2")
    light = page.evaluate("document.querySelector('.cells').toDataURL()")
    page.emulate_media(color_scheme="dark")
    resettled(page)
    assert page.evaluate("document.querySelector('.cells').toDataURL()") != light
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    second = page.locator(".cells").nth(1)
    second.click(position={"x": 10, "y": 10})
    resettled(page)
    assert state(page, "enlarged", 1) is True
    assert state(page, "enlarged", 0) is False
    expect(page.locator(".cells").first).to_be_visible()
    assert seen.errors == []


def test_512_tokens_are_shown_by_blocks(page, tmp_path, seen):
    record = AttentionRecord.from_weights(weights_of(2, 4, 512, 512), [f"t{place}" for place in range(512)])
    page.goto(model(record, keys_per_query=8).save(tmp_path / "long.html").as_uri())
    drawn(page)
    expect(page.locator(".legend")).to_contain_text(
        "one pixel is the largest weight from 4 tokens to 4 tokens", use_inner_text=True
    )
    expect(page.locator(".said")).to_contain_text("each query has its 8 largest keys", use_inner_text=True)
    # a narrow page draws fewer pixels than travel: the legend follows, and no frame covers the first and the last
    page.set_viewport_size({"width": 390, "height": 800})
    resettled(page)
    item = scene(page)[5]
    pixels = round(item["side"])
    assert pixels < 128
    many = math.ceil(512 / pixels)
    expect(page.locator(".legend")).to_contain_text(f"from {many} tokens to {many} tokens", use_inner_text=True)
    read = """([x, y, side]) =>
        [...document.querySelector('.cells').getContext('2d').getImageData(x, y, side, side).data]"""
    corner = page.evaluate(read, [item["left"], item["top"], pixels])
    edge = torch.tensor(corner).reshape(pixels, pixels, 4)[..., :3]
    assert len({tuple(colour) for colour in edge[:, 0].tolist()}) > 1
    assert len({tuple(colour) for colour in edge[:, -1].tolist()}) > 1
    shown = torch.tensor(scene(page)[5]["pixels"]).reshape(128, 128)
    blocks = record.weights[1, 1].reshape(128, 4, 128, 4).amax((1, 3))
    torch.testing.assert_close(shown, blocks, atol=4e-3, rtol=0)
    page.locator(".cells").click(position=at(page, 1, 1))
    page.wait_for_selector(".one .lines")
    assert seen.errors == []
