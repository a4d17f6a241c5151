"""The answer view in a browser: words and passages light up together, by mouse and by keys, and figures are true."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from attnscope.paint import colour, diverging, rgb, step
from attnscope.views.answer import view_of

from .conftest import Seen, settled


def by_hand():
    """The answers made by hand for the tests of the view."""
    path = Path(__file__).parents[1] / "views" / "answers.py"
    specification = importlib.util.spec_from_file_location("attnscope_answers_by_hand", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


HAND = by_hand()
OPENING = {"method": "rollout", "order": "drop", "special": False, "root": False, "queries": [], "keys": []}


@pytest.fixture
def opened(page, tmp_path):
    return open_view(page, view_of(HAND.scene_of(), "Answer view: by hand"), tmp_path)


def open_view(page, view, tmp_path, link=""):
    page.goto(view.save(tmp_path / "answer.html").as_uri() + link)
    page.wait_for_selector("[data-drawn]")
    return settled(page)


def scene(page):
    return settled(page).locator(".answer-panel").evaluate("node => node.scene")


def word(page, text):
    return page.locator(".reply .token").filter(has_text=text)


def passage(page, text):
    return page.locator(".passage").filter(has_text=text)


def ground(locator):
    return locator.evaluate("node => getComputedStyle(node).backgroundColor")


def test_it_opens_with_the_whole_answer_and_the_strongest_document(opened, seen):
    rows = HAND.scene_of().rows(OPENING)
    found = scene(opened)
    assert found["shares"] == pytest.approx(rows.shares.tolist(), abs=1e-6)
    assert found["wordShares"] == pytest.approx(rows.word_shares.tolist(), abs=1e-6)
    assert found["drops"][:3] == pytest.approx(rows.drops[:3].tolist(), abs=1e-5)
    assert found["dropOfAll"] == pytest.approx(rows.drop_of_all, abs=1e-5)
    first = opened.locator(".part").first
    expect(first.locator(".title")).to_have_text("Lighthouses")
    expect(first.locator(".share")).to_have_text(f"{100 * rows.part_shares[0]:.1f} %")
    expect(first.locator(".drop")).to_contain_text("drop ")
    expect(opened.locator(".strongest li").first).to_contain_text("was finished in 1854")
    expect(opened.locator(".said")).to_contain_text("it is no proof that the model used")
    expect(opened.locator(".part")).to_have_count(5)  # documents, question, system: no markers yet
    # markup of a document stays text
    expect(passage(opened, "The station")).to_have_text("The station was built of <b>red</b> brick.")
    assert (seen.requests, seen.errors) == ([], [])


def test_pointing_at_a_word_lights_up_its_passages_and_moves_nothing(opened, seen):
    where = [box.bounding_box() for box in opened.locator(".part header, .passage, .reply .token, .origin").all()]
    before = ground(passage(opened, "finished in 1854"))
    word(opened, "1854").hover()
    rows = HAND.scene_of().rows({**OPENING, "queries": HAND.YEAR})
    assert scene(opened)["shares"] == pytest.approx(rows.shares.tolist(), abs=1e-6)
    for text, place in (("finished in 1854", 0), ("It stands on a rock", 1), ("The market", 7)):
        assert ground(passage(opened, text)) == f"rgb{rgb(colour(rows.shares[place], rows.scale.end))}"
    expect(opened.locator(".picked")).to_contain_text("“1854”: log-probability")
    assert [
        box.bounding_box() for box in opened.locator(".part header, .passage, .reply .token, .origin").all()
    ] == where
    opened.locator("h1").hover()
    assert ground(passage(opened, "finished in 1854")) == before
    expect(opened.locator(".picked")).to_contain_text("The whole answer")
    assert seen == Seen()


def test_a_click_pins_a_second_releases_and_shift_adds(opened):
    word(opened, "1854").click()
    expect(word(opened, "1854")).to_have_attribute("aria-pressed", "true")
    assert scene(opened)["chosen"]["queries"] == HAND.YEAR
    word(opened, "rock").click(modifiers=["Shift"])
    assert scene(opened)["chosen"]["queries"] == [*HAND.YEAR, 14]
    word(opened, "1854").click()
    opened.locator("h1").hover()
    expect(opened.locator("[aria-pressed=true]")).to_have_count(0)


def test_a_drag_selects_a_span(opened):
    start, end = (word(opened, text).first.bounding_box() for text in ("finished", "1854"))
    opened.mouse.move(start["x"] + 4, start["y"] + 8)
    opened.mouse.down()
    opened.mouse.move(end["x"] - 12, end["y"] + 8, steps=5)
    opened.mouse.move(end["x"] + 6, end["y"] + 8, steps=5)
    opened.mouse.up()
    opened.locator("h1").hover()
    assert scene(opened)["chosen"]["queries"] == [4, 5, *HAND.YEAR]
    expect(opened.locator(".picked")).to_contain_text("“finished in 1854”")


def test_a_passage_tells_which_words_came_of_it(opened, seen):
    passage(opened, "finished in 1854").click()
    rows = HAND.scene_of().rows({**OPENING, "keys": [0]})
    opened.locator("h1").hover()
    place = HAND.WORDS.index(HAND.YEAR)
    assert rows.word_shares.argmax() == place
    for at in (place, 0, 9):
        wanted = colour(rows.word_shares[at], rows.word_scale.end)
        assert ground(opened.locator(".reply .token").nth(at)) == f"rgb{rgb(wanted)}"
    expect(opened.locator(".picked")).to_contain_text("on “The lighthouse at Skerry Point")
    # a heading stands for all passages of its document
    opened.get_by_role("button", name="The harbour", exact=True).click()
    assert scene(opened)["chosen"]["keys"] == [6, 7]
    expect(opened.locator(".said")).to_contain_text("goes to “The harbour”")
    passage(opened, "The market").hover()
    expect(opened.locator(".note")).to_contain_text("of the score of the whole answer")
    opened.keyboard.press("Escape")
    assert scene(opened)["chosen"]["keys"] in ([], [7])  # the pointer still rests on a passage
    assert seen == Seen()


def test_keys_walk_and_select(opened, seen):
    first = opened.locator(".reply .token").first
    first.focus()
    opened.keyboard.press("ArrowRight")
    expect(opened.locator(".reply .token").nth(1)).to_be_focused()
    opened.keyboard.press("Enter")
    assert scene(opened)["chosen"]["queries"] == [1, 2]
    opened.keyboard.press("Shift+ArrowRight")
    assert settled(opened).evaluate("attnscopeHost.models[0].get('queries')") == [1, 2, 3]
    opened.keyboard.press("Escape")
    assert settled(opened).evaluate("attnscopeHost.models[0].get('queries')") == []
    opened.keyboard.press("m")
    expect(passage(opened, "finished in 1854")).to_be_focused()
    opened.keyboard.press("Enter")
    assert settled(opened).evaluate("attnscopeHost.models[0].get('keys')") == [0]
    opened.keyboard.press("ArrowRight")
    expect(passage(opened, "It stands")).to_be_focused()
    opened.keyboard.press("x")
    expect(opened.get_by_label("Method")).to_have_value("gradient_x_input")
    opened.keyboard.press("s")
    expect(opened.locator(".part")).to_have_count(7)
    assert seen == Seen()


def test_signed_scores_have_two_colours(page, tmp_path):
    made = HAND.scene_of()
    open_view(page, view_of(made, "By hand", method="gradient_x_input"), tmp_path)
    rows = made.rows({**OPENING, "method": "gradient_x_input"})
    for place in (0, 3, 5):
        share = rows.shares[place] / rows.scale.end
        node = page.locator(f".passage[data-place='{place}']")
        assert ground(node) == f"rgb{rgb(diverging()[step(1 + share, 2.0)])}"
    expect(page.locator(".said")).to_contain_text("blue is above zero, orange below")


def test_a_link_restores_what_was_chosen(page, tmp_path):
    view = view_of(HAND.scene_of(), "Answer view: by hand")
    open_view(page, view, tmp_path)
    word(page, "1854").click()
    page.get_by_label("Documents").select_option("reading")
    settled(page)
    link = page.evaluate("location.hash")
    page.goto("about:blank")
    open_view(page, view, tmp_path, link)
    expect(word(page, "1854")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Documents")).to_have_value("reading")


@pytest.mark.parametrize("width", [390, 1300])
def test_long_documents_scroll_beside_a_strip(page, seen, tmp_path, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark")
    open_view(page, view_of(HAND.scene_of(20), "Answer view: long"), tmp_path)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    area, strip = page.locator(".area"), page.locator(".strip")
    expect(strip).to_be_visible()
    assert area.evaluate("area => area.scrollHeight > 2 * area.clientHeight")
    box = strip.bounding_box()
    strip.click(position={"x": 8, "y": box["height"] - 3})
    page.wait_for_function("document.querySelector('.area').scrollTop > 500")
    # the strongest passage of another span comes into sight, wherever one has scrolled to
    word(page, "rock").click()
    settled(page)
    inside = """node => {
      const [box, around] = [node.getBoundingClientRect(), node.closest(".area").getBoundingClientRect()];
      return box.top >= around.top && box.bottom <= around.bottom;
    }"""
    assert page.locator(".passage[data-place='1']").evaluate(inside)
    expect(page.locator(".part .title").first).to_have_text("Lighthouses")
    assert seen == Seen()


def test_a_score_that_rests_on_sinks_is_doubted(page, tmp_path):
    made = HAND.scene_of()
    rest = made.methods[0].scores * 0.02
    rest[:, -1] += 0.98
    doubted = replace(made, methods=[replace(made.methods[0], scores=rest), made.methods[1]])
    open_view(page, view_of(doubted, "By hand"), tmp_path)
    expect(page.locator(".resting")).to_contain_text("of this score of rollout rests on markers and sinks")
    page.get_by_label("Method", exact=True).select_option("gradient_x_input")
    expect(page.locator(".resting")).to_be_hidden()
    assert "rests on markers and sinks" in view_of(doubted, "By hand").figure().caption


def test_the_table_holds_what_is_shown(opened):
    opened.locator("summary").click()
    rows = HAND.scene_of().rows(OPENING)
    expect(opened.locator("table.plain tbody tr")).to_have_count(10)
    first = opened.locator("table.plain tbody tr").first
    expect(first).to_contain_text("The lighthouse at Skerry Point")
    expect(first).to_contain_text(f"{100 * rows.shares[0]:.1f} %")
