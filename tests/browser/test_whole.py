"""Nothing is cut: at every width each view shows all its tokens, rows and heads, in whatever script they are."""

import pytest
import torch

from attnscope import AttentionRecord, compare, views

from .conftest import found_at_rest, settled

WORDS = "the old keys to the wooden cabinets in a small kitchen were never found by people who lived there".split()
TOKENS = ["[CLS]", *WORDS, ".", "[SEP]"]
SCRIPTS = ["👩‍👩‍👧", "שלום", "مرحبا", "e\u0301te\u0301", "नमस्ते", "日本語", "🏳️‍🌈", "a\u0308\u0323"]
CUT = """() => [...document.querySelectorAll(".view .body, .view .body *")]
    .filter((element) => getComputedStyle(element).overflow !== "visible" && element.clientWidth)
    .filter((one) => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)
    .map((element) => `${element.className} ${element.textContent.slice(0, 30)}`)"""


def record_of(tokens):
    torch.manual_seed(0)
    count = len(tokens)
    weights = (2 * torch.randn(6, 12, count, count)).softmax(-1)
    vectors = {"queries": torch.randn(6, 12, count, 32), "keys": torch.randn(6, 12, count, 32), "scaling": (0.2,) * 6}
    special = tuple(token.startswith("[") for token in tokens)
    texts = {"query_tokens": tuple(tokens), "key_tokens": tuple(tokens), "query_special": special}
    return AttentionRecord(
        weights=weights, **texts, stack="encoder", causal=False, readout=torch.eye(count)[0], **vectors
    )


def opened(page, record, name, path):
    made = views.scores(compare(record), record=record) if name == "scores" else views.VIEWS[name](record)
    page.goto(made.save(path).as_uri())
    page.wait_for_selector("[data-drawn]")
    return settled(page)


@pytest.mark.parametrize("name", ["scores", "head", "model", "neuron", "flow", "tracing"])
def test_nothing_is_cut_at_any_width(page, seen, name, tmp_path):
    opened(page, record_of(TOKENS), name, tmp_path / "view.html")
    for width in (390, 768, 1300):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("() => new Promise((done) => setTimeout(() => done(true), 50))")
        assert found_at_rest(page, CUT, []) == [], width
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert (seen.requests, seen.errors) == ([], [])


@pytest.mark.parametrize("name", ["scores", "head", "neuron", "flow", "tracing"])
def test_every_script_is_shown_whole(page, seen, name, tmp_path):
    opened(page, record_of(SCRIPTS), name, tmp_path / "view.html")
    page.set_viewport_size({"width": 1300, "height": 900})
    texts = settled(page).locator(".view .token").all_inner_texts()
    assert set(texts) == set(SCRIPTS)
    assert page.evaluate(CUT) == []
    assert (seen.requests, seen.errors) == ([], [])


def test_the_dots_of_a_trace_have_their_tokens_below_them(page, tmp_path):
    opened(page, record_of(TOKENS), "tracing", tmp_path / "view.html")
    scenes = page.locator(".dots").evaluate_all("all => all.map((canvas) => canvas.scene)")
    assert len(scenes) == 13
    for scene in scenes:
        assert scene["labels"] == TOKENS
    long = record_of([f"t{place}" for place in range(120)])
    opened(page, long.select(layers=[0, 1], heads=[0, 1]), "tracing", tmp_path / "long.html")
    scene = page.locator(".dots").first.evaluate("canvas => canvas.scene")
    assert len(scene["labels"]) == 40
    assert "80 tokens that hold at most" in page.locator(".said").inner_text()


@pytest.mark.parametrize(("tokens", "width", "layout"), [(TOKENS, 390, "running"), (TOKENS[:9], 1300, "aligned")])
def test_scores_run_on_where_columns_do_not_fit(page, tokens, width, layout, tmp_path):
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, record_of(tokens), "scores", tmp_path / "view.html")
    rows = page.locator(f".rows.{layout} .row[data-method]")
    counts = [rows.nth(place).locator(".token").count() for place in range(rows.count())]
    assert set(counts) == {len(tokens)}
    runs_on = "Aligned columns do not fit here" in page.locator(".said").inner_text()
    assert runs_on == (layout == "running")
