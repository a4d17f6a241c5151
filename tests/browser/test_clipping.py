"""No text is cut or hidden: at four widths every text and drawing of every view and page is inside its visible box.

Nor do two texts lie on each other. What is hidden from all eyes (folded parts, text for screen readers) is not meant.
Views are those of the table VIEWS, as the contact sheet (docs/contact_sheet.py) shows them: a new one is tested by
itself.
"""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from attnscope import load, views
from attnscope.evaluation import mistakes
from attnscope.evaluation.classifier_mistakes import SharedWord
from attnscope.report import write_mistakes, write_report

from .conftest import found_at_rest
from .test_app_client import Service, drawn
from .test_survey_page import tables_of

WIDTHS = (390, 768, 1300, 1900)
FOUND = """() => {
  const spare = 1.5;
  const shown = (element) =>
    !element.closest(".hidden, script, style, option, [hidden]") &&
    element.checkVisibility({ visibilityProperty: true });
  const places = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.data.trim() || !shown(node.parentElement)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter(({ width }) => width);
    places.push({ element: node.parentElement, name: node.data.trim().slice(0, 30), boxes, text: true });
  }
  for (const canvas of document.querySelectorAll("canvas, img"))
    if (shown(canvas))
      places.push({ element: canvas, name: canvas.tagName, boxes: [canvas.getBoundingClientRect()] });
  const named = ({ element, name }) => `${element.className || element.tagName}: ${name}`;
  const clipped = [];
  for (const place of places) {
    let [left, right, top, bottom] = [0, document.documentElement.clientWidth, -Infinity, Infinity];
    for (let around = place.element; around && around !== document.body; around = around.parentElement) {
      const style = getComputedStyle(around);
      const box = around.getBoundingClientRect();
      if (style.overflowX !== "visible") [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
      if (style.overflowY !== "visible") [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
    }
    const isOut = (box) =>
      box.left < left - spare || box.right > right + spare || box.top < top - spare || box.bottom > bottom + spare;
    if (place.boxes.some((box) => box.width && isOut(box))) clipped.push(named(place));
  }
  const overprinted = [];
  const boxes = places
    .filter(({ text }) => text)
    .flatMap((place) => place.boxes.map((box) => ({ place, box })))
    .sort((one, other) => one.box.top - other.box.top);
  // the lines of running text touch: half of a line's height must be shared
  const across = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2 * spare;
  boxes.forEach(({ place, box }, at) => {
    for (let next = at + 1; next < boxes.length && boxes[next].box.top < box.top + box.height / 2; next++)
      if (boxes[next].place !== place && across(box, boxes[next].box))
        overprinted.push(`${named(place)} and ${named(boxes[next].place)}`);
  });
  return { clipped, overprinted };
}"""
"""The texts and drawings of which a part lies outside what clips it or the window's width, and texts on each other."""
NOTHING = {"clipped": [], "overprinted": []}


def sheet():
    """The contact sheet of the docs, which makes an example of each view."""
    name = "attnscope_contact_sheet"
    if name not in sys.modules:
        path = Path(__file__).parents[2] / "docs" / "contact_sheet.py"
        specification = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def survey_page(path):
    """Made-up tables: a survey of a model would take its time."""
    tables = tables_of(6, 12)
    tokens = "The key to the cabin et s on the wall was lost , and nobody noticed it .".split()
    tables["exemplars"]["tokens"] = [[f" {token}" for token in tokens]] * len(tables["exemplars"])
    return views.survey(tables, {"model": "a model", "sentences": 200}, pinned=[[1, 1]]).save(path)


def mistakes_page(path):
    texts = ["the key to the cabinets", "the keys to the cabinet", "the doctors near my house"]
    found = mistakes(load("demo"), texts, ["plural", "singular", "plural"])
    shared = SharedWord("unquestionably", "singular", (1, 2), 3.25, texts=2, right=0, right_without=1)
    return write_mistakes(path, replace(found, shared=(shared, replace(shared, word="key"))))


PAGES = {
    **{
        name: lambda path, name=name: sheet().view_of(name, "made up", 25).save(path)
        for name in views.VIEWS
        if name != "survey"
    },
    "survey": survey_page,
    "report": lambda path: write_report(path, sheet().made_up_record(25)),
    "mistakes": mistakes_page,
}


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_clipped_at_any_width(page, seen, name, tmp_path):
    page.goto(PAGES[name](tmp_path / "page.html").as_uri())
    page.locator("body:not(:has(section[data-view]:not(:has([data-drawn])):not([data-drawn])))").wait_for()
    page.evaluate("document.querySelectorAll('details.folded').forEach((one) => (one.open = true))")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("() => new Promise((done) => setTimeout(() => done(true), 100))")
        assert found_at_rest(page, FOUND, NOTHING) == NOTHING, f"{name} at {width} px"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} at {width} px scrolls sideways"
    assert (seen.requests, seen.errors) == ([], [])


def test_nothing_is_clipped_in_the_app(page, seen):
    service = Service(demo=load("demo"))
    text = "the+key+to+the+cabinets+of+the+teachers"
    try:
        # one pane, and two as the app compares them; the model view is the widest
        for place in (
            f"#model=demo&text={text}&view=model",
            f"#model=demo&text={text}&view=head&pane=2&model=demo&view=model",
        ):
            page.goto(f"{service.address}{place}")
            page.reload()
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                page.evaluate("new Promise((done) => setTimeout(done, 100))")
                drawn(page)
                assert found_at_rest(page, FOUND, NOTHING) == NOTHING, f"{place} at {width} px"
                assert page.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        service.stop()
    assert seen.errors == []


def test_what_is_clipped_is_found(page):
    """The rule itself, on elements of which it is known."""
    page.set_viewport_size({"width": 400, "height": 300})
    page.set_content(
        """<body style="margin: 0; font: 16px monospace">
        <p class=whole>whole</p>
        <div style="width: 60px; overflow: hidden; white-space: nowrap"><b class=cut>cut at the side</b></div>
        <div style="height: 30px; overflow: auto; line-height: 20px">in sight<br><b class=below>below</b></div>
        <div style="height: 20px"><i class=under>under</i></div>
        <i class=over style="position: relative; top: -20px">over</i>
        <p class=outside style="position: absolute; left: 380px; top: 0; white-space: nowrap">outside</p>
        <details>closed <p class=folded style="margin-left: -90px">folded</p></details>
        <div style="width: 9px; overflow: hidden"><canvas width=50 height=5 class=drawing></canvas></div>"""
    )
    found = page.evaluate(FOUND)
    assert [one.split(":")[0] for one in found["clipped"]] == ["cut", "below", "outside", "drawing"]
    assert found["overprinted"] == ["under: under and over: over"]
