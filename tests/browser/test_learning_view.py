"""The learning view in a browser: every curve is in its panel, one step is read in all, and what comes later too."""

from base64 import b64encode

import numpy as np
import pytest
from playwright.sync_api import expect

from attnscope.views import learning

from .conftest import settled

GROUPS = {"superb": "positive", "<script>throw 1</script>": "positive", "awful": "negative", "the": "neutral"}


def rows_of(steps=range(0, 100, 10), quantities=("polarity score", "A"), names=GROUPS):
    return [
        {
            "step": step,
            "quantity": quantity,
            "name": name,
            "group": names[name],
            "value": np.sin(step + 3 * place) + number,
        }
        for number, quantity in enumerate(quantities)
        for place, name in enumerate(names)
        for step in steps
    ]


def opened(page, view, path):
    page.set_viewport_size({"width": 1100, "height": 1400})
    page.goto(view.save(path).as_uri())
    page.wait_for_selector("[data-drawn]")
    return settled(page)


def scenes(page):
    return settled(page).locator(".lines").evaluate_all("all => all.map((canvas) => canvas.scene)")


def state(page, name):
    return page.evaluate("name => attnscopeHost.models[0].get(name)", name)


def after(page, act):
    """Do something and wait until it is drawn."""
    before = settled(page).locator(".view").first.get_attribute("data-drawn")
    act()
    page.wait_for_function("before => document.querySelector('.view').dataset.drawn !== before", arg=before)
    settled(page)


def readings(page):
    """The rows of values by name: what stands below each quantity."""
    rows = page.locator(".readout tr:has(td)").evaluate_all(
        "all => all.map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    return {name: values for name, *values in rows}


def written(value):
    return f"{float(f'{value:.6g}'):g}".replace("-", "−")


def values_at(rows, step, quantities=("polarity score", "A")):
    found = {(row["name"], row["quantity"]): row["value"] for row in rows if row["step"] == step}
    names = dict.fromkeys(row["name"] for row in rows)
    return {name: [written(found[name, quantity]) for quantity in quantities] for name in names}


def test_it_opens_offline_with_every_value_in_its_panel(page, seen, tmp_path):
    rows = rows_of()
    opened(page, learning(rows, title="<b>Four</b> words"), tmp_path / "learning.html")
    drawn = scenes(page)
    assert [scene["quantity"] for scene in drawn] == ["polarity score", "A"]
    for scene in drawn:
        assert [curve["name"] for curve in scene["curves"]] == list(GROUPS)
        for curve in scene["curves"]:
            wanted = [r for r in rows if (r["quantity"], r["name"]) == (scene["quantity"], curve["name"])]
            assert curve["points"] == [[row["step"], row["value"]] for row in wanted]
        colours = [curve["colour"] for curve in scene["curves"]]
        assert colours[0] == colours[1]
        assert len(set(colours)) == 3
        assert sorted(scene["labels"]) == sorted(GROUPS)
    assert readings(page) == values_at(rows, 90)
    expect(page.locator(".readout .step")).to_have_text("Step 90 latest")
    expect(page.locator("h3")).to_have_text("<b>Four</b> words")
    expect(page.locator(".summary")).to_contain_text("2 quantities over steps 0 to 90.")
    page.get_by_text("View as table").click()
    expect(page.locator("table.plain tbody tr")).to_have_count(8)
    assert seen.requests == []
    assert seen.errors == []


def test_one_step_is_read_in_all_panels_by_pointer_and_by_key(page, seen, tmp_path):
    rows = rows_of()
    opened(page, learning(rows), tmp_path / "learning.html")
    left, right = scenes(page)[1]["x"]
    over = page.locator(".over").nth(1)
    boxes = "elements => elements.map((element) => JSON.stringify(element.getBoundingClientRect()))"
    parts = page.locator(".view > :not(.note), .panel, .readout")
    before = parts.evaluate_all(boxes)
    over.hover(position={"x": left + (right - left) * 0.31, "y": 90})
    expect(page.locator(".readout .step")).to_have_text("Step 30")
    assert readings(page) == values_at(rows, 30)
    assert parts.evaluate_all(boxes) == before
    # a click pins it, and it stays when the pointer leaves
    over.click(position={"x": left + (right - left) * 0.31, "y": 90})
    page.mouse.move(2, 2)
    assert state(page, "step") == 30
    assert readings(page) == values_at(rows, 30)
    page.locator(".panels").focus()
    page.keyboard.press("ArrowRight")
    assert state(page, "step") == 40
    assert readings(page) == values_at(rows, 40)
    expect(page.locator(".reading")).to_contain_text(f"Step 40 · polarity score: superb {written(rows[4]['value'])}")
    page.keyboard.press("Home")
    assert state(page, "step") == 0
    page.keyboard.press("ArrowLeft")
    assert readings(page) == values_at(rows, 0)
    page.get_by_role("slider", name="Step").fill("6")
    assert readings(page) == values_at(rows, 60)
    page.get_by_role("button", name="Step before").click()
    assert state(page, "step") == 50
    page.locator(".panels").focus()
    page.keyboard.press("Escape")
    expect(page.locator(".readout .step")).to_have_text("Step 90 latest")
    assert seen.errors == []


def test_names_are_hidden_and_shown_alone_and_a_link_restores_it(page, seen, tmp_path):
    opened(page, learning([*rows_of(), {"step": 5, "quantity": "V·W", "value": 2}]), tmp_path / "learning.html")
    awful = page.get_by_role("button", name="awful", exact=True)

    def shown():
        return [[curve["name"] for curve in scene["curves"]] for scene in scenes(page)]

    after(page, awful.click)
    rest = [name for name in GROUPS if name != "awful"]
    assert shown() == [rest, rest, [""]]
    expect(awful).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".said")).to_contain_text("Hidden: 1 name of 5.")
    after(page, page.get_by_role("button", name="positive", exact=True).click)
    assert shown()[0] == ["the"]
    awful.focus()
    after(page, lambda: page.keyboard.press("Shift+Enter"))
    assert shown() == [["awful"], ["awful"], [""]]
    page.locator(".panels").focus()
    after(page, lambda: page.keyboard.press("l"))
    assert (state(page, "scale"), state(page, "names")) == ("log", ["awful", ""])
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("[data-drawn]")
    assert shown()[0] == ["awful"]
    expect(page.get_by_role("combobox", name="Axis of steps")).to_have_value("log")
    page.locator(".panels").focus()
    after(page, lambda: page.keyboard.press("Escape"))
    assert len(shown()[0]) == 4
    assert seen.errors == []


def told(view):
    """What a notebook sends of a view."""
    return [dict(view.payload), {name: b64encode(content).decode() for name, content in view.blobs.items()}]


def test_rows_that_come_later_are_drawn_in_place(page, seen, tmp_path):
    view = learning(rows_of(), title="Live")
    opened(page, view, tmp_path / "learning.html")
    page.get_by_role("slider", name="Step").fill("2")
    after(page, lambda: page.get_by_role("button", name="awful", exact=True).dblclick())
    script = """([payload, blobs]) => {
        const model = attnscopeHost.models[0];
        const decoded = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
        const bytes = Object.entries(blobs).map(([name, text]) => [name, decoded(text)]);
        model.set("blobs", Object.fromEntries(bytes));
        model.set("payload", payload);
    }"""
    # a few rows travel by themselves, many as bytes; some are of a name that is new
    for steps in (range(100, 130, 10), range(130, 6000, 10)):
        more = rows_of(steps, names={**GROUPS, "new": "neutral"})
        view.add(more)
        after(page, lambda: page.evaluate(script, told(view)))
        wanted = view.to_frame().query("quantity == 'A' and name == 'awful'")
        (curve,) = scenes(page)[1]["curves"]
        assert curve["name"] == "awful"
        assert curve["points"][0] == [0, wanted["value"].iloc[0]]
        assert curve["points"][-1] == [steps[-1], wanted["value"].iloc[-1]]
        assert state(page, "step") == 20
        assert readings(page)["awful"] == values_at(rows_of(), 20)["awful"]
        assert readings(page)["new"] == ["", ""]
    assert "curves" in view.blobs
    page.locator(".panels").focus()
    page.keyboard.press("End")
    assert readings(page) == values_at(more, 5990)
    assert seen.errors == []


def test_it_may_begin_with_nothing(page, seen, tmp_path):
    opened(page, learning([]), tmp_path / "learning.html")
    expect(page.get_by_text("No rows have come yet.", exact=True).last).to_be_visible()
    page.locator(".panels").focus()
    page.keyboard.press("ArrowRight")
    assert seen.errors == []


def test_many_steps_keep_their_peaks_and_are_read_exactly(page, seen, tmp_path):
    """10,000 steps of 30 curves: few points are drawn, and the one peak is among them."""
    values = np.random.default_rng(0).normal(size=(30, 10_000)).round(4)
    values[4, 7777] = 50
    rows = [
        {"step": step, "quantity": "A", "name": f"word{name}", "value": value}
        for name, curve in enumerate(values.tolist())
        for step, value in enumerate(curve)
    ]
    opened(page, learning(rows), tmp_path / "learning.html")
    (scene,) = scenes(page)
    assert len(scene["curves"]) == 30
    assert all(len(curve["points"]) <= 4 * 1200 for curve in scene["curves"])
    assert [7777, 50] in scene["curves"][4]["points"]
    for curve, whole in zip(scene["curves"], values, strict=True):
        drawn = np.array(curve["points"])
        assert (drawn[:, 1].min(), drawn[:, 1].max()) == (whole.min(), whole.max())
        np.testing.assert_array_equal(drawn[:, 1], whole[drawn[:, 0].astype(int)])
    page.get_by_role("slider", name="Step").fill("7777")
    assert readings(page) == {f"word{name}": [written(value)] for name, value in enumerate(values[:, 7777])}
    expect(page.locator(".said")).to_contain_text("Where several steps share a pixel")
    assert seen.errors == []


def test_gaps_bands_and_what_was_measured_before(page, seen, tmp_path):
    rows = [
        {"step": step, "quantity": "A", "name": "x", "value": value, "low": value - 1, "high": value + 1}
        for step, value in enumerate([1.0, np.nan, 2.0, np.inf, 3.0])
    ]
    rows.append({"step": 0, "quantity": "B", "name": "x", "value": -2.5, "low": None, "high": None})
    opened(page, learning(rows), tmp_path / "learning.html")
    assert scenes(page)[0]["curves"][0]["points"] == [[0, 1], None, [2, 2], None, [4, 3]]
    assert readings(page) == {"x": ["3", "−2.5 at step 0"]}
    expect(page.locator(".readout td").first).to_have_attribute("title", "2 to 4")
    page.get_by_role("slider", name="Step").fill("1")
    assert readings(page)["x"][0] == "not measured"
    page.get_by_role("slider", name="Step").fill("3")
    assert readings(page)["x"][0] == "∞"
    expect(page.locator(".said")).to_contain_text("Gaps: 2 values not measured or not finite.")
    assert seen.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_and_wide_nothing_leaves_the_page(page, seen, tmp_path, scheme):
    page.emulate_media(color_scheme=scheme)
    names = {**GROUPS, "x" * 10_000: "neutral", "\u202eevil": ""}
    opened(page, learning(rows_of(quantities=list("ABCDEFG"), names=names)), tmp_path / "learning.html")
    for width in (360, 1600):
        after(page, lambda width=width: page.set_viewport_size({"width": width, "height": 900}))
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert seen.errors == []


def test_rows_that_come_while_a_notebook_moves_the_view_are_not_lost(page, seen, tmp_path):
    """Taken off its page and put back before the screen is drawn: no change of size tells the view."""
    view = learning(rows_of(), title="Moved")
    opened(page, view, tmp_path / "learning.html")
    view.add(rows_of([100]))
    moved = """async (payload) => {
        const el = document.querySelector("[data-view]");
        const parent = el.parentNode;
        el.remove();
        attnscopeHost.models[0].set("payload", payload);
        for (let turn = 0; turn < 20; turn++) await null;
        parent.append(el);
    }"""
    after(page, lambda: page.evaluate(moved, dict(view.payload)))
    assert scenes(page)[0]["curves"][0]["points"][-1][0] == 100
    assert seen.errors == []
