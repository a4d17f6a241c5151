"""The scores view in a browser: every ground is a score of its method, and every figure is one hover away."""

import json
import re
from urllib.parse import quote

import pytest
import torch
from playwright.sync_api import expect

from attnscope import AttentionRecord
from attnscope.attribution import raw, rollout
from attnscope.attribution.comparing import spearman
from attnscope.paint import colour, diverging, step
from attnscope.record.scores import scores_of
from attnscope.views import scores, write_page

from .conftest import settled

TOKENS = ["[CLS]", "the", "un", "##told", "key", "<script>throw 1</script>", "is", "[SEP]"]
SPECIAL = [True, *[False] * 6, True]
LAYERS = 3


def record_of(tokens=TOKENS, special=SPECIAL, layers=LAYERS, **more):
    torch.manual_seed(0)
    weights = (3 * torch.randn(layers, 4, len(tokens), len(tokens))).softmax(-1)
    return AttentionRecord.from_weights(weights, tokens, causal=False, special=special, readout=0, **more)


def methods_of(record):
    signed = torch.linspace(-0.5, 0.8, len(record.key_tokens))
    signed[:3] = -0.5  # a tie
    warned = scores_of(record, "gradient", signed, warnings=("these <b>signs</b> cancel",))
    return [raw(record), rollout(record), warned]


@pytest.fixture
def record():
    return record_of()


@pytest.fixture
def opened(page, record, tmp_path):
    trust = {"raw": {"value": 0.41, "low": -0.05, "high": 0.5}}
    return open_view(page, scores(methods_of(record), record=record, trust=trust), tmp_path)


def open_view(page, view, tmp_path, link=""):
    page.goto(view.save(tmp_path / "scores.html").as_uri() + link)
    page.wait_for_selector("[data-drawn]")
    return page


def scene(page):
    return settled(page).locator(".rows").first.evaluate("rows => rows.scene")


def settle(page):
    """Wait until what is drawn is what is chosen."""
    page.wait_for_function("""() => [...document.querySelectorAll(".rows")].every(({ scene }, place) =>
        Object.entries(scene.chosen).every(([name, value]) =>
            JSON.stringify(value) === JSON.stringify(attnscopeHost.models[place].get(name) ?? null)))""")
    settled(page)


def state(page):
    return page.evaluate("attnscopeHost.models[0].state()")


def cell(page, method, column):
    return page.locator(f'.row[data-method="{method}"] .token').nth(column)


def reading(page):
    return settled(page).locator(".reading").first.inner_text()


def choose_layer(page, place):
    page.get_by_role("slider", name="Layer").fill(str(place))
    settle(page)


def test_it_opens_offline_and_every_ground_is_a_score(opened, record, seen):
    drawn = scene(opened)
    assert [row["method"] for row in drawn["rows"]] == ["raw", "rollout", "gradient"]
    reference = methods_of(record)[2].scores
    for row, method in zip(drawn["rows"], methods_of(record), strict=True):
        assert row["scores"] == pytest.approx(method.scores.tolist(), abs=1e-12)
        # colours end with the largest score beside special tokens
        assert (row["start"], row["end"]) == (0, pytest.approx(float(method.scores[1:-1].abs().max())))
        assert row["beyond"] == [abs(score) > row["end"] * (1 + 1e-9) for score in row["scores"]]
        assert row["agreement"] == pytest.approx(spearman(method.scores, reference))
    values = raw(record).scores.tolist()
    assert drawn["rows"][0]["grounds"] == [colour(value, max(values[1:-1])) for value in values]
    shares = (reference.double() / reference[1:-1].double().max()).clamp(-1, 1).tolist()
    assert drawn["rows"][2]["grounds"] == [diverging()[step(1 + share, 2.0)] for share in shares]
    ground = cell(opened, 0, 4).evaluate("token => getComputedStyle(token).backgroundColor")
    expected = drawn["rows"][0]["grounds"][4]
    assert ground == f"rgb({', '.join(str(int(expected[at : at + 2], 16)) for at in (1, 3, 5))})"
    expect(cell(opened, 2, 7)).to_have_class(re.compile(r"\bbeyond\b"))
    expect(opened.locator(".legend")).to_contain_text("beyond the scale: special token or sink")
    edge = opened.locator(".agreement").all_inner_texts()
    assert edge == [f"{row['agreement']:.2f}".replace("-", "−") for row in drawn["rows"][:2]] + ["ref."]
    expect(opened.locator(".trust")).to_have_text(["trust 0.41 (−0.05 to 0.50)"], use_inner_text=True)
    expect(opened.locator(".warnings")).to_contain_text("gradient: these <b>signs</b> cancel", use_inner_text=True)
    assert seen.requests == []
    assert seen.errors == []


def test_pointing_tells_the_exact_figure_and_moves_nothing(opened, record):
    before = opened.locator(".rows").bounding_box()
    cell(opened, 1, 4).hover()
    values = rollout(record).scores.double()
    rank = 1 + int((values > values[4]).sum())
    parts = reading(opened).split(" · ")
    assert parts[0] == "rollout: “key”"
    score, ranked = parts[1].split(", ")
    assert (float(score), ranked) == (pytest.approx(float(values[4]), rel=1e-3), f"rank {rank} of 8")
    assert parts[2] == "read-out, as the method scores by itself"
    assert opened.locator(".note").inner_text().split("\n") == parts
    expect(opened.locator(".token.looked")).to_have_count(3)
    assert opened.locator(".rows").bounding_box() == before


def test_layers_and_another_query_show_the_rows_of_the_map(opened, record):
    choose_layer(opened, 1)
    for row, method in zip(scene(opened)["rows"], (raw(record), rollout(record)), strict=False):
        assert row["scores"] == pytest.approx(method.map[1, 0].tolist(), rel=1e-3, abs=1e-6)
    opened.locator(".head .token").nth(4).click()
    settle(opened)
    assert state(opened)["queries"] == [4]
    rows = scene(opened)["rows"]
    for row, method in zip(rows, (raw(record), rollout(record)), strict=False):
        assert row["scores"] == pytest.approx(method.at(4, 1).tolist(), rel=1e-3, abs=1e-6)
    # gradients know no other query: they stay, it is said, and nobody agrees with them
    assert rows[2]["own"]
    assert rows[2]["scores"] == pytest.approx(methods_of(record)[2].scores.tolist())
    expect(opened.locator(".only.now")).to_have_text(["read-out only"], use_inner_text=True)
    expect(opened.locator(".agreement")).to_have_text(["–", "–", "ref."], use_inner_text=True)
    opened.get_by_label("Agreement with").select_option("raw")
    settle(opened)
    expected = spearman(raw(record).at(4, 1), rollout(record).at(4, 1))
    assert scene(opened)["rows"][1]["agreement"] == pytest.approx(expected, abs=0.03)
    cell(opened, 0, 1).hover()
    assert reading(opened).endswith("query “key”, layer 1")
    expect(
        opened.get_by_role("button", name="Another query")
    ).to_be_hidden()  # aligned, the text is the head of columns
    opened.get_by_role("button", name="Read-out").click()
    settle(opened)
    assert state(opened)["queries"] == []


def test_a_query_that_attends_to_nothing_leaves_the_read_out_and_says_so(page, record, tmp_path):
    weights = record.weights.clone()
    weights[:, :, 6] = 0
    masked = [place == 6 for place in range(len(TOKENS))]
    silent = AttentionRecord.from_weights(
        weights, TOKENS, causal=False, special=SPECIAL, readout=0, masked_queries=masked
    )
    link = f"#{quote(json.dumps([{'queries': [6]}]))}"
    opened = open_view(page, scores([raw(silent), rollout(silent)], record=silent), tmp_path, link)
    assert scene(opened)["queries"] == [6]
    assert scene(opened)["rows"][0]["scores"] == pytest.approx(raw(silent).scores.tolist(), abs=1e-12)
    said = opened.locator(".said").inner_text()
    assert said.startswith("Shown: read-out, as the method scores by itself.")
    assert "“is” attends to nothing: in its place the read-out is shown." in said
    cell(opened, 0, 1).hover()
    assert reading(opened).endswith("read-out, as the method scores by itself")
    opened.locator(".head .token").nth(4).click(modifiers=["Shift"])
    settle(opened)
    said = opened.locator(".said").inner_text()
    assert said.startswith(f"Shown: query “key”, layer {LAYERS - 1}.")
    assert "“is” attends to nothing: left out of the mean." in said


def test_words_special_tokens_and_sums(opened, record):
    opened.keyboard.press("Tab")
    opened.get_by_label("Special tokens").click()
    opened.get_by_label("Words").click()
    settle(opened)
    drawn = scene(opened)
    assert drawn["tokens"] == ["the", "untold", "key", "<script>throw 1</script>", "is"]
    values = raw(record).scores.double()
    assert drawn["rows"][0]["scores"][1] == pytest.approx(float(values[2] + values[3]))
    hidden = float(values[0] + values[7])
    expect(opened.locator(".said")).to_contain_text(f"they take raw {100 * hidden:.1f} %", use_inner_text=True)
    cell(opened, 0, 1).click()
    cell(opened, 0, 2).click(modifiers=["Shift"])
    settle(opened)
    assert state(opened)["keys"] == [2, 3, 4]
    picked = opened.locator(".picked").inner_text()
    assert picked.startswith("“untold” + “key” in sum: raw ")
    assert float(re.search(r"raw ([\d.]+)", picked)[1]) == pytest.approx(float(values[2:5].sum()), rel=1e-3)
    opened.keyboard.press("Escape")
    settle(opened)
    assert (state(opened)["keys"], opened.locator(".picked").inner_text()) == ([], "")


def test_keys_reach_every_row(opened):
    opened.locator(".row[data-method] .token").first.focus()
    for key in ("n", "n", "ArrowDown"):
        opened.keyboard.press(key)
    assert reading(opened).startswith("rollout: “un”")
    opened.keyboard.press("Enter")
    opened.keyboard.press("ArrowLeft")
    settle(opened)
    kept = state(opened)
    assert (kept["keys"], kept["layer"]) == ([2], LAYERS - 1)
    opened.keyboard.press("ArrowUp")
    opened.keyboard.press("ArrowUp")
    opened.keyboard.press("Enter")
    settle(opened)
    assert state(opened)["queries"] == [2]
    opened.keyboard.press("?")
    expect(opened.locator("dialog")).to_contain_text("method", use_inner_text=True)


def test_scales_layouts_the_table_and_a_method_alone(opened, record):
    opened.get_by_label("Scale", exact=True).select_option("shared")
    settle(opened)
    most = max(float(method.scores[1:-1].max()) for method in methods_of(record)[:2])
    ends = [row["end"] for row in scene(opened)["rows"]]
    alone = float(methods_of(record)[2].scores[1:-1].abs().max())
    assert ends == [pytest.approx(most), pytest.approx(most), pytest.approx(alone)]
    opened.get_by_label("Layout").select_option("text")
    opened.get_by_role("slider", name="Hide below").fill("0.5")
    settle(opened)
    expect(opened.locator(".rows.running")).to_have_count(1)
    scored = [abs(score) / row["end"] for row in scene(opened)["rows"] for score in row["scores"]]
    expect(opened.locator(".said")).to_contain_text(
        f"{sum(share < 0.5 for share in scored)} scores below 0.500", use_inner_text=True
    )
    opened.get_by_role("button", name="rollout", exact=True).click()
    settle(opened)
    assert [row["method"] for row in scene(opened)["rows"]] == ["rollout"]
    opened.get_by_text("View as table").click()
    opened.wait_for_selector(".plain tbody tr")
    rows = opened.locator(".plain tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows][4:6] == ["key", "<script>throw 1</script>"]
    assert float(rows[4].split("\t")[1]) == pytest.approx(float(rollout(record).scores[4]), rel=1e-3)


def test_the_link_restores_what_was_chosen(page, record, tmp_path):
    chosen = [{"layer": 1, "queries": [3], "keys": [4], "layout": "text", "reference": "raw", "special": False}]
    opened = open_view(page, scores(methods_of(record)), tmp_path, f"#{quote(json.dumps(chosen))}")
    drawn = scene(opened)
    assert (drawn["layer"], drawn["queries"], len(drawn["tokens"])) == (1, [3], 6)
    expected = raw(record).at(3, 1)[1:7].tolist()
    assert drawn["rows"][0]["scores"] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    expect(opened.locator(".picked")).to_contain_text("“key”: raw", use_inner_text=True)


def test_hostile_tokens_change_nothing(page, tmp_path, seen):
    tokens = ["</script><img src=x onerror=alert(1)>", '"', "'&amp;", "\u202eevil", " שלום", "👩‍👩‍👧", "x" * 10_000, ""]
    record = record_of(tokens, [False] * len(tokens))
    page.set_viewport_size({"width": 360, "height": 700})
    opened = open_view(page, scores(methods_of(record), record=record), tmp_path)
    assert scene(opened)["tokens"][6] == "x" * 10_000
    cell(opened, 0, 6).hover()
    assert reading(opened).startswith(f"raw: “{'x' * 59}…”")
    sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert opened.evaluate(sideways) == 0
    opened.get_by_label("Layout").select_option("text")
    settle(opened)
    assert opened.evaluate(sideways) == 0
    assert seen.requests == []
    assert seen.errors == []


def test_a_long_text_and_a_second_view_on_one_dark_page(page, tmp_path, seen):
    long = record_of([f"token{place}" for place in range(512)], None, layers=2)
    short = record_of()
    page.emulate_media(color_scheme="dark")
    words = [raw(short).words(), rollout(short).words()]
    views = [scores(methods_of(long), record=long), scores(raw(short), record=short), scores(words)]
    page.goto(write_page(tmp_path / "three.html", views, "Three").as_uri())
    page.wait_for_function("document.querySelectorAll('[data-drawn]').length === 3")
    # where nothing but the read-out can be asked for, no row says so
    assert [page.locator(".rows").nth(place).locator(".only").count() for place in range(3)] == [1, 0, 0]
    first, second = (page.locator(".rows").nth(place).evaluate("rows => rows.scene") for place in (0, 1))
    assert (len(first["tokens"]), len(first["rows"]), len(second["rows"])) == (512, 3, 1)
    values = raw(short).scores.tolist()
    assert second["rows"][0]["grounds"] == [colour(value, max(values), dark=True) for value in values]
    # a running text stands once for each method, and once more only for who asks for another query
    seen_text = "rows => [...rows.querySelectorAll('.token')].filter((token) => token.offsetParent).length"
    assert page.locator(".rows").first.evaluate(seen_text) == 3 * 512
    page.get_by_role("button", name="Another query").click()
    assert page.locator(".rows").first.evaluate(seen_text) == 4 * 512
    page.locator(".head .token").nth(500).click()
    settle(page)
    row = page.locator(".rows").first.evaluate("rows => rows.scene")["rows"][1]
    assert row["scores"] == pytest.approx(rollout(long).at(500, 1).tolist(), rel=1e-3, abs=1e-6)
    assert page.locator(".rows").nth(1).evaluate("rows => rows.scene")["queries"] == []
    assert seen.requests == []
    assert seen.errors == []
