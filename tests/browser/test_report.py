"""The report in a browser: offline, without errors, and every number one hover away."""

import re

import pytest
import torch

from attnscope import AttentionRecord, write_report


def record_of(tokens, layers=3, heads=4, special=()):
    torch.manual_seed(0)
    weights = (3 * torch.randn(layers, heads, len(tokens), len(tokens))).softmax(-1)
    marks = tuple(position in special for position in range(len(tokens)))
    return AttentionRecord(
        weights=weights, query_tokens=tuple(tokens), key_tokens=tuple(tokens), query_special=marks, key_special=marks,
        stack="encoder", causal=False, readout=torch.eye(len(tokens))[0], prediction=(("yes", 0.8), ("no", 0.2)),
        text=" ".join(tokens), card={"model": "tiny"},
    )  # fmt: skip


@pytest.fixture
def record():
    return record_of(["[CLS]", "the", "key", "<script>throw 1</script>", "cabinets", "[SEP]"], special=(0, 5))


@pytest.fixture
def opened(page, record, tmp_path):
    page.goto(write_report(tmp_path / "report.html", [record, record]).as_uri())
    return page


def box_of(page, selector):
    return page.locator(selector).first.evaluate("element => getComputedStyle(element).backgroundColor")


def sideways(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_it_opens_offline_without_errors(opened, seen):
    assert opened.locator("article").count() == 2
    assert opened.get_by_text("cabinets", exact=True).first.is_visible()
    assert seen.requests == []
    assert seen.errors == []


def test_hovering_a_token_shows_its_number_and_moves_nothing(opened, record):
    before = opened.locator("main").bounding_box()
    opened.locator(".tokens span").nth(2).hover()
    score = float(record.weights[-1].mean(0)[0, 2])
    assert re.match(rf"key · {score:.4f} · rank \d of 6", opened.locator("#note").inner_text())
    assert opened.locator("main").bounding_box() == before


def test_maps_are_drawn_from_their_weights(opened, record):
    pixel = opened.locator("button.map canvas").first.evaluate(
        "(canvas) => [canvas.width, canvas.height, ...canvas.getContext('2d').getImageData(0, 0, 6, 6).data]"
    )
    assert pixel[:2] == [6, 6]
    reds = torch.tensor(pixel[2::4], dtype=torch.float).reshape(6, 6)
    weights = record.weights[0, 0]
    assert int(reds.argmin()) in weights.flatten().topk(2).indices.tolist()
    assert float(torch.corrcoef(torch.stack([reds.flatten(), weights.flatten()]))[0, 1]) < -0.95


def test_a_head_is_enlarged_read_and_closed(opened, record):
    button = opened.locator("button.map").nth(5)
    button.click()
    dialog = opened.locator("dialog")
    assert dialog.get_by_role("heading", name="Layer 1, head 1").is_visible()
    assert dialog.locator("#queries span").all_inner_texts() == list(record.query_tokens)
    opened.locator("dialog canvas").hover(position={"x": 36 * 4 + 5, "y": 36 * 2 + 5})
    reading = opened.locator("#reading").inner_text()
    weight = float(record.weights[1, 1, 2, 4])
    rank = 1 + int((record.weights[1, 1, 2] > weight).sum())
    assert reading.startswith("“key” → “cabinets” ")
    assert float(reading.split()[3]) == pytest.approx(weight, abs=1e-4)
    assert f"rank {rank} of 6" in reading
    opened.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert button.evaluate("button => button === document.activeElement")


def test_keys_step_through_layers_and_heads(opened):
    opened.locator("button.map").first.focus()
    opened.keyboard.press("Enter")
    for key, title in [
        ("ArrowRight", "Layer 1, head 0"),
        ("ArrowDown", "Layer 1, head 1"),
        ("ArrowLeft", "Layer 0, head 1"),
    ]:
        opened.keyboard.press(key)
        assert opened.locator("#enlarged-title").inner_text() == title
    opened.keyboard.press("ArrowLeft")
    assert opened.locator("#enlarged-title").inner_text() == "Layer 0, head 1"
    assert opened.get_by_role("button", name="Layer below").is_disabled()


def test_buttons_have_names_before_and_after_hovering(opened):
    button = opened.locator("button.map").first
    name = button.get_attribute("title")
    assert name.startswith("Layer 0, head 0: strongest ")
    button.hover()
    assert opened.locator("#note").inner_text() == name
    assert opened.get_by_role("button", name=name).count() == 2


def test_focus_is_visible(opened):
    opened.locator("button.map").first.focus()
    opened.keyboard.press("Tab")
    width = opened.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert width == "2px"


def test_square_root_scale_lifts_small_weights_and_says_so(opened):
    shares = opened.locator(".tokens [data-share]")
    faint = min(range(6), key=lambda place: float(shares.nth(place).get_attribute("data-share")))
    before = shares.nth(faint).evaluate("token => +token.className.match(/w(\\d+)/)[1]")
    opened.locator("header .root").check()
    after = shares.nth(faint).evaluate("token => +token.className.match(/w(\\d+)/)[1]")
    assert after == pytest.approx(255 * float(shares.nth(faint).get_attribute("data-share")) ** 0.5, abs=1)
    assert after > before
    assert opened.locator(".legend .scale").all_inner_texts() == ["square-root"] * 6


def test_the_table_and_the_card_unfold(opened):
    opened.get_by_text("View as table").first.click()
    assert opened.get_by_role("columnheader", name="Attention").first.is_visible()
    opened.get_by_text("Where this comes from").first.click()
    assert opened.get_by_text("6 query × 6 key tokens, encoder").first.is_visible()


def contrast(page, selector):
    """The smallest contrast of text and ground among the elements, as WCAG defines it."""
    return page.evaluate(
        """(selector) => {
          const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
          const linear = (byte) => (byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4);
          const light = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
          const ground = (element) => {
            const colour = channels(getComputedStyle(element).backgroundColor);
            const seen = colour.length === 3 || colour[3] > 0 || !element.parentElement;
            return seen ? colour : ground(element.parentElement);
          };
          return Math.min(...[...document.querySelectorAll(selector)].map((element) => {
            const [one, other] = [light(channels(getComputedStyle(element).color)), light(ground(element))];
            return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
          }));
        }""",
        selector,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_reads_in_both_schemes(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    assert contrast(opened, "h1, h3, p, blockquote, .quiet, th, summary, td, .tokens span") >= 4.5


def test_dark_mode_is_dark_and_draws_the_maps_again(opened):
    first = "canvas => canvas.toDataURL()"
    light = opened.locator("button.map canvas").first.evaluate(first)
    opened.emulate_media(color_scheme="dark")
    assert box_of(opened, "body") != "rgb(255, 255, 255)"
    opened.wait_for_function(
        "before => document.querySelector('button.map canvas').toDataURL() !== before", arg=light, timeout=10_000
    )


def test_a_long_text_stays_usable(page, seen, tmp_path):
    record = record_of([f"word{number}" for number in range(512)], layers=12, heads=12)
    page.goto(write_report(tmp_path / "long.html", record).as_uri())
    assert page.locator("button.map").count() == 144
    assert sideways(page) == 0
    page.locator("button.map").nth(100).click()
    page.locator("dialog canvas").hover(position={"x": 3, "y": 3})
    assert "…" in page.locator("#reading").inner_text()
    assert "block of" in page.locator("#meaning").inner_text()
    assert seen.errors == []


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_the_page_never_scrolls_sideways(opened, width):
    opened.set_viewport_size({"width": width, "height": 700})
    assert sideways(opened) == 0
    opened.locator("button.map").first.click()
    assert sideways(opened) == 0


def test_right_to_left_text_runs_right_to_left(page, tmp_path):
    record = record_of(["[CLS]", "שלום", "עולם", "[SEP]"], special=(0, 3))
    page.goto(write_report(tmp_path / "hebrew.html", record).as_uri())
    lefts = [token.bounding_box()["x"] for token in page.locator(".tokens span").all()]
    assert lefts == sorted(lefts, reverse=True)
