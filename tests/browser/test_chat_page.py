"""The page that asks, in a browser: documents in, the answer as it is written, the view of what it goes with."""

import json
import math
import re

import pytest
from playwright.sync_api import expect

import attnscope

from .test_app_client import Service
from .test_clipping import FOUND, NOTHING

DOCUMENTS = {"Rome": "Rome fell. It was late, you see.", "The Ald": "The river is called Ald."}
QUESTION = "Which river?"


@pytest.fixture(scope="module")
def service(chat_model, base_model):
    service = Service(chat=chat_model, base=base_model, demo=attnscope.load("demo"))
    yield service
    service.stop()


def opened(page, service, link=""):
    page.goto(f"{service.address}chat{link}")
    page.wait_for_selector("form.question")
    return page


def drawn(page):
    """Wait until the answer and its view are there."""
    page.wait_for_selector("[data-pane][aria-busy=false] .view-panel:not(.aside) [data-drawn]")
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def fill(page, documents=DOCUMENTS, question=QUESTION, tokens=8):
    while page.get_by_role("button", name=re.compile("Take document")).count():
        page.get_by_role("button", name=re.compile("Take document")).first.click()
    for number, (title, text) in enumerate(documents.items(), 1):
        page.get_by_role("button", name="Add a document").click()
        page.get_by_label(f"Title of document {number}", exact=True).fill(title)
        page.get_by_label(f"Document {number}", exact=True).fill(text)
    page.get_by_role("textbox", name="Question").fill(question)
    if page.get_by_label("Tokens at most").is_hidden():
        page.get_by_text("How it answers").click()
    page.get_by_label("Tokens at most").fill(str(tokens))


def ask(page, **given):
    fill(page, **given)
    page.get_by_role("textbox", name="Question").press("Control+Enter")
    drawn(page)


def told(page):
    return page.locator(".complaint:visible").first


def test_a_question_is_answered_and_the_answer_is_explained(page, seen, service, chat_model):
    opened(page, service)
    expect(page.get_by_role("textbox", name="Question")).to_have_value(re.compile("lighthouse"))
    expect(page.locator("select[aria-label=Model] option")).to_have_count(2)  # demo writes no text
    ask(page)
    own = attnscope.answer(chat_model, question=QUESTION, documents=list(DOCUMENTS.items()), max_new_tokens=8)
    assert page.locator(".written").inner_text().split() == own.text.split()
    expect(page.locator(".answer").first).to_contain_text(
        f"{own.record.card['prompt_tokens']} tokens were read, 8 written"
    )
    expect(page.locator("details.reading-list")).not_to_have_attribute("open", "")
    # what is drawn are the scores of the library
    scene = page.locator(".answer-panel").evaluate("node => node.scene")
    scores = own.scores("rollout", by="document")
    wanted = {name: float(scores[name].mean()) for name in DOCUMENTS}
    titles = page.locator(".part.document .title").all_inner_texts()
    assert titles == sorted(wanted, key=lambda name: -wanted[name])
    shares = page.locator(".part.document .share").all_inner_texts()
    assert shares == [f"{100 * wanted[name]:.1f} %" for name in titles]
    assert math.isnan(scene["dropOfAll"])
    # the drops are measured when they are asked for, and are exact
    page.get_by_role("button", name="Measure drops (3 runs)").click()
    page.wait_for_selector(".answer-panel.dropped")
    drawn(page)
    drops = own.drops("document").set_index("segment")["drop"]
    expect(page.get_by_label("Documents", exact=True)).to_have_value("drop")
    measured = page.locator(".part.document .title").all_inner_texts()
    assert measured == sorted(DOCUMENTS, key=lambda name: -drops[name])
    found = page.locator(".answer-panel").evaluate("node => [node.scene.order, node.scene.drops]")
    for title, part in zip(measured, found[0][:2], strict=True):
        assert found[1][part] == pytest.approx(drops[title], abs=1e-4)
    expect(page.get_by_role("button", name="Measure drops")).to_have_count(0)
    assert {request.removeprefix(service.address).split("/")[0] for request in seen.requests} <= {
        "chat", "client", "views", "api", "style.css",
    }  # fmt: skip
    assert seen.errors == []


def test_methods_and_other_views_need_no_new_answer(page, seen, service):
    opened(page, service)
    ask(page)
    answers = [request for request in seen.requests if request.endswith("/api/answers")]
    page.locator(".methods summary").click()
    page.locator(".methods input[value=blank_out]").check()
    page.wait_for_selector(".view.answer select[aria-label=Method] option[value=blank_out]", state="attached")
    drawn(page)
    page.get_by_label("Method", exact=True).select_option("blank_out")
    expect(page.locator(".said")).to_contain_text("Shown: blank_out")
    page.get_by_role("tab", name="Heads", exact=True).click()
    drawn(page)
    expect(page.locator(".view.head")).to_be_visible()
    assert [request for request in seen.requests if request.endswith("/api/answers")] == answers
    assert seen.errors == []


def test_a_link_restores_the_question_and_what_was_chosen(page, seen, service):
    opened(page, service)
    ask(page)
    text = page.locator(".written").inner_text()
    page.locator(".part.document .title").first.click()
    page.evaluate("new Promise((done) => setTimeout(done, 500))")
    link = page.evaluate("location.hash")
    page.goto("about:blank")
    opened(page, service, link)
    drawn(page)
    assert page.locator(".written").inner_text() == text
    expect(page.locator(".part.document .title").first).to_have_attribute("aria-pressed", "true")
    assert page.get_by_label("Tokens at most").input_value() == "8"
    # documents that are too long for a link are asked for again
    page.goto("about:blank")
    opened(page, service, "#model=chat&question=Which%3F&missing=2")
    expect(told(page)).to_have_text("The 2 documents of this link were too long for it: paste them again, then ask.")
    opened(page, service, "#model=gone&question=Which%3F")
    page.reload()
    expect(told(page)).to_contain_text("The model “gone” of this link is not served here")
    assert seen.errors == []


def test_a_conversation_goes_on(page, seen, service):
    opened(page, service)
    ask(page)
    first = page.locator(".written").inner_text()
    page.get_by_role("button", name="Ask further").click()
    expect(page.get_by_role("textbox", name="Question")).to_be_focused()
    expect(page.locator(".earlier")).to_contain_text(QUESTION)
    page.keyboard.type("Who fell?")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".part.turn").filter(has_text="assistant")).to_be_visible()
    drawn(page)
    names = page.locator(".part.turn .title").all_inner_texts()
    assert "assistant" in names
    expect(page.locator(".part.turn").filter(has_text="assistant")).to_contain_text(first.split()[-1])
    page.get_by_role("button", name="Begin anew").click()
    expect(page.locator(".earlier")).to_be_empty()
    assert seen.errors == []


def test_a_given_answer_is_explained(page, seen, service):
    opened(page, service)
    fill(page)
    page.get_by_label("Given answer").fill("The river is called Ald.")
    page.get_by_role("button", name="Ask", exact=True).click()
    drawn(page)
    expect(page.locator(".written")).to_have_text("The river is called Ald.")
    expect(page.locator(".answer").first).to_contain_text("This answer was given")
    expect(page.locator(".reply .token")).to_have_text(["The", "river", "is", "called", "Ald", "."])
    assert seen.errors == []


def test_documents_come_from_a_paste_and_from_files(page, seen, service, tmp_path):
    opened(page, service)
    fill(page, documents={"one": ""})
    page.get_by_label("Title of document 1", exact=True).fill("")
    page.get_by_label("Document 1", exact=True).evaluate(
        """box => {
          const data = new DataTransfer();
          data.setData("text/plain", "Rome fell.\\n---\\nThe river is called Ald.\\n");
          box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
        }"""
    )
    expect(page.locator(".document-row")).to_have_count(2)
    expect(page.locator(".reading-list summary")).to_contain_text("2 documents")
    file = tmp_path / "harbour.txt"
    file.write_text("The market is held on Tuesdays.")
    page.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_label("Title of document 3", exact=True)).to_have_value("harbour")
    image = tmp_path / "picture.png"
    image.write_bytes(b"no picture")
    page.locator("input[type=file]").set_input_files(image)
    expect(told(page)).to_contain_text("“picture.png” is no text file")
    assert seen.errors == []


def test_what_cannot_be_asked_is_said_in_a_sentence(page, seen, service):
    opened(page, service)
    fill(page, question=" ")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(told(page)).to_have_text("Type a question first.")
    fill(page, documents={"Rome": "Rome fell.", "Empty": ""})
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(told(page)).to_contain_text("The document “Empty” is empty")
    fill(page, documents={"Rome": "a" * 120_001})
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(told(page)).to_contain_text("120,001 characters, and at most 120,000 are read")
    fill(page, documents={"Rome": "Rome fell. " * 400})
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(told(page)).to_contain_text("the model reads at most")
    expect(page.locator(".view-panel")).to_have_count(0)
    assert seen.errors == []


def test_the_answer_streams_and_can_be_cancelled(page, seen, service):
    """The server's lines, slowly: what is written is shown before the answer is whole."""
    lines = [
        {"progress": {"done": 1, "of": 9, "doing": "writing"}, "text": "The river"},
        {"error": "This work was stopped."},
    ]
    opened(page, service)
    page.route("**/api/answers", lambda route: route.fulfill(body="".join(json.dumps(line) + "\n" for line in lines)))
    fill(page)
    page.evaluate(
        """() => {
          window.shown = [];
          const node = document.querySelector(".written");
          new MutationObserver(() => window.shown.push(node.textContent)).observe(node, { childList: true });
        }"""
    )
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(told(page)).to_contain_text("This work was stopped.")
    assert "The river" in page.evaluate("window.shown")
    page.unroute("**/api/answers")
    page.route("**/api/answers", lambda _route: None)  # never answered
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    expect(told(page)).to_contain_text("Cancelled.")
    page.unroute("**/api/answers")
    page.get_by_role("button", name="Try again").click()
    drawn(page)
    assert [error for error in seen.errors if "ERR_FAILED" not in error] == []


def test_a_server_without_a_model_that_writes_says_so(page, seen):
    service = Service(demo=attnscope.load("demo"))
    try:
        opened(page, service)
        expect(told(page)).to_contain_text("None of the models that are served here writes text")
        expect(page.get_by_role("button", name="Ask", exact=True)).to_be_disabled()
        page.goto(service.address)
        page.wait_for_selector("[data-pane]")
        expect(page.get_by_role("link", name="Ask about documents")).to_have_count(0)
    finally:
        service.stop()
    assert seen.errors == []


def test_nothing_is_clipped_at_any_width(page, seen, service):
    opened(page, service)
    ask(page)
    page.get_by_text("Documents", exact=False).first.click()
    for scheme, width in (("light", 1300), ("dark", 390)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("new Promise((done) => setTimeout(done, 200))")
        drawn(page)
        assert page.evaluate(FOUND) == NOTHING, f"at {width} px"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.errors == []
