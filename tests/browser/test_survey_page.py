"""The survey view in a browser: offline, every figure readable by pointer and by key, whatever the tokens are."""

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

from attnscope.statistics import role_symbol
from attnscope.views import survey, write_page

from .conftest import settled

LAYERS, HEADS = 4, 6
ROLES = ["previous token", "first token (sink)", "nsubj → its verb", "<b>bold</b>", *(f"role {n}" for n in range(6))]
HOSTILE = ["<script>throw 1</script>", "</script>", '"', "'", "&amp;", " שלום", " 👩‍👩‍👧", "\u202eevil", "x" * 10_000]


def table_of(seed, layers=LAYERS, heads=HEADS, **labels):
    levels = [range(layers), range(heads), *labels.values()]
    table = pd.MultiIndex.from_product(levels, names=["layer", "head", *labels]).to_frame(index=False)
    table["value"] = np.random.default_rng(seed).beta(1, 5, len(table))
    return table.assign(error=0.01 * table["value"] + 0.0004)


def tables_of(layers=LAYERS, heads=HEADS):
    size = {"layers": layers, "heads": heads}
    distance = table_of(1, **size)
    distance["signed"] = distance["value"] * np.where(distance["head"] % 2, 1, -1)
    entropy = table_of(2, **size)
    entropy.loc[entropy.index[1:3], ["value", "error"]] = np.nan
    relations = ["any", "nsubj", "obj", "det", "conj"]
    directions = ["head_to_dependent", "dependent_to_head", "either"]
    alignment = table_of(3, **size, direction=directions, relation=relations).assign(chance=0.04, best_offset=-1)
    roles = table_of(4, **size)
    roles["role"] = [ROLES[place % len(ROLES)] for place in range(len(roles))]
    roles["evidence"] = "Most of its attention goes there <i>.</i>"
    roles["also"] = "broad"
    exemplars = table_of(5, **size, rank=range(3)).assign(error=float("nan"), query=6, key=0, text="")
    exemplars["tokens"] = [[*HOSTILE, " was", " here"]] * len(exemplars)
    return {
        "distance": distance,
        "entropy": entropy,
        "dependency_alignment": alignment,
        "roles": roles,
        "exemplars": exemplars,
    }


CARD = {"model": "<script>throw 2</script>", "sentences": 2001, "skipped": {"a word has no token": 3}}


@pytest.fixture
def tables():
    return tables_of()


@pytest.fixture
def opened(page, tables, tmp_path):
    return visit(
        page, write_page(tmp_path / "survey.html", survey(tables, CARD), "Survey", "<p>An introduction.</p>").as_uri()
    )


def visit(page, address):
    """Open a page and wait until its views are drawn."""
    page.goto(address)
    page.wait_for_selector("[data-drawn]")
    return settled(page)


def choose(page, name, option):
    page.get_by_role("combobox", name=name, exact=True).first.select_option(option)
    settled(page)


def point(page, layer, head, heads=HEADS, layers=LAYERS):
    cells = page.locator(".cells").first
    box = cells.bounding_box()
    cells.hover(position={"x": (head + 0.5) * box["width"] / heads, "y": (layer + 0.5) * box["height"] / layers})


def click(page, layer, head, modifiers=None):
    cells = page.locator(".cells").first
    box = cells.bounding_box()
    cells.click(
        position={"x": (head + 0.5) * box["width"] / HEADS, "y": (layer + 0.5) * box["height"] / LAYERS},
        modifiers=modifiers,
    )
    settled(page)


def reading(page):
    return settled(page).locator(".reading").first.inner_text()


def figure_in(text):
    """The figure and its error that a line shows."""
    value, error = next(part for part in text.split(" · ") if "±" in part).removeprefix("score ").split()[:3:2]
    return float(value), float(error)


def sideways(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def state(page, name, view=0):
    return page.evaluate("([view, name]) => attnscopeHost.models[view].get(name)", [view, name])


def test_it_opens_offline_without_errors(opened, seen):
    assert opened.title() == "Survey"
    expect(opened.get_by_text("An introduction.")).to_be_visible()
    expect(opened.locator(".cells")).to_be_visible()
    expect(opened.get_by_role("button", name="<b>bold</b>")).to_be_visible()
    assert seen.requests == []
    assert seen.errors == []


def test_its_policy_forbids_what_is_not_its_own(opened, seen):
    opened.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.got = 1'}))"
    )
    assert opened.evaluate("window.got") is None
    assert any("Content Security Policy" in error for error in seen.errors)


@pytest.mark.parametrize("statistic", ["distance", "entropy", "roles"])
def test_pointing_shows_the_figure_of_the_table(opened, tables, statistic):
    choose(opened, "Map", statistic)
    row = tables[statistic].query("layer == 2 and head == 3").iloc[0]
    point(opened, 2, 3)
    line = reading(opened)
    assert line.startswith("Layer 2, head 3 · ")
    assert figure_in(line) == (pytest.approx(row["value"], abs=1e-4), pytest.approx(row["error"], abs=1e-4))
    assert tables["roles"].query("layer == 2 and head == 3")["role"].iloc[0] in line
    assert opened.locator(".note").inner_text().split("\n") == line.split(" · ")


def test_labels_and_measures_choose_among_the_figures(opened, tables):
    choose(opened, "Map", "dependency_alignment")
    choose(opened, "Direction", "dependent_to_head")
    choose(opened, "Relation", "obj")
    table = tables["dependency_alignment"]
    row = table.query("layer == 1 and head == 5 and direction == 'dependent_to_head' and relation == 'obj'").iloc[0]
    point(opened, 1, 5)
    assert figure_in(reading(opened))[0] == pytest.approx(row["value"], abs=1e-4)
    assert "by chance 0.04" in reading(opened)
    assert state(opened, "label") == ["dependent_to_head", "obj"]
    choose(opened, "Map", "distance")
    choose(opened, "Measure", "signed")
    point(opened, 0, 0)
    signed = tables["distance"]["signed"].iloc[0]
    assert f"−{abs(signed):.4g}"[:6] in reading(opened)
    expect(opened.locator(".summary")).not_to_contain_text("obj", use_inner_text=True)


def test_what_was_not_measured_is_said(opened):
    choose(opened, "Map", "entropy")
    point(opened, 0, 1)
    assert "not measured" in reading(opened)
    expect(opened.locator(".legend")).to_contain_text("hatched: 2 heads not measured", use_inner_text=True)


def test_cells_are_drawn_from_their_figures(opened, tables):
    choose(opened, "Map", "distance")
    greens = opened.locator(".cells").evaluate(
        """(canvas, [layers, heads]) => {
          const [width, height] = [canvas.width / heads, canvas.height / layers];
          const context = canvas.getContext("2d");
          const green = (left, top) => context.getImageData(left * width + 3, top * height + 3, 1, 1).data[1];
          return Array.from({length: layers * heads}, (_, place) => green(place % heads, Math.floor(place / heads)));
        }""",
        [LAYERS, HEADS],
    )
    assert np.corrcoef(greens, tables["distance"]["value"])[0, 1] < -0.95


def test_clicking_pins_a_head_with_its_exemplars_and_clicking_again_releases_it(opened, tables, seen):
    click(opened, 3, 2)
    side = opened.get_by_role("complementary", name="Pinned heads")
    expect(side.get_by_role("heading", name="Layer 3, head 2")).to_be_visible()
    assert tables["roles"].query("layer == 3 and head == 2")["role"].iloc[0] in side.locator(".role").inner_text()
    expect(side).to_contain_text("goes there <i>.</i>", use_inner_text=True)
    first = side.locator(".exemplars li").first
    expect(first.locator("b.query")).to_have_text("👩‍👩‍👧", use_inner_text=True)
    expect(first.locator("u.key")).to_have_text("<script>throw 1</script>", use_inner_text=True)
    assert first.locator("b.query").evaluate("token => +getComputedStyle(token).fontWeight") >= 600
    assert "underline" in first.locator("u.key").evaluate("token => getComputedStyle(token).textDecorationLine")
    value = tables["exemplars"].query("layer == 3 and head == 2 and rank == 0")["value"].iloc[0]
    expect(first.locator(".weight")).to_have_text(f"{value:.2f}", use_inner_text=True)
    assert state(opened, "pinned") == [[3, 2]]
    click(opened, 3, 2)
    assert state(opened, "pinned") == []
    assert seen.errors == []


def test_a_pinned_head_shows_cases_of_its_role_before_its_largest_weights(page, tables, seen, tmp_path):
    cases = tables["exemplars"].query("rank == 0").assign(query=8, key=9, value=0.123)
    path = write_page(
        tmp_path / "cases.html", survey({**tables, "role_exemplars": cases}, CARD, pinned=(3, 2)), "Survey"
    )
    side = visit(page, path.as_uri()).get_by_role("complementary", name="Pinned heads")
    expect(side.locator("h4").first).to_have_text("Cases of its role", use_inner_text=True)
    expect(side.locator("h4").nth(1)).to_have_text("Its largest weights", use_inner_text=True)
    expect(side.locator(".exemplars").first.locator(".weight")).to_have_text("0.12", use_inner_text=True)
    assert seen.errors == []


def test_the_side_lists_the_clearest_head_of_every_role_with_syntax_first(opened):
    roles = opened.locator(".highest tbody tr td:last-child")
    expect(roles).to_have_count(len(ROLES))
    assert roles.all_inner_texts()[0] == "nsubj → its verb"
    assert roles.all_inner_texts()[-1] == "first token (sink)"
    assert roles.locator("canvas").count() == len(ROLES)


def test_cells_and_legend_have_the_colours_of_the_one_table_in_both_schemes(opened, tables):
    expected = [role_symbol(role).colour for role in tables["roles"].sort_values(["layer", "head"])["role"]]
    corner = "canvas => [...canvas.getContext('2d').getImageData(1, 1, 1, 1).data.slice(0, 3)]"
    for scheme in ("light", "dark"):
        opened.emulate_media(color_scheme=scheme)
        settled(opened)
        assert [cell["colour"] for cell in opened.locator(".cells").evaluate("canvas => canvas.scene")] == expected
        for button in opened.locator(".roles button").all():
            name = button.evaluate("button => button.childNodes[1].textContent")
            colour = "#" + "".join(f"{byte:02x}" for byte in button.locator("canvas").evaluate(corner))
            assert colour == role_symbol(name).colour, name


def test_a_click_with_shift_pins_another_head_below_the_first(opened, tables, seen):
    click(opened, 3, 2)
    click(opened, 0, 4, ["Shift"])
    side = opened.get_by_role("complementary", name="Pinned heads")
    expect(side.locator("h3")).to_have_text(["Layer 3, head 2", "Layer 0, head 4"], use_inner_text=True)
    frames = opened.locator(".pin").evaluate_all("pins => pins.map((pin) => pin.offsetTop)")
    assert len(frames) == 2
    assert frames[0] > frames[1]
    for layer, head in ((3, 2), (0, 4)):
        row = tables["distance"].query(f"layer == {layer} and head == {head}").iloc[0]
        section = side.locator("section", has=opened.get_by_role("heading", name=f"Layer {layer}, head {head}"))
        shown = section.locator("table.figures").first.locator("tr").first.locator("td").nth(1).inner_text()
        assert figure_in(shown)[0] == pytest.approx(row["value"], abs=1e-4)
    side.get_by_role("button", name="Release").first.click()
    expect(side.locator("h3")).to_have_text(["Layer 0, head 4"], use_inner_text=True)
    click(opened, 1, 1)
    assert state(opened, "pinned") == [[1, 1]]
    assert seen.errors == []


def test_a_link_restores_what_was_chosen(opened, browser, tables, tmp_path):
    choose(opened, "Map", "dependency_alignment")
    choose(opened, "Relation", "obj")
    opened.get_by_label("Square-root scale").check()
    click(opened, 3, 2)
    click(opened, 0, 4, ["Shift"])
    again = browser.new_page()
    visit(again, opened.url)
    expect(again.locator("h3")).to_have_text(["Layer 3, head 2", "Layer 0, head 4"], use_inner_text=True)
    expect(again.get_by_role("combobox", name="Relation")).to_have_value("obj")
    expect(again.get_by_label("Square-root scale")).to_be_checked()
    same = "[document.querySelector('.cells').toDataURL(), document.querySelector('.reading').textContent]"
    opened.mouse.move(0, 0)
    opened.evaluate("document.activeElement.blur()")
    assert again.evaluate(same) == opened.evaluate(same)
    # a link of another survey names heads that are not here
    again.goto("about:blank")
    visit(again, opened.url.replace("%5B3%2C2%5D", "%5B99%2C2%5D").replace('"layer"%3A0', '"layer"%3A99'))
    expect(again.locator("h3")).to_have_text(["Layer 0, head 4"], use_inner_text=True)
    again.close()


def test_the_scene_has_the_figures_of_the_table(opened, tables):
    choose(opened, "Map", "distance")
    scene = opened.locator(".cells").evaluate("canvas => canvas.scene")
    expected = tables["distance"].sort_values(["layer", "head"])
    assert [(cell["layer"], cell["head"]) for cell in scene] == list(
        zip(expected["layer"], expected["head"], strict=True)
    )
    assert [cell["value"] for cell in scene] == pytest.approx(expected["value"].tolist(), rel=1e-6)
    assert not any(cell["dimmed"] for cell in scene)


def test_a_pinned_head_has_every_figure_beside_the_mean(opened, tables):
    click(opened, 1, 1)
    side = opened.locator(".side")
    row, mean = tables["distance"].query("layer == 1 and head == 1").iloc[0], tables["distance"]["value"].mean()
    cells = side.locator("table.figures").first.locator("tr").first.locator("td")
    assert figure_in(cells.nth(1).inner_text())[0] == pytest.approx(row["value"], abs=1e-4)
    assert float(cells.nth(2).inner_text().split()[-1]) == pytest.approx(mean, abs=1e-3)
    side.get_by_text("All 15").click()
    expect(side.locator("details table.figures tr")).to_have_count(15)


def test_what_scrolls_inside_does_not_stretch_the_page(opened):
    click(opened, 0, 0)
    content, whole = opened.evaluate(
        "[document.body.getBoundingClientRect().bottom, document.documentElement.scrollHeight]"
    )
    assert whole <= max(content, opened.viewport_size["height"]) + 1


def test_keys_alone_do_everything(opened, tables, seen):
    choose(opened, "Map", "distance")
    opened.get_by_role("button", name="Keys").focus()
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.className") == "cells"
    assert opened.evaluate("getComputedStyle(document.activeElement).outlineWidth") == "2px"
    for key in ["ArrowRight", "ArrowRight", "ArrowDown"]:
        opened.keyboard.press(key)
    assert reading(opened).startswith("Layer 1, head 1 · ")
    opened.keyboard.press("End")
    assert figure_in(reading(opened))[0] == pytest.approx(
        tables["distance"].query("layer == 1 and head == 5")["value"].iloc[0], abs=1e-4
    )
    opened.keyboard.press("ArrowRight")
    assert reading(opened).startswith("Layer 1, head 5 · ")
    opened.keyboard.press("Enter")
    expect(opened.get_by_role("heading", name="Layer 1, head 5")).to_be_visible()
    opened.keyboard.press("?")
    expect(opened.get_by_role("dialog", name="Keys")).to_be_visible()
    opened.keyboard.press("Escape")
    expect(opened.get_by_role("dialog", name="Keys")).not_to_be_visible()
    assert state(opened, "pinned") == [[1, 5]]
    opened.keyboard.press("ArrowUp")
    opened.keyboard.press("Shift+Enter")
    assert state(opened, "pinned") == [[1, 5], [0, 5]]
    opened.keyboard.press("Escape")
    assert state(opened, "pinned") == []
    assert seen.errors == []


def test_the_table_has_the_figures_of_the_map(opened, tables):
    choose(opened, "Map", "distance")
    opened.get_by_text("View as table").click()
    rows = opened.locator("table.plain tbody tr")
    rows.first.wait_for()
    expect(rows).to_have_count(LAYERS)
    shown = [float(text.split()[0]) for text in rows.nth(2).locator("td").all_inner_texts()]
    assert shown == pytest.approx(tables["distance"].query("layer == 2")["value"].tolist(), abs=1e-4)
    choose(opened, "Map", "entropy")
    expect(opened.locator("table.plain caption")).to_have_text("Entropy (nats)", use_inner_text=True)


def test_a_summary_tells_the_map_in_words(opened, tables):
    choose(opened, "Map", "distance")
    best = tables["distance"].loc[tables["distance"]["value"].idxmax()]
    summary = opened.locator(".summary")
    assert summary.get_attribute("aria-live") == "polite"
    expect(summary).to_contain_text(f"at layer {best['layer']:.0f}, head {best['head']:.0f}", use_inner_text=True)


def test_a_role_dims_the_others(opened):
    pixels = "canvas => canvas.toDataURL()"
    before = opened.locator(".cells").evaluate(pixels)
    button = opened.get_by_role("button", name="previous token").last
    button.click()
    assert opened.locator(".cells").evaluate(pixels) != before
    expect(opened.locator("[aria-pressed=true]")).to_have_count(1)
    assert opened.evaluate("document.activeElement.ariaPressed") == "true"
    opened.keyboard.press("Enter")
    assert opened.locator(".cells").evaluate(pixels) == before


def test_nothing_shifts(opened):
    boxes = "elements => elements.map((element) => JSON.stringify(element.getBoundingClientRect()))"
    parts = opened.locator(".survey > :not(.note), .cells, .legend, .roles")
    before = parts.evaluate_all(boxes)
    point(opened, 3, 5)
    assert parts.evaluate_all(boxes) == before
    opened.locator(".bars canvas").hover()
    assert "Layer" in reading(opened)
    assert parts.evaluate_all(boxes) == before


def test_the_square_root_scale_lifts_small_figures(opened):
    choose(opened, "Map", "distance")
    before = opened.locator(".cells").evaluate("canvas => canvas.toDataURL()")
    opened.get_by_label("Square-root scale").check()
    assert opened.locator(".cells").evaluate("canvas => canvas.toDataURL()") != before
    expect(opened.locator(".legend")).to_contain_text("square-root scale", use_inner_text=True)
    assert opened.evaluate("document.activeElement.type") == "checkbox"


def test_dark_mode_draws_the_map_again(opened):
    choose(opened, "Map", "distance")
    light = opened.locator(".cells").evaluate("canvas => canvas.toDataURL()")
    opened.emulate_media(color_scheme="dark")
    opened.wait_for_function("before => document.querySelector('.cells').toDataURL() !== before", arg=light)
    assert opened.locator("body").evaluate("body => getComputedStyle(body).backgroundColor") == "rgb(15, 20, 27)"


@pytest.mark.parametrize("width", [360, 600, 1200, 1800])
def test_the_page_never_scrolls_sideways(opened, width):
    opened.set_viewport_size({"width": width, "height": 800})
    assert sideways(opened) == 0
    click(opened, 0, 0)
    point(opened, 1, HEADS - 1)
    opened.get_by_text("View as table").click()
    assert sideways(opened) == 0


def test_a_large_model_fits(page, seen, tmp_path):
    tables = tables_of(48, 32)
    visit(page, write_page(tmp_path / "large.html", survey(tables, CARD, statistic="distance"), "Large").as_uri())
    point(page, 40, 30, heads=32, layers=48)
    assert reading(page).startswith("Layer 40, head 30 · ")
    assert sideways(page) == 0
    assert seen.errors == []


def test_one_head_alone(page, seen, tmp_path):
    table = table_of(1, 1, 1)
    visit(page, survey({"distance": table}, {}).save(tmp_path / "one.html").as_uri())
    point(page, 0, 0, 1, 1)
    assert figure_in(reading(page))[0] == pytest.approx(table["value"].iloc[0], abs=1e-4)
    page.locator(".cells").click()
    expect(page.get_by_role("heading", name="Layer 0, head 0")).to_be_visible()
    assert seen.errors == []


def test_canvases_are_sharp_on_a_dense_screen(browser, tables, tmp_path):
    context = browser.new_context(device_scale_factor=2)
    page = context.new_page()
    visit(page, survey(tables, CARD).save(tmp_path / "dense.html").as_uri())
    wide, shown = page.locator(".cells").evaluate("canvas => [canvas.width, canvas.getBoundingClientRect().width]")
    context.close()
    assert wide == 2 * shown


def test_the_scale_has_no_seams_at_any_density(browser, tables, tmp_path):
    address = survey(tables, CARD, statistic="distance").save(tmp_path / "scale.html").as_uri()
    for density in (1, 1.25, 1.5):
        context = browser.new_context(device_scale_factor=density)
        page = context.new_page()
        visit(page, address)
        pixels = page.locator(".legend canvas").evaluate(
            """canvas => {
              const [left, width] = [20, 240].map((length) => Math.round(length * devicePixelRatio));
              const middle = Math.round(6 * devicePixelRatio);
              return [...canvas.getContext("2d").getImageData(left + 2, middle, width - 4, 1).data];
            }"""
        )
        context.close()
        assert set(pixels[3::4]) == {255}
        greens = pixels[1::4]
        assert greens == sorted(greens, reverse=True)


def test_two_views_on_one_page_keep_apart(page, tables, seen, tmp_path):
    views = [survey(tables, CARD, statistic="distance"), survey(tables, CARD, statistic="entropy", pinned=(2, 4))]
    visit(page, write_page(tmp_path / "two.html", views, "Two").as_uri())
    expect(page.locator(".cells")).to_have_count(2)
    click(page, 1, 1)
    assert (state(page, "pinned", 0), state(page, "pinned", 1)) == ([[1, 1]], [[2, 4]])
    expect(page.locator("h3")).to_have_text(["Layer 1, head 1", "Layer 2, head 4"], use_inner_text=True)
    assert seen.requests == []
    assert seen.errors == []


def test_the_model_steers_the_view(opened, tables):
    """As a notebook does: what Python sets is shown."""
    opened.evaluate("attnscopeHost.models[0].set('statistic', 'entropy')")
    opened.evaluate("attnscopeHost.models[0].set('pinned', [[2, 0]])")
    expect(opened.get_by_role("combobox", name="Map")).to_have_value("entropy")
    expect(opened.get_by_role("heading", name="Layer 2, head 0")).to_be_visible()


def test_it_shows_in_a_sandboxed_frame(page, tables, seen, tmp_path):
    (tmp_path / "notebook.html").write_text(survey(tables, CARD)._repr_html_(), encoding="utf-8")
    page.goto((tmp_path / "notebook.html").as_uri())
    expect(page.frame_locator("iframe").locator(".cells")).to_be_visible()
    assert seen.requests == []
    assert seen.errors == []
