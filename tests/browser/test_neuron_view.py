"""The neuron view in a browser: what it adds up is what the record holds, by pointer and by key."""

from dataclasses import replace

import pytest
import torch
from playwright.sync_api import expect

from attnscope.record import AttentionRecord
from attnscope.views import neuron, write_page

from .conftest import settled

HOSTILE = ("<script>throw 1</script>", '"', "'&amp;", "\u202eevil", "x" * 10_000, " plain", "end")
CLOSE = 0.02


def record_of(tokens=HOSTILE, layers=3, heads=4, width=16, *, softcap=None, seed=0):
    random = torch.Generator().manual_seed(seed)
    count = len(tokens)
    queries, keys = (torch.randn(layers, heads, count, width, generator=random) for _ in range(2))
    bias = torch.full((count, count), -torch.inf).triu(1).expand(layers, 1, -1, -1)
    scaling = (0.25,) * layers
    logits = queries @ keys.transpose(-1, -2) * 0.25
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    record = AttentionRecord.from_weights((logits + bias).softmax(-1), tokens, causal=True)
    special = (True,) + (False,) * (count - 1)
    vectors = {"queries": queries, "keys": keys, "scaling": scaling, "softcap": softcap, "score_bias": bias}
    return replace(record, **vectors, query_special=special, key_special=special)


def opened(page, view, path):
    page.goto(view.save(path).as_uri())
    page.wait_for_selector("[data-drawn]")


def scene(page, canvas="strips"):
    return settled(page).locator(f".{canvas}").first.evaluate("canvas => canvas.scene")


def state(page, name, view=0):
    return page.evaluate("([view, name]) => attnscopeHost.models[view].get(name)", [view, name])


def after(page, act):
    """Do something and wait until it is drawn."""
    before = settled(page).locator(".view").first.get_attribute("data-drawn")
    act()
    page.wait_for_function("before => document.querySelector('.view').dataset.drawn !== before", arg=before)
    settled(page)


def numbers(page):
    """The figures of the sum that is shown, by their words."""
    parts = page.locator(".steps > div").first.locator("xpath=..").locator("div")
    texts = [part.split("\n") for part in parts.all_inner_texts()]
    return {
        words.split(",")[0]: float(value.split()[-1].replace("−", "-").replace("∞", "inf")) for value, words in texts
    }


def check_drawn(page, record):
    """Every row that is drawn has the sum, logit and weight of the record."""
    drawn = scene(page)
    place = (record.layers.index(drawn["layer"]), record.heads.index(drawn["head"]), drawn["query"])
    dots = (record.queries @ record.keys.transpose(-1, -2))[place]
    for row in drawn["rows"]:
        assert row["dot"] == pytest.approx(float(dots[row["key"]]), abs=CLOSE)
        if row["key"] > drawn["query"]:
            assert row["weight"] == 0
            continue
        assert row["logit"] == pytest.approx(float(record.logits()[(*place, row["key"])]), abs=CLOSE)
        assert row["weight"] == pytest.approx(float(record.weights[(*place, row["key"])]), abs=0.005)
    return drawn


def test_it_opens_offline_with_the_figures_of_the_record(page, seen, tmp_path):
    record = record_of()
    opened(page, neuron(record, 1, 2, 4), tmp_path / "neuron.html")
    drawn = check_drawn(page, record)
    assert (drawn["layer"], drawn["head"], drawn["query"], len(drawn["rows"])) == (1, 2, 4, 7)
    assert page.locator(".tokens.keys .token").first.inner_text() == HOSTILE[0]
    expect(page.locator(".said")).to_contain_text("differ from the record by at most", use_inner_text=True)
    page.locator(".tokens.queries .token").nth(1).focus()
    for action in ("ArrowRight", "ArrowDown", "s", "o"):  # the focus stays, whatever is hidden
        after(page, lambda key=action: page.keyboard.press(key))
        check_drawn(page, record)
    assert (state(page, "layer"), state(page, "head"), state(page, "order")) == (2, 3, "contribution")
    assert 0 not in [row["key"] for row in scene(page)["rows"]]
    expect(page.locator(".said")).to_contain_text("1 keys are not shown and take", use_inner_text=True)
    assert seen.requests == []
    assert seen.errors == []


@pytest.mark.parametrize("softcap", [None, 1.5])
def test_the_products_add_up_to_the_logit(page, tmp_path, softcap):
    record = record_of(softcap=softcap)
    opened(page, neuron(record, 0, 1, 5), tmp_path / "neuron.html")
    after(page, lambda: page.locator(".tokens.keys .token").nth(3).click())
    drawn, shown = scene(page, "bars"), numbers(page)
    products = record.queries[0, 1, 5] * record.keys[0, 1, 3]
    assert drawn["products"] == pytest.approx(products.tolist(), abs=0.01)
    assert sum(drawn["products"]) == pytest.approx(drawn["sum"], abs=1e-4)
    assert shown["sum of 16 products"] == pytest.approx(float(products.sum()), abs=CLOSE)
    assert shown["scaled"] == pytest.approx(0.25 * float(products.sum()), abs=CLOSE)
    assert shown["logit"] == pytest.approx(float(record.logits()[0, 1, 5, 3]), abs=CLOSE)
    assert shown["weight"] == pytest.approx(float(record.weights[0, 1, 5, 3]), abs=0.005)
    assert any(words.startswith("soft cap") for words in shown) == bool(softcap)
    page.locator(".tokens.keys .token").nth(6).hover()
    assert numbers(page)["bias: masked"] == -float("inf")
    expect(page.locator(".reading")).to_contain_text("logit −∞", use_inner_text=True)


def test_dimensions_are_sorted_by_what_they_give_to_the_pinned_key(page, tmp_path):
    record = record_of()
    opened(page, neuron(record, 0, 0, 6), tmp_path / "neuron.html")
    assert scene(page)["order"] == list(range(16))
    after(page, lambda: page.locator(".tokens.keys .token").nth(2).click())
    after(page, lambda: page.get_by_role("combobox", name="Dimensions").select_option("contribution"))
    products = record.queries[0, 0, 6] * record.keys[0, 0, 2]
    wanted = products.argsort(descending=True).tolist()
    assert scene(page)["order"] == wanted
    strips = page.locator(".strips")
    strips.hover(position={"x": 10, "y": 12})
    expect(page.locator(".note")).to_contain_text(f"dimension {wanted[0]}", use_inner_text=True)
    assert scene(page)["order"] == wanted  # what is pinned keeps its order while others are hovered
    page.locator(".bars").hover(position={"x": 60, "y": 50})
    expect(page.locator(".note")).to_contain_text(f"contribution 1 of {len(wanted)}", use_inner_text=True)


def test_pointer_and_keys_choose_query_and_keys(page, seen, tmp_path):
    record = record_of()
    opened(page, neuron(record), tmp_path / "neuron.html")
    after(page, lambda: page.locator(".tokens.queries .token").nth(3).click())
    assert state(page, "query") == 3
    check_drawn(page, record)
    keys = page.locator(".tokens.keys .token")
    after(page, lambda: keys.nth(1).click())
    after(page, lambda: keys.nth(2).click(modifiers=["Shift"]))
    assert state(page, "keys") == [1, 2]
    together = float(record.weights[0, 0, 3, 1] + record.weights[0, 0, 3, 2])
    assert numbers(page)["2 pinned keys together"] == pytest.approx(together, abs=0.005)
    keys.nth(2).focus()
    page.keyboard.press("p")
    assert page.evaluate("document.activeElement.dataset.place") == "1"
    after(page, lambda: page.keyboard.press("Enter"))
    after(page, lambda: page.keyboard.press("Escape"))
    assert state(page, "keys") == []
    after(page, lambda: page.get_by_role("slider", name="Hide below").fill("0.2"))
    shown = [row["key"] for row in scene(page)["rows"]]
    assert shown == [key for key in range(4) if float(record.weights[0, 0, 3, key]) >= 0.2]
    page.get_by_text("View as table").click()
    page.locator("table.plain tbody tr").first.wait_for()
    expect(page.locator("table.plain tbody tr")).to_have_count(len(shown))
    assert seen.errors == []


def test_long_texts_scroll_inside_and_nothing_shifts(page, seen, tmp_path):
    record = record_of([f"t{place}" for place in range(512)], layers=1, heads=2)
    page.set_viewport_size({"width": 1280, "height": 1200})  # so that hovering does not scroll the page
    opened(page, neuron(record), tmp_path / "neuron.html")
    assert len(scene(page)["rows"]) < 30
    # it opens on a pair that is in sight, both ends of it
    view = neuron(record)
    key, query = view.state["keys"][0], view.state["query"]
    assert 0 < abs(key - query) <= 16
    assert scene(page)["key"] == key
    top, bottom = page.locator(".area").evaluate("area => [area.scrollTop, area.scrollTop + area.clientHeight - 24]")
    assert top <= 24 * min(key, query) <= 24 * max(key, query) + 24 <= bottom
    page.locator(".area").evaluate("area => area.scrollTop = 511 * 24")
    page.wait_for_function("() => document.querySelector('.strips').scene.rows.some(({ key }) => key === 511)")
    check_drawn(page, record)
    boxes = "elements => elements.map((element) => JSON.stringify(element.getBoundingClientRect()))"
    parts = page.locator(".view > :not(.note), .strips, .bars, .steps")
    before = parts.evaluate_all(boxes)
    page.locator(".strips").hover(position={"x": 20, "y": 100})
    page.locator(".bars").hover()
    assert parts.evaluate_all(boxes) == before
    for width in (360, 1600):
        after(page, lambda width=width: page.set_viewport_size({"width": width, "height": 800}))
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert seen.errors == []


def test_two_on_a_page_dark_and_from_a_link(page, seen, tmp_path):
    record = record_of()
    path = write_page(tmp_path / "two.html", [neuron(record, 0), neuron(record, 2, 1, 5)], "Two")
    page.goto(path.as_uri())
    page.wait_for_function("() => document.querySelectorAll('[data-drawn]').length === 2")
    light = page.locator(".strips").first.evaluate("canvas => canvas.toDataURL()")
    after(page, lambda: page.emulate_media(color_scheme="dark"))
    assert page.locator(".strips").first.evaluate("canvas => canvas.toDataURL()") != light
    after(page, lambda: page.locator(".tokens.queries .token").nth(2).click())
    assert (state(page, "query", 0), state(page, "query", 1)) == (2, 5)
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("[data-drawn]")
    assert scene(page)["query"] == 2
    assert seen.requests == []
    assert seen.errors == []


def test_cross_attention_has_two_texts(page, seen, tmp_path):
    random = torch.Generator().manual_seed(3)
    queries, keys = (torch.randn(1, 2, count, 8, generator=random) for count in (2, 5))
    logits = queries @ keys.transpose(-1, -2) * 0.5
    record = AttentionRecord.from_weights(logits.softmax(-1), ["le", "chat"], key_tokens=list("abcde"))
    opened(page, neuron(replace(record, queries=queries, keys=keys, scaling=(0.5,))), tmp_path / "cross.html")
    after(page, lambda: page.locator(".tokens.queries .token").nth(1).click())
    rows = scene(page)["rows"]
    assert [row["weight"] for row in rows] == pytest.approx(record.weights[0, 0, 1].tolist(), abs=0.005)
    assert [row["logit"] for row in rows] == pytest.approx(logits[0, 0, 1].tolist(), abs=CLOSE)
    assert seen.errors == []
