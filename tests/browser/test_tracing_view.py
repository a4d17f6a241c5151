"""The tracing view in a browser: every dot and line is what the trace holds, by pointer and by key."""

import pytest
import torch
from playwright.sync_api import expect

from attnscope import layerwise_tracing
from attnscope.record import AttentionRecord
from attnscope.views import tracing, write_page

from .conftest import settled

HOSTILE = ["[CLS]", "<script>throw 1</script>", '"', "'&amp;", "\u202eevil", "x" * 10_000, "play", "##ing", "[SEP]"]
ENLARGED = ".panel:not([hidden]) .dots"


def record_of(tokens=HOSTILE, layers=3, heads=4, seed=0):
    random = torch.Generator().manual_seed(seed)
    count = len(tokens)
    weights = (2 * torch.randn(layers, heads, count, count, generator=random)).softmax(-1)
    special = [token.startswith("[") for token in tokens]
    return AttentionRecord.from_weights(weights, tokens, causal=False, readout=0, special=special)


def opened(page, view, path):
    page.goto(view.save(path).as_uri())
    page.wait_for_selector("[data-drawn]")


def scenes(page):
    return settled(page).locator(ENLARGED).evaluate_all("all => all.map((canvas) => canvas.scene)")


def state(page, name, view=0):
    return page.evaluate("([view, name]) => attnscopeHost.models[view].get(name)", [view, name])


def after(page, act):
    """Do something and wait until it is drawn."""
    before = settled(page).locator(".view").first.get_attribute("data-drawn")
    act()
    page.wait_for_function("before => document.querySelector('.view').dataset.drawn !== before", arg=before)
    settled(page)


def check_drawn(page, record):
    """Every dot of every panel has the value of the trace."""
    per_head = layerwise_tracing(record).per_head
    drawn = scenes(page)
    for scene in drawn:
        values = per_head.mean(1) if scene["head"] is None else per_head[:, record.heads.index(scene["head"])]
        for layer, row in zip(scene["layers"], scene["values"], strict=True):
            held = record.readout if layer is None else values[record.layers.index(layer)]
            assert row == pytest.approx([float(held[places].sum()) for places in scene["places"]], abs=1e-5)
    return drawn


def test_it_opens_offline_with_every_dot_of_the_trace(page, seen, tmp_path):
    record = record_of()
    opened(page, tracing(record), tmp_path / "tracing.html")
    drawn = check_drawn(page, record)
    assert [scene["head"] for scene in drawn] == [None, 0, 1, 2, 3]
    assert drawn[0]["layers"] == [None, 2, 1, 0]
    # the scale ends with the largest besides the read-out and special tokens, and these are as dark as can be
    aside = {place for place, special in enumerate(record.key_special) if special or record.readout[place] > 0.5}
    layers = layerwise_tracing(record).per_head[..., [place for place in range(9) if place not in aside]]
    largest = drawn[0]["largest"]
    assert largest == pytest.approx(float(layers.max()), abs=1e-5)
    shades = [min(value / largest, 1) for value in drawn[2]["values"][3]]
    assert drawn[2]["shades"][3] == pytest.approx(shades, abs=1e-5)
    held = [record.readout, *layerwise_tracing(record).per_head[[2, 1], 1]]
    for line in drawn[2]["lines"]:
        weight = record.weights[2 - line["row"], 1, line["from"], line["to"]]
        assert line["value"] == pytest.approx(float(held[line["row"]][line["from"]] * weight), abs=1e-5)
    assert len(drawn[2]["lines"]) > 9
    # the lines of the mean are the mean of the lines
    for line in drawn[0]["lines"]:
        same = [
            one
            for scene in drawn[1:]
            for one in scene["lines"]
            if all(one[at] == line[at] for at in ("row", "from", "to"))
        ]
        assert line["value"] == pytest.approx(sum(one["value"] for one in same) / 4, abs=1e-5)
    assert len(drawn[0]["lines"]) >= len(drawn[2]["lines"])
    token = page.locator(".text .token").nth(1)
    assert token.inner_text() == HOSTILE[1]
    scores = layerwise_tracing(record).scores / 4
    shown = page.locator(".text .token").evaluate_all("all => all.map((token) => Number(token.dataset.value))")
    assert shown == pytest.approx(scores.tolist(), abs=1e-5)
    weights = page.locator(".text .token").evaluate_all("all => all.map((token) => Number(token.style.fontWeight))")
    assert weights[int(scores.argmax())] == max(weights) == 800
    assert seen.requests == []
    assert seen.errors == []


def test_pointing_tells_the_exact_figure(page, tmp_path):
    record = record_of()
    opened(page, tracing(record), tmp_path / "tracing.html")
    scene = scenes(page)[3]  # head 2, after the mean
    row = scene["layers"].index(1)
    page.locator(ENLARGED).nth(3).hover(position={"x": scene["x"][6], "y": scene["y"][row]})
    values = layerwise_tracing(record).per_head[1, 2]
    rank = 1 + int((values > values[6]).sum())
    lines = page.locator(".note").inner_text().split("\n")
    assert lines[0] == "“play”"
    assert lines[1] == f"Layer 1, head 2: {float(values[6]):.4f}, rank {rank} of 9"
    assert lines[2] == f"{100 * float(values[6]) / 4:.1f} % of the layer with all its heads"
    page.locator(".text .token").nth(6).hover()
    total = layerwise_tracing(record).scores
    expect(page.locator(".reading")).to_contain_text(
        f"Layer 0, sum of 4 heads: {float(total[6]):.4f}", use_inner_text=True
    )


def test_a_click_enlarges_a_head_and_escape_returns(page, seen, tmp_path):
    record = record_of()
    opened(page, tracing(record), tmp_path / "tracing.html")
    after(page, lambda: page.locator(ENLARGED).nth(2).click())
    assert state(page, "head") == 1
    drawn = check_drawn(page, record)
    assert [scene["head"] for scene in drawn] == [1]
    after(page, lambda: page.locator(ENLARGED).click(position={"x": drawn[0]["x"][3], "y": drawn[0]["y"][1]}))
    assert state(page, "keys") == [3]
    page.locator(".text .token").nth(6).focus()
    after(page, lambda: page.keyboard.press("Shift+Enter"))
    assert state(page, "keys") == [3, 6]
    together = layerwise_tracing(record).per_head[0, 1, [3, 6]].sum()
    page.locator(".text .token").nth(6).hover()
    expect(page.locator(".reading")).to_contain_text(
        f"2 pinned tokens together: {float(together):.4f}", use_inner_text=True
    )
    after(page, lambda: page.keyboard.press("ArrowDown"))
    assert state(page, "head") == 2
    after(page, lambda: page.keyboard.press("ArrowRight"))
    shown = page.locator(".text .token").evaluate_all("all => all.map((token) => Number(token.dataset.value))")
    assert shown == pytest.approx(layerwise_tracing(record).per_head[1, 2].tolist(), abs=1e-5)
    after(page, lambda: page.keyboard.press("Escape"))
    assert state(page, "head") is None
    assert len(scenes(page)) == 5
    page.get_by_role("button", name="Enlarge head 3").focus()
    after(page, lambda: page.keyboard.press("Enter"))
    assert state(page, "head") == 3
    page.get_by_text("View as table").click()
    page.locator("table.plain tbody tr").first.wait_for()
    expect(page.locator("table.plain tbody tr")).to_have_count(9)
    assert seen.errors == []


def test_words_special_tokens_threshold_and_scale(page, tmp_path):
    record = record_of()
    opened(page, tracing(record), tmp_path / "tracing.html")
    page.locator(".text .token").first.focus()
    after(page, lambda: page.keyboard.press("w"))
    assert [6, 7] in check_drawn(page, record)[0]["places"]
    after(page, lambda: page.keyboard.press("s"))
    assert len(check_drawn(page, record)[0]["places"]) == 6
    scores = layerwise_tracing(record).scores / 4
    hidden = 100 * float(scores[0] + scores[8])
    assert (
        f"2 special tokens and sinks are hidden: they hold {hidden:.1f} % at layer 0"
        in page.locator(".said").inner_text()
    )
    after(page, lambda: page.get_by_role("slider", name="Hide below").fill("0.2"))
    for scene in check_drawn(page, record):
        for values, shades in zip(scene["values"], scene["shades"], strict=True):
            assert [shade is None for shade in shades] == [value < 0.2 for value in values]
    expect(page.locator(".said")).to_contain_text("dots below 0.200 are not drawn", use_inner_text=True)
    after(page, lambda: page.get_by_label("Square-root scale").check())
    scene = scenes(page)[1]
    linear = scene["largest"]
    for values, shades in zip(scene["values"], scene["shades"], strict=True):
        for value, shade in zip(values, shades, strict=True):
            assert shade is None or shade == pytest.approx(min(value / linear, 1) ** 0.5, abs=1e-5)
    after(page, lambda: page.get_by_label("Lines").uncheck())
    assert scenes(page)[1]["lines"] == []


def test_long_texts_stay_inside_and_nothing_shifts(page, seen, tmp_path):
    record = record_of([f"t{place}" for place in range(512)], layers=2, heads=3)
    page.set_viewport_size({"width": 1280, "height": 1400})
    opened(page, tracing(record), tmp_path / "tracing.html")
    check_drawn(page, record)
    boxes = "elements => elements.map((element) => JSON.stringify(element.getBoundingClientRect()))"
    parts = page.locator(".view > :not(.note), .dots, .text")
    before = parts.evaluate_all(boxes)
    page.locator(".dots").nth(1).hover()
    page.locator(".text .token").nth(20).hover()
    assert parts.evaluate_all(boxes) == before
    assert len(scenes(page)[0]["labels"]) == 40  # folded, each dot has its token's name
    after(page, lambda: page.get_by_role("button", name="Enlarge head 1").click())
    inside = "() => document.querySelector('.panels').scrollWidth - document.querySelector('.panels').clientWidth"
    assert len(scenes(page)[0]["labels"]) == len(scenes(page)[0]["x"]) < 80
    assert page.evaluate(inside) <= 0
    after(page, lambda: page.get_by_label("Fold quiet tokens").uncheck())
    assert len(scenes(page)[0]["x"]) == 512
    for width in (360, 1600):
        after(page, lambda width=width: page.set_viewport_size({"width": width, "height": 900}))
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert seen.errors == []


def test_two_on_a_page_dark_and_from_a_link(page, seen, tmp_path):
    record = record_of()
    views = [tracing(record), tracing(layerwise_tracing(record_of(heads=1)))]
    page.goto(write_page(tmp_path / "two.html", views, "Two").as_uri())
    page.wait_for_function("() => document.querySelectorAll('[data-drawn]').length === 2")
    light = page.locator(".dots").first.evaluate("canvas => canvas.toDataURL()")
    after(page, lambda: page.emulate_media(color_scheme="dark"))
    assert page.locator(".dots").first.evaluate("canvas => canvas.toDataURL()") != light
    after(page, lambda: page.locator(".dots").nth(2).click())
    assert (state(page, "head", 0), state(page, "head", 1)) == (1, None)
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("[data-drawn]")
    assert scenes(page)[0]["head"] == 1
    assert seen.requests == []
    assert seen.errors == []
