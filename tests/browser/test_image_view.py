"""The image view in a browser: every patch is a score, and its figure is one hover away."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from attnscope import AttentionRecord
from attnscope.attribution import raw, rollout
from attnscope.paint import heat
from attnscope.views import image

from .conftest import settled

ROWS, COLUMNS = 3, 4


@pytest.fixture
def methods():
    tokens = ["[CLS]", *(f"patch {row},{column}" for row in range(ROWS) for column in range(COLUMNS))]
    weights = (3 * torch.randn(2, 2, 13, 13, generator=torch.Generator().manual_seed(0))).softmax(-1)
    record = AttentionRecord.from_weights(weights, tokens, causal=False, readout=0)
    return [replace(method(record), grid=(ROWS, COLUMNS)) for method in (raw, rollout)]


@pytest.fixture
def opened(page, methods, tmp_path):
    picture = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    page.goto(image(methods, picture).save(tmp_path / "image.html").as_uri())
    page.wait_for_selector("[data-drawn]")
    return settled(page)


def test_it_opens_offline_and_every_patch_has_the_heat_of_its_score(opened, methods, seen):
    pictures = opened.locator("canvas.picture")
    expect(pictures).to_have_count(2)
    for place, method in enumerate(methods):
        drawn = pictures.nth(place).evaluate("canvas => canvas.scene")
        scores = method.scores[1:].tolist()
        assert [patch["score"] for patch in drawn["patches"]] == pytest.approx(scores)
        shares = [score / max(scores) for score in scores]
        assert [patch["opacity"] for patch in drawn["patches"]] == pytest.approx([0.6 * share for share in shares])
        assert [patch["colour"] for patch in drawn["patches"]] == [heat()[round(share * 63)] for share in shares]
    expect(opened.locator(".said")).to_contain_text("Tokens that are no patch take raw ")
    assert (seen.requests, seen.errors) == ([], [])


def test_pointing_and_keys_tell_the_patch_and_its_score(opened, methods):
    first = opened.locator("canvas.picture").first
    box = first.bounding_box()
    first.hover(position={"x": box["width"] * 2.5 / COLUMNS, "y": box["height"] * 1.5 / ROWS})
    score = float(methods[0].scores[1 + COLUMNS + 2])
    rank = 1 + int((methods[0].scores[1:] > score).sum())
    expect(opened.locator(".reading")).to_have_text(
        f"raw: patch in row 1, column 2 · {float(f'{score:.4g}'):g}, rank {rank} of 12"
    )
    first.focus()
    opened.keyboard.press("ArrowRight")
    expect(opened.locator(".reading")).to_contain_text("raw: patch in row 1, column 3")


def test_opacity_a_method_alone_and_a_narrow_screen(opened):
    opened.get_by_role("slider", name="Opacity of the heat").fill("1")
    opened.get_by_role("button", name="rollout").click()
    settled(opened)
    expect(opened.locator("canvas.picture:visible")).to_have_count(1)
    drawn = opened.locator("canvas.picture").nth(1).evaluate("canvas => canvas.scene.patches")
    assert max(patch["opacity"] for patch in drawn) == pytest.approx(1)
    opened.set_viewport_size({"width": 390, "height": 800})
    expect(opened.locator("canvas.picture").nth(1)).to_have_css("width", "358px")
    assert opened.evaluate("document.documentElement.scrollWidth") == 390
