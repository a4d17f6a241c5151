"""The app in a browser, from typing to what is taken away: the page of `attnscope serve` around the shipped model."""

import json
import re
import threading
from itertools import islice
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Page, Route, expect

import attnscope
from attnscope.app import Desk, Guard
from attnscope.app.process import listen_at
from attnscope.app.server import build
from attnscope.syntax import agreement_sentences, sentences_of

IDLE = "body:has([data-pane]):not(:has([aria-busy=true]))"
"""The page, while no pane and no view of it works; waiting by a function would need eval, which the policy forbids."""
BLANK = ".view-panel:not(.aside):not(:has([data-drawn]))"
DRAWN = f"{IDLE}:not(:has({BLANK})) .view-panel:not(.aside) [data-drawn]"
"""What is drawn on a page that has no work under way and no pane without its view."""
HOSTILE = "<script>alert(1)</script> \"' \u202e \u0000&amp; <img src=x onerror=alert(1)>"


class Service:
    """A server in a thread, its desk at hand."""

    def __init__(self, **models) -> None:
        self.desk = Desk(models, budget=400_000_000)
        service = build(self.desk, upload_bytes=4_000_000)
        self.socket = listen_at("127.0.0.1", 0)
        config = uvicorn.Config(Guard(service, upload_bytes=4_000_000), log_level="warning", access_log=False)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self.thread.start()
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}/"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        self.socket.close()


@pytest.fixture(scope="module")
def service():
    service = Service(demo=attnscope.load("demo"))
    yield service
    service.stop()


def drawn(page: Page) -> None:
    """Wait until what is in sight is drawn and nothing is under way.

    No work is missed: what a click or a key asks for is marked as work before the click or the key returns.
    """
    page.wait_for_selector(DRAWN)


def opened(page: Page, service: Service, place: str = "") -> Page:
    page.goto(service.address + place)
    drawn(page)
    return page


def look_at(page: Page, text: str, pane: int = 1) -> None:
    page.locator(f"[data-pane='{pane}'] textarea").first.fill(text)
    page.keyboard.press("Control+Enter")
    drawn(page)


def predicted(page: Page, pane: int = 1) -> str:
    drawn(page)
    return page.locator(f"[data-pane='{pane}'] .prediction b").inner_text()


def place_of(page: Page) -> str:
    """The link, once the last choice is in it: a moment later by the clock of the page, which may lag behind ours."""
    page.evaluate("new Promise((done) => setTimeout(done, 400))")
    return page.evaluate("location.hash")


def test_a_newcomer_sees_the_first_example(page, seen, service):
    opened(page, service)
    expect(page.locator("textarea").first).to_have_value("the key to the cabinets")
    assert predicted(page) == "singular"
    expect(page.get_by_role("tab", name="Scores")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".carried")).to_contain_text("“key”")
    expect(page.locator(".scores-panel .row[data-method]")).to_have_count(11)
    assert {request.removeprefix(service.address).split("/")[0] for request in seen.requests} <= {
        "", "client", "views", "api", "style.css",
    }  # fmt: skip
    assert seen.errors == []


def test_typing_changing_tabs_and_methods_never_reload(page, seen, service):
    opened(page, service)
    page.evaluate("window.kept = true")
    look_at(page, "the keys to the cabinet")
    assert predicted(page) == "plural"
    page.get_by_role("tab", name="Heads", exact=True).click()
    drawn(page)
    page.evaluate("document.querySelector('.view-panel:not(.aside) .view').dataset.mark = 'the same'")
    page.get_by_role("tab", name="Scores").click()
    page.locator(".methods summary").click()
    page.locator(".methods input[value=flow]").uncheck()
    page.wait_for_selector(".scores-panel .rows:not(:has([data-method=flow]))")
    drawn(page)
    expect(page.locator(".scores-panel .row[data-method]")).to_have_count(10)
    page.get_by_role("tab", name="Heads", exact=True).click()
    expect(page.locator("[data-mark='the same']")).to_be_visible()
    assert page.evaluate("window.kept")
    assert seen.errors == []


def test_every_view_is_drawn(page, seen, service):
    opened(page, service)
    for tab in page.get_by_role("tab").all():
        tab.click()
        drawn(page)
        expect(page.locator(".view-panel:not(.aside)")).to_have_count(1)
        assert page.locator(".view-panel:not(.aside)").get_attribute("aria-labelledby") == tab.get_attribute("id")
    assert seen.errors == []


def test_a_link_restores_what_was_chosen(page, seen, service):
    opened(page, service)
    look_at(page, "the keys to the cabinet & <more>")
    page.get_by_role("tab", name="All heads").click()  # a view with the name of something else in the link: model
    drawn(page)
    page.locator(".view-panel:not(.aside)").get_by_label("Square-root scale").check()
    page.get_by_role("tab", name="Heads", exact=True).click()
    drawn(page)
    page.get_by_role("button", name="Layer after").click()
    page.get_by_role("button", name="Layer after").click()
    place = place_of(page)
    assert "head_state=" in place
    assert "model_state=" in place
    page.goto("about:blank")
    opened(page, service, place)
    expect(page.locator("textarea").first).to_have_value("the keys to the cabinet & <more>")
    expect(page.get_by_role("tab", name="Heads", exact=True)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".view-panel:not(.aside) .stepper output").first).to_have_text("2")
    assert place_of(page) == place
    assert seen.errors == []


NONSENSE = ["#%", "#text=x&view=nothing&scores=[1", "#model=other&text=hi", "#opened=a.safetensors"]


@pytest.mark.parametrize("place", NONSENSE)
def test_a_link_that_says_nonsense_breaks_nothing(page, seen, service, place):
    page.goto(service.address + place)
    page.wait_for_selector(f"{IDLE} :is([data-drawn], .complaint:not([hidden]), .notice:not([hidden]))")
    look_at(page, "the key")
    assert predicted(page) == "singular"
    assert seen.errors == []


def test_the_second_side_has_its_headline_whichever_view_is_in_sight(page, service):
    opened(page, service)
    page.locator("[data-pane='1'] [data-tab=head]").click()
    page.wait_for_selector("[data-pane='1'] .view-panel:not(.aside) .view.head[data-drawn]")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector("[data-pane='2'] .view-panel:not(.aside) .view.head[data-drawn]")
    headline = page.locator("[data-pane='1'] .carried").inner_text()
    assert headline
    expect(page.locator("[data-pane='2'] .carried")).to_have_text(headline)


def test_why_not_another_outcome_is_asked_on_both_sides_and_restored_by_a_link(page, seen, service):
    opened(page, service)
    expect(page.get_by_label("Explain", exact=True).locator("option")).to_have_text(["singular", "plural"])
    page.get_by_label("and not").select_option("plural")
    drawn(page)
    why_not = re.compile(r"^Explained: why 'singular' \(> 99.9 %\) and not 'plural'. By blank-out.*“key”")
    expect(page.locator(".carried")).to_have_text(why_not)
    page.get_by_label("Explain", exact=True).select_option("plural")  # what it is not then becomes what is explained
    drawn(page)
    why = re.compile(r"^Explained: why 'plural' \(< 0.1 %\). By blank-out these words speak against it: “key”")
    expect(page.locator(".carried")).to_have_text(why)
    expect(page.get_by_label("and not").locator("option")).to_have_text(["–", "singular"])
    page.get_by_label("by", exact=True).select_option("sentence")
    drawn(page)
    whole = re.compile("this sentence speaks against it: “the key to the cabinets” −0.484")
    expect(page.locator(".carried")).to_have_text(whole)
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector("[data-pane='2'] [data-drawn]")
    expect(page.locator("[data-pane='2'] .carried")).to_have_text(whole)
    look_at(page, "the keys to the cabinet", pane=2)  # a chosen outcome outlives the text
    expect(page.locator("[data-pane='2'] .carried")).to_have_text(
        re.compile("^By blank-out.*“the keys to the cabinet”")
    )
    place = place_of(page)
    assert [place.count(said) for said in ("target=plural", "by=sentence", "against=")] == [2, 2, 0]
    page.goto("about:blank")
    opened(page, service, place)
    expect(page.locator("[data-pane='1'] .carried")).to_have_text(whole)
    expect(page.locator("[data-pane='1'] .explaining select").first).to_have_value("plural")
    assert place_of(page) == place
    assert seen.errors == []


def test_a_link_that_asks_for_no_outcome_of_this_model_offers_the_prediction(page, service):
    page.goto(f"{service.address}#model=demo&text=the+key&target=dual")
    expect(page.locator(".question .complaint")).to_contain_text("There is no outcome 'dual' here")
    page.get_by_role("button", name="Explain the prediction").click()
    assert predicted(page) == "singular"
    assert "target" not in place_of(page)


def test_a_text_that_is_too_long_is_cut_when_that_is_asked_for(page, seen, service):
    opened(page, service)
    expect(page.get_by_label("by", exact=True)).to_have_value("word")
    page.locator("textarea").first.fill("the key to " * 40)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".question .complaint")).to_contain_text("the model reads at most 64")
    page.get_by_role("button", name="Leave the rest out").click()
    expect(page.locator(".answer")).to_contain_text("Only the first 64 tokens were read")
    drawn(page)
    place = place_of(page)
    assert "truncate=1" in place
    page.goto("about:blank")
    opened(page, service, place)
    expect(page.locator(".answer")).to_contain_text("Only the first 64 tokens were read")
    look_at(page, "the key")
    assert "truncate" not in place_of(page)
    assert [error for error in seen.errors if "400" not in error] == []  # the browser tells of what was refused


def test_two_sides_stay_in_step(page, seen, service):
    page.set_viewport_size({"width": 1400, "height": 900})
    opened(page, service)
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector("[data-pane='2'] [data-drawn]")
    look_at(page, "the keys to the cabinet", pane=2)
    assert (predicted(page, 1), predicted(page, 2)) == ("singular", "plural")
    left, right = (page.locator(f"[data-pane='{pane}']").bounding_box() for pane in (1, 2))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] < right["x"]
    page.get_by_label("Same view and layer on both sides").check()
    page.locator("[data-pane='1'] [data-tab=head]").click()
    page.wait_for_selector("[data-pane='2'] .view-panel:not(.aside) .view.head[data-drawn]")
    drawn(page)
    page.locator("[data-pane='1'] .view-panel:not(.aside)").get_by_role("button", name="Layer after").click()
    expect(page.locator("[data-pane='2'] .view-panel:not(.aside) .stepper output").first).to_have_text("1")
    place = place_of(page)
    page.goto("about:blank")
    opened(page, service, place)
    page.wait_for_selector("[data-pane='2'] .view-panel:not(.aside) .view.head[data-drawn]")
    assert (predicted(page, 1), predicted(page, 2)) == ("singular", "plural")
    page.get_by_role("button", name="Stop comparing").click()
    expect(page.locator("[data-pane]")).to_have_count(1)
    assert seen.errors == []


def test_page_figure_and_python_are_taken_away(page, seen, service, tmp_path):
    opened(page, service)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save page").click()
    page_text = saved.value.path().read_text(encoding="utf-8")
    assert re.fullmatch(r"scores-the-key-to-the-cabinets.*\.html", saved.value.suggested_filename)
    assert "data-view=scores" in page_text
    page.locator(".menu summary").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="SVG").click()
    assert "<svg" in saved.value.path().read_text(encoding="utf-8")
    page.get_by_role("button", name="Copy Python").click()
    expect(page.locator("dialog pre")).to_contain_text("import attnscope")
    code = page.locator("dialog pre").inner_text()
    assert code.startswith("import attnscope")
    assert "the key to the cabinets" in code
    page.keyboard.press("Escape")
    expect(page.locator("dialog.code")).to_have_count(0)
    assert seen.errors == []


def test_what_the_server_forgot_is_asked_for_again(page, seen, service):
    opened(page, service)
    service.desk.shelf.__init__(service.desk.shelf.budget)  # as when many other texts came
    page.get_by_role("tab", name="Heads", exact=True).click()
    drawn(page)
    service.desk.shelf.__init__(service.desk.shelf.budget)
    page.get_by_role("button", name="Layer after").click()  # an array that was not fetched before
    expect(page.locator(".view-panel:not(.aside) .stepper output").first).to_have_text("1")
    drawn(page)
    service.desk.shelf.__init__(service.desk.shelf.budget)
    page.get_by_role("button", name="Copy Python").click()
    expect(page.locator("dialog pre")).to_contain_text("import attnscope")
    expect(page.locator(".complaint:visible")).to_have_count(0)


def answer(route: Route, status: int, sentence: str) -> None:
    route.fulfill(status=status, body=json.dumps({"error": sentence}), content_type="application/json")


def test_a_busy_server_and_one_that_is_gone_say_so(page, service):
    opened(page, service)
    page.route("**/api/texts", lambda route: answer(route, 503, "The server is busy."))
    page.locator("textarea").first.fill("the keys")
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".question .complaint")).to_contain_text("The server is busy.")
    assert page.get_by_role("tab").count() == 0 or not page.get_by_role("tab").first.is_visible()
    page.unroute("**/api/texts")
    page.route("**/api/texts", lambda route: route.abort())
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".question .complaint")).to_contain_text("does not answer")
    page.unroute("**/api/texts")
    page.get_by_role("button", name="Try again").click()
    drawn(page)
    assert predicted(page) == "plural"
    expect(page.locator(".question .complaint")).not_to_be_visible()


def test_long_work_is_shown_and_can_be_cancelled(page, service):
    opened(page, service)

    def held(route: Route) -> None:
        if "model" not in route.request.post_data_json["view"]:
            route.continue_()  # the others get no answer until they are given up

    page.route("**/api/views", held)
    page.get_by_role("tab", name="All heads").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".view-panel:not(.aside) .complaint")).to_contain_text("Cancelled.")
    page.unroute("**/api/views")
    page.get_by_role("button", name="Try again").click()
    drawn(page)
    expect(page.locator(".view-panel:not(.aside) .complaint")).to_have_count(0)


def test_a_saved_record_is_opened_without_a_model(page, seen, service, tmp_path):
    record = attnscope.load("demo").record("the author near the lakes")
    record.save(tmp_path / "lakes.safetensors")
    opened(page, service)
    page.locator("input[type=file]:not([webkitdirectory])").set_input_files(tmp_path / "lakes.safetensors")
    expect(page.locator(".from-file")).to_be_visible()
    drawn(page)
    expect(page.locator(".from-file")).to_contain_text(f"“lakes.safetensors” · {len(record.key_tokens)} tokens")
    neuron = page.get_by_role("tab", name="Neuron")
    expect(neuron).to_have_attribute("aria-disabled", "true")
    neuron.hover()
    expect(page.locator(".about-view")).to_have_text(re.compile("queries"))
    place = place_of(page)
    page.goto("about:blank")
    page.goto(service.address + place)
    expect(page.locator(".question .complaint")).to_contain_text("open it again")
    assert seen.errors == []


def drop(page: Page, path: Path) -> None:
    """Drop a file or folder onto the page, as a hand would."""
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver"):
        session.send("Input.dispatchDragEvent", {"type": kind, "x": 200, "y": 300, "data": data})
    expect(page.locator("body.dropping")).to_have_count(1)
    session.send("Input.dispatchDragEvent", {"type": "drop", "x": 200, "y": 300, "data": data})
    expect(page.locator("body.dropping")).to_have_count(0)


def test_a_trust_table_and_a_survey_are_dropped(page, seen, service, tmp_path):
    model, sentences = attnscope.load("demo"), list(islice(agreement_sentences(5), 12))
    attnscope.trust(model, [" ".join(one.prefix) for one in sentences[:3]], ("raw",)).save(tmp_path / "trust")
    attnscope.survey(model, sentences_of(sentences)).save(tmp_path / "survey")
    (tmp_path / "notes.txt").write_text("nothing")
    opened(page, service)
    drop(page, tmp_path / "trust")
    expect(page.locator(".notice")).to_contain_text("Only 3 texts were read, so these are figures without a verdict")
    drawn(page)
    assert predicted(page) == "singular"
    drop(page, tmp_path / "survey")
    expect(page.get_by_role("tab")).to_have_text(["Survey"])
    expect(page.locator(".survey .cells")).to_be_visible()
    expect(page.locator(".from-file")).to_contain_text("Survey “survey”")
    drop(page, tmp_path / "notes.txt")
    expect(page.locator(".question .complaint")).to_contain_text("neither a saved record")
    expect(page.locator(".survey .cells")).to_be_visible()
    page.get_by_role("button", name="Type a text").click()
    look_at(page, "the keys")
    assert predicted(page) == "plural"
    assert seen.errors == []


def test_hostile_text_is_only_text(page, seen, service):
    opened(page, service)
    page.on("dialog", lambda dialog: seen.errors.append(dialog.message))
    look_at(page, HOSTILE)
    for name in ("Heads", "All heads", "Scores"):
        page.get_by_role("tab", name=name, exact=True).click()
        drawn(page)
    page.get_by_role("button", name="Copy Python").click()
    expect(page.locator("dialog pre")).to_contain_text("alert(1)")
    expect(page.locator("main script, main img")).to_have_count(0)
    assert seen.errors == []


def test_everything_is_reached_by_key(page, service):
    opened(page, service)
    page.locator("textarea").first.focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("the keys")
    page.keyboard.press("Control+Enter")
    drawn(page)
    assert predicted(page) == "plural"
    reached = []
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent || document.activeElement.ariaLabel"))
    wanted = ["Look", "Second text", "Scores", "Save page", "Save figure", "Copy Python"]
    assert [name for name in reached if name in wanted] == wanted
    page.locator("[role=tab][aria-selected=true]").focus()
    page.keyboard.press("ArrowRight")
    drawn(page)
    assert page.evaluate("document.activeElement.dataset.tab") == "head"
    page.keyboard.press("End")
    drawn(page)
    assert page.evaluate("document.activeElement.dataset.tab") == "neuron"


@pytest.mark.parametrize("width", [360, 1600])
def test_nothing_is_wider_than_the_page(page, service, width):
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, service)
    look_at(page, "the author near the lakes that the pilots admire and the keys to the cabinets of the senators")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector("[data-pane='2'] [data-drawn]")
    for tab in ("scores", "head", "model", "flow", "tracing", "neuron"):
        page.locator(f"[data-pane='1'] [data-tab={tab}]").click()
        drawn(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
