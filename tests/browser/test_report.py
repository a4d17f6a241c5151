"""The report in a browser: offline, without errors, the answer first and every view alive."""

import pytest
import torch
from playwright.sync_api import expect

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


def sideways(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def wait_for_views(page, count):
    page.wait_for_function("count => document.querySelectorAll('[data-drawn]').length === count", arg=count)


def test_it_opens_offline_without_errors_and_draws_every_view(opened, seen):
    wait_for_views(opened, 8)
    expect(opened.get_by_text("Predicts yes with 80.0 %").first).to_be_visible()
    assert opened.evaluate("attnscopeHost.models.map((model) => model.get('payload') !== undefined)") == [True] * 8
    assert seen.requests == []
    assert seen.errors == []


def test_what_is_folded_unfolds_to_its_full_width(opened, seen):
    wait_for_views(opened, 8)
    opened.get_by_text("Attention traced down from the read-out").first.click()
    drawn = opened.locator("details.folded[open] canvas").first
    drawn.wait_for(state="visible")
    opened.wait_for_function("() => document.querySelector('details.folded[open] canvas').clientWidth > 100")
    assert sideways(opened) == 0
    assert seen.errors == []


def test_the_card_unfolds(opened):
    opened.get_by_text("Where this comes from").first.click()
    expect(opened.get_by_text("6 query × 6 key tokens, encoder").first).to_be_visible()


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
    assert contrast(opened, "h1, h3, p, blockquote, .quiet, th, summary, td") >= 4.5


@pytest.mark.parametrize("width", [360, 1400])
def test_the_page_never_scrolls_sideways(opened, width):
    opened.set_viewport_size({"width": width, "height": 700})
    wait_for_views(opened, 8)
    assert sideways(opened) == 0


def test_a_long_text_stays_usable(page, seen, tmp_path):
    record = record_of([f"word{number}" for number in range(512)], layers=12, heads=12)
    page.goto(write_report(tmp_path / "long.html", record).as_uri())
    wait_for_views(page, 3)
    assert sideways(page) == 0
    # quiet tokens are folded away, so that tracing draws few dots, each with its name
    page.get_by_text("Attention traced down from the read-out").click()
    page.wait_for_function("() => document.querySelector('details.folded[open] canvas').clientWidth > 100")
    scene = page.locator("details.folded[open] .dots").first.evaluate("canvas => canvas.scene")
    assert len(scene["labels"]) == len(scene["x"]) == 40
    assert seen.errors == []
