"""The app with other models: real ones where they are found, and a text of 512 tokens in 12 layers of 12 heads."""

import pytest
import torch
from playwright.sync_api import expect
from transformers import BertConfig, BertForSequenceClassification

import attnscope
from attnscope.lab.demo_model import build_tokenizer

from .test_app_client import Service, drawn, look_at, opened, predicted


@pytest.mark.parametrize(("name", "answers"), [("minilm", False), ("smollm2", True)])
def test_a_real_model_is_looked_at_in_every_view_and_saved(page, seen, real_model, tmp_path, name, answers):
    service = Service(**{name: attnscope.load(str(real_model(name)))})
    try:
        opened(page, service)
        look_at(page, "The keys to the cabinet")
        assert not answers or predicted(page).strip() == "are"
        for tab in page.get_by_role("tab").all():
            tab.click()
            drawn(page)
        with page.expect_download() as download:
            page.get_by_role("button", name="Save page").click()
        download.value.save_as(tmp_path / "saved.html")
        assert seen.errors == []
    finally:
        service.stop()
    page.goto((tmp_path / "saved.html").as_uri())
    page.wait_for_selector("[data-drawn]")
    assert seen.errors == []


CANCEL_AT_ONCE = """(awaited) => new MutationObserver((_, watcher) => {
    if (!document.querySelector(".working").textContent.includes(awaited)) return;
    watcher.disconnect();
    document.querySelector("button.cancel").click();
}).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true })"""
"""Clicks as soon as the page says what it is doing: a quick machine is done before a click from outside arrives."""


@pytest.fixture(scope="module")
def large():
    """Twelve layers of twelve heads that read 512 tokens; untrained, and narrow enough to be quick."""
    torch.manual_seed(0)
    tokenizer = build_tokenizer()
    tokenizer.model_max_length = 512
    sizes = dict(hidden_size=48, num_hidden_layers=12, num_attention_heads=12, intermediate_size=48)
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=512, num_labels=2, **sizes)
    model = BertForSequenceClassification(config).eval()
    service = Service(large=attnscope.load(model, tokenizer=tokenizer))
    yield service
    service.stop()


def test_a_long_text_shows_its_first_layer_without_the_others(page, seen, large):
    page.emulate_media(color_scheme="dark")
    text = " ".join(["the key to the cabinets near the doors"] * 63) + " and the key to the door"
    opened(page, large, "#model=large&text=the+key&view=head")
    look_at(page, text)
    expect(page.locator(".view-panel:not(.aside) .tokens.queries .token")).to_have_count(512)
    arrays = {request.rpartition("/")[2] for request in seen.requests if "/blobs/" in request}
    assert "layer0" in arrays
    page.get_by_role("button", name="Layer after").click()
    drawn(page)
    arrays = [request.rpartition("/")[2] for request in seen.requests if "/blobs/" in request]
    assert set(arrays) - {"own"} == {"layer0", "layer1"}  # "own" is of the scores, for the headline
    assert seen.errors == []


def test_flow_of_a_long_text_shows_how_far_it_is_and_ends_when_it_is_cancelled(page, large):
    opened(page, large, "#model=large&text=the+key&view=head")
    look_at(page, " ".join(["the key to the cabinets near the doors"] * 63))
    page.evaluate(CANCEL_AT_ONCE, "drawing flow")
    page.get_by_role("tab", name="Flow").click()
    expect(page.locator(".view-panel:not(.aside) .trouble")).to_contain_text("Cancelled.")
    for _ in range(100):
        if all(turns.count == 0 for turns in large.desk.turns):
            break
        page.wait_for_timeout(200)
    assert large.desk.drawing.count == 0
