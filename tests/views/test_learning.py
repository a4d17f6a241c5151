"""The payload of the learning view: every value of the rows is in it, also of those that come later."""

from base64 import b64decode
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from attnscope.errors import BadInput
from attnscope.views import VIEWS, learning
from attnscope.views.learning import RECENT, looks_of
from attnscope.views.learning_figure import outline
from attnscope.views.weights import inflate

GROUPS = {"superb": "positive", "great": "positive", "awful": "negative", "the": "neutral"}


def rows_of(steps=range(6), quantities=("polarity score", "A"), names=GROUPS, seed=0):
    random = np.random.default_rng(seed)
    return [
        {"step": step, "quantity": quantity, "name": name, "group": names[name], "value": random.normal()}
        for step in steps
        for quantity in quantities
        for name in names
    ]


def curves_in(view):
    """What a script finds: the steps, values and bands of each curve by quantity and name, settled and of late."""
    payload = view.payload
    numbers = np.frombuffer(inflate(view.blobs["curves"]), "<f8") if "curves" in view.blobs else np.empty(0)
    counts, place, grids = payload["grids"], 0, []
    for count in counts:
        grids.append(numbers[place : place + count])
        place += count
    recent = np.frombuffer(b64decode(payload["recent"]), "<f8").reshape(-1, 5)
    found = {}
    for number, curve in enumerate(payload["curves"]):
        held = np.empty((0, 4))
        if curve["grid"] is not None:
            count = counts[curve["grid"]]
            columns = [
                numbers[place + part * count : place + (part + 1) * count] for part in range(1 + 2 * curve["band"])
            ]
            place += count * len(columns)
            columns += [np.full(count, np.nan)] * (3 - len(columns))
            held = np.column_stack([grids[curve["grid"]], *columns])
        found[curve["quantity"], curve["name"]] = np.vstack([held, recent[recent[:, 0] == number, 1:]])
    assert place == len(numbers)
    return found


def expected(rows):
    table = pd.DataFrame(rows)
    for column in ("low", "high"):
        table[column] = table.get(column, np.nan)
    table = table.assign(name=table.get("name", "")).drop_duplicates(["quantity", "name", "step"], keep="last")
    columns = ["step", "value", "low", "high"]
    return {key: part.sort_values("step")[columns].to_numpy() for key, part in table.groupby(["quantity", "name"])}


def assert_same(view, rows):
    found, wanted = curves_in(view), expected(rows)
    assert found.keys() == wanted.keys()
    for key, curve in wanted.items():
        np.testing.assert_array_equal(found[key], curve)


@pytest.mark.parametrize("steps", [range(6), range(400)], ids=["of late", "settled"])
def test_every_value_arrives_exactly(steps):
    rows = rows_of(steps)
    assert (len(rows) > RECENT) == (len(steps) > 6)
    assert_same(learning(rows), rows)
    assert_same(learning(pd.DataFrame(rows)), rows)


def test_rows_that_come_later_are_as_if_they_had_always_been_there():
    rows = rows_of(range(500))
    rows += [{"step": step, "quantity": "V·W", "name": "", "value": step / 7} for step in range(0, 500, 100)]
    rows.sort(key=lambda row: row["step"])
    view = learning([])
    settled = set()
    for start in range(0, len(rows), 50):
        view.add(rows[start : start + 50])
        settled.add(view.blobs.get("curves"))
    assert_same(view, rows)
    # bytes are not made anew for each few rows
    assert len(settled) <= 1 + len(rows) // RECENT
    pd.testing.assert_frame_equal(view.to_frame(), learning(rows).to_frame())


def test_a_step_that_comes_again_replaces_and_an_earlier_one_is_put_in_its_place():
    rows = rows_of(range(4, 8))
    view = learning(rows)
    again = [{**row, "value": row["value"] + 1} for row in rows_of([6])]
    view.add(again)
    before = rows_of([1], seed=5)
    view.add(before)
    assert_same(view, [*rows, *again, *before])


def test_bands_gaps_and_what_is_measured_seldom():
    rows = [
        {"step": step, "quantity": "A", "name": name, "value": value, "low": value - 1, "high": value + 1}
        for name in "ab"
        for step, value in enumerate([0.5, np.nan, np.inf, 2.0])
    ]
    rows += [{"step": 3, "quantity": "B", "name": "a", "value": 1, "low": None, "high": None}]
    view = learning(rows)
    assert_same(view, rows)
    view.add(rows_of(range(10, 400)))  # and settled
    assert_same(view, [*rows, *rows_of(range(10, 400))])
    assert [curve["band"] for curve in view.payload["curves"]][:3] == [True, True, False]


def test_quantities_are_chosen_and_ordered():
    rows = rows_of(quantities=["A", "B", "C"])
    view = learning(rows, quantities=["C", "A"])
    assert view.payload["quantities"] == ["C", "A"]
    assert list(view.to_frame()["quantity"].unique()) == ["C", "A"]
    view.add(rows_of([9], quantities=["A", "B", "C"]))
    assert_same(view, [row for row in [*rows, *rows_of([9], quantities=["A", "B", "C"])] if row["quantity"] != "B"])
    assert learning([], quantities=["A"]).payload["quantities"] == ["A"]
    assert learning(rows).payload["quantities"] == ["A", "B", "C"]


def test_colours_are_those_of_groups_and_never_change_when_names_come():
    groups = {**GROUPS, "": "", "film": "", "plot": ""}
    looks = looks_of(groups)
    for count in range(len(groups)):
        assert looks_of(dict(list(groups.items())[:count])) == looks[:count]
    by_name = {look["name"]: (look["colour"], look["dash"]) for look in looks}
    assert by_name["superb"][0] == by_name["great"][0] != by_name["awful"][0]
    assert by_name[""] == (None, 0)
    assert len(set(by_name.values())) == len(groups)


def test_the_table_is_tidy_and_whole():
    rows = rows_of()
    frame = learning(list(reversed(rows))).to_frame()
    assert list(frame) == ["step", "quantity", "name", "group", "value"]
    assert frame["step"].tolist()[:6] == list(range(6))
    merged = frame.merge(pd.DataFrame(rows), on=["step", "quantity", "name", "group"])
    assert (merged["value_x"] == merged["value_y"]).all()
    assert len(merged) == len(rows)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda rows: learning({"step": 1}), "put rows into a list"),
        (lambda rows: learning(7), "put rows into a list"),
        (lambda rows: learning([{"step": 1, "quantity": "A"}]), "no column 'value'"),
        (lambda rows: learning(pd.DataFrame(rows).assign(low=0.0)), "no column 'high'"),
        (lambda rows: learning([{**rows[0], "step": 1.5}]), r"whole number from 0 on, but row 0 has 1\.5"),
        (lambda rows: learning([*rows, {**rows[0], "step": -1}]), f"row {6 * 8} has -1"),
        (lambda rows: learning([{**rows[0], "step": None}]), "row 0 has None"),
        (lambda rows: learning([rows[0], {**rows[1], "value": "much"}]), "Row 1 has 'much' as its value"),
        (lambda rows: learning([{**rows[0], "quantity": ""}]), "Row 0 has no quantity"),
        (lambda rows: learning([{**rows[0], "low": 2, "high": 1}]), "low is above its high"),
        (lambda rows: learning([rows[0], rows[0]]), "Row 1 has the step, the quantity and the name"),
        (
            lambda rows: learning([rows[0], {**rows[0], "step": 9, "group": "negative"}]),
            "'superb' is in two gro",
        ),
        (lambda rows: learning(rows, quantities=["A", "G"]), "no quantity 'G' in these rows; there are polarity"),
        (lambda rows: learning(rows, quantities=[]), "name at least one"),
        (lambda rows: learning([]).figure(), "no rows to draw yet"),
        (lambda rows: learning(rows).selecting(names=["nobody"]).figure(), "no rows to draw yet"),
        (lambda rows: learning(rows_of([0], quantities=map(str, range(30)))).figure(), "24 panels readably"),
        (lambda rows: learning(rows_of(names=dict.fromkeys(map(str, range(40)), ""))).figure(), "36 names apart"),
        (
            lambda rows: VIEWS["survey"]({"a": pd.DataFrame({"layer": [0], "head": [0], "value": [1.0]})}, {}).add([]),
            "not",
        ),
    ],
)
def test_bad_input_is_one_sentence(call, sentence):
    with pytest.raises(BadInput, match=sentence) as caught:
        call(rows_of())
    assert str(caught.value).count("\n") == 0


def test_bad_rows_change_nothing():
    view = learning(rows_of())
    before = dict(view.payload)
    with pytest.raises(BadInput, match="two groups"):
        view.add([{"step": 9, "quantity": "A", "name": "the", "group": "positive", "value": 1}])
    assert view.payload == before


def test_a_widget_gets_only_the_rows_of_late():
    pytest.importorskip("anywidget", reason="anywidget is missing: pip install 'attnscope[widget]'.")
    view = learning(rows_of(range(400)))
    widget = view.widget
    widget.step, widget.names = 7, ["superb"]
    sent = []
    widget.observe(lambda change: sent.append(change["name"]))
    view.add(rows_of([400]))
    assert sent == ["payload"]
    assert widget.payload == view.payload
    view.add(rows_of(range(401, 800)))
    assert sent == ["payload", "payload", "blobs"]
    assert widget.blobs == view.blobs
    assert view.selected == {"step": 7, "names": ["superb"], "scale": "linear"}


# ---- printed


def texts_of(path):
    return [element.text for element in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314


def test_the_figure_has_a_panel_for_each_quantity_and_the_same_bytes(tmp_path):
    rows = rows_of() + [{"step": step, "quantity": "V·W", "value": step} for step in (0, 5)]
    view = learning(rows, title="Four words")
    texts = texts_of(view.save(tmp_path / "a.svg"))
    assert {"polarity score", "A", "V·W", "step", *GROUPS, *GROUPS.values()} <= set(texts)
    for suffix in ("svg", "pdf", "png"):
        assert view.save(tmp_path / f"a.{suffix}").read_bytes() == view.save(tmp_path / f"b.{suffix}").read_bytes()
    plot = view.figure()
    drawn = expected(rows)
    for axes, quantity in zip(plot.figure.axes, ["polarity score", "A", "V·W"], strict=True):
        curves = [line.get_xydata() for line in axes.lines if len(line.get_xdata()) > 2 or quantity == "V·W"]
        for (_, name), curve in ((key, curve) for key, curve in drawn.items() if key[0] == quantity):
            assert any(np.array_equal(one, curve[:, :2]) for one in curves), name
    assert plot.caption.startswith("Four words. polarity score, A, V·W over steps 0 to 5")


def test_what_is_selected_is_printed(tmp_path):
    view = learning(rows_of(range(2000), quantities=["A"])).selecting(names=["awful"], scale="log", step=100)
    texts = texts_of(view.save(tmp_path / "log.svg"))
    assert {"0", "1", "10", "100", "1000", "step, logarithmic"} <= set(texts)
    assert "superb" not in texts
    caption = view.figure(3.3).caption
    assert "marks step 100." in caption
    assert "Hidden: 3 names." in caption


def test_many_curves_have_a_legend_and_many_names_that_of_their_groups(tmp_path):
    many = {f"word{number}": ["positive", "negative"][number % 2] for number in range(50)}
    some = dict(list(many.items())[:10])
    assert {*some} <= set(texts_of(learning(rows_of(names=some)).save(tmp_path / "some.svg")))
    texts = texts_of(learning(rows_of(names=many)).save(tmp_path / "many.svg"))
    assert {"positive", "negative"} <= set(texts)
    assert "word3" not in texts


@pytest.mark.filterwarnings("ignore:Glyph")
def test_hostile_names_are_printed(tmp_path):
    names = {r"$\frac$": "a$b$", "b\x1b\x00": "", "\ud800": "", "<script>alert(1)</script>": "", "W" * 10_000: ""}
    view = learning(rows_of(names=names))
    assert r"$\frac$" in texts_of(view.save(tmp_path / "hostile.svg"))
    assert "<script>alert" not in view.html()


def test_few_points_of_a_long_curve_are_drawn_and_none_of_its_peaks_is_lost():
    random = np.random.default_rng(0)
    places, values = np.arange(10_000.0), random.normal(size=10_000)
    values[random.choice(10_000, 50)] = np.nan
    kept = outline(places, values, 100)
    assert len(kept) <= 500
    for column in range(100):
        part = np.arange(10_000)[np.minimum(places / 9999 * 100, 99).astype(int) == column]
        assert {part[0], part[-1], part[np.nanargmin(values[part])], part[np.nanargmax(values[part])]} <= set(kept)
