"""The payload of the survey view: every figure of the tables is in it, small, and plain JSON."""

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from attnscope.errors import BadInput
from attnscope.paint import CATEGORICAL
from attnscope.statistics import ROLE_KINDS, ROLE_SYMBOLS
from attnscope.statistics.roles import UNINFORMATIVE
from attnscope.views import VIEWS, page_html, survey
from attnscope.views.survey import add_spaces, shorten_around
from attnscope.views.weights import pack_array, unpack_array


def statistic_of(view, name):
    return next(one for one in view.payload["statistics"] if one["name"] == name)


def array_of(view, name, measure="value"):
    statistic = statistic_of(view, name)
    array = unpack_array(next(one["array"] for one in statistic["measures"] if one["name"] == measure))
    shape = (len(statistic["rows"]), len(view.payload["layers"]), len(view.payload["heads"]))
    return statistic["rows"], np.broadcast_to(array, shape)


def chosen(view, **state):
    """The view as if this had been chosen in it."""
    return replace(view, state={**view.state, **state})


@pytest.mark.parametrize("measure", ["value", "error", "chance", "focus", "best_offset"])
def test_every_figure_arrives(tables, card, measure):
    rows, array = array_of(survey(tables, card), "dependency_alignment", measure)
    for row in tables["dependency_alignment"].to_dict("records"):
        found = array[rows.index([row["direction"], row["relation"]]), row["layer"], row["head"]]
        assert found == pytest.approx(row[measure], rel=1e-6)


def test_what_was_not_measured_stays_so(tables, card):
    _, array = array_of(survey(tables, card), "entropy")
    assert np.flatnonzero(np.isnan(array)).tolist() == [1, 5]
    without = tables["distance"].query("not (layer == 2 and head == 3)")
    _, array = array_of(survey({"distance": without}, card), "distance")
    assert np.argwhere(np.isnan(array)).tolist() == [[0, 2, 3]]


def test_layers_and_heads_keep_their_numbers(tables, card):
    some = tables["distance"].query("layer in [1, 4] and head in [2, 7]").sample(frac=1, random_state=0)
    view = survey({"distance": some}, card, pinned=(4, 7))
    assert (view.payload["layers"], view.payload["heads"]) == ([1, 4], [2, 7])
    expected = some.sort_values(["layer", "head"])["value"].to_numpy().reshape(1, 2, 2)
    assert np.allclose(array_of(view, "distance")[1], expected)
    assert (view.state["statistic"], view.state["pinned"]) == ("distance", [[4, 7]])
    assert survey({"distance": some}, card, pinned=[(4, 7), (1, 2)]).state["pinned"] == [[4, 7], [1, 2]]


def test_bars_are_those_of_the_survey(tables, card, make_by_layer):
    by_layer = make_by_layer(tables)
    statistic = statistic_of(survey(tables, card, by_layer=by_layer), "patterns")
    table = by_layer["patterns"]
    expected = table[table["pattern"] == "previous"].sort_values("layer")["value"]
    assert np.allclose(unpack_array(statistic["byLayer"]["value"])[statistic["rows"].index(["previous"])], expected)
    assert statistic_of(survey(tables, card), "patterns")["byLayer"] is None
    with pytest.raises(BadInput, match="two rows for one place of its map"):
        survey(tables, card, by_layer={**by_layer, "patterns": pd.concat([table, table])})


def test_roles_come_syntax_first_and_look_the_same_in_every_survey(tables, card):
    roles = survey(tables, card).payload["roles"]
    counts = tables["roles"]["role"].value_counts()
    kinds = [list(ROLE_KINDS.values()).index(colour) for colour in roles["colours"]]
    assert kinds == sorted(kinds)
    assert roles["names"][0] == "nsubj → its verb"
    few = tables["roles"].groupby("role").head(1)
    other = survey({**tables, "roles": few}, card).payload["roles"]
    drawn = [
        dict(zip(one["names"], zip(one["letters"], one["colours"], strict=True), strict=True)) for one in (roles, other)
    ]
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == set(counts.index)
    places = unpack_array(roles["place"]).astype(int).flatten()
    assert [roles["names"][place] for place in places] == tables["roles"]["role"].tolist()
    assert roles["evidence"] == tables["roles"]["evidence"].tolist()


def test_the_page_and_the_figure_draw_what_the_one_table_of_roles_says(card):
    names = [role for role in ROLE_SYMBOLS if ROLE_SYMBOLS[role].kind in ("sink", "rests", "to its head", "position")]
    grid = pd.MultiIndex.from_product([range(8), range(12)], names=["layer", "head"]).to_frame(index=False)
    table = grid.assign(role=[names[place % len(names)] for place in range(len(grid))], value=0.5)
    view = survey({"roles": table}, card)
    shown = view.payload["roles"]
    on_page = zip(shown["names"], shown["letters"], shown["colours"], strict=True)
    assert {(name, *ROLE_SYMBOLS[name][:2]) for name in names} == set(on_page)
    axes = view.figure().figure.axes[0]
    filled = [to_hex(cell.get_facecolor()[0]) for cell in axes.collections]
    assert filled == [ROLE_SYMBOLS[role].colour for role in table["role"]]
    assert [text.get_text() for text in axes.texts] == [ROLE_SYMBOLS[role].letters for role in table["role"]]
    coloured = {colour for kind, colour in ROLE_KINDS.items() if kind not in UNINFORMATIVE}
    assert coloured <= set(CATEGORICAL)


@pytest.mark.parametrize(("layers", "heads"), [(6, 8), (24, 16), (30, 9), (12, 24)])
def test_printed_letters_stay_in_their_cells(card, layers, heads):
    grid = pd.MultiIndex.from_product([range(layers), range(heads)], names=["layer", "head"]).to_frame(index=False)
    widest = ["nmod:unmarked → its head", "to proper nouns", "mark → its head"]
    table = grid.assign(role=[widest[place % 3] for place in range(len(grid))], value=0.5)
    figure = survey({"roles": table}, card).figure().figure
    figure.draw_without_rendering()
    axes = figure.axes[0]
    (left, top), (right, bottom) = axes.transData.transform([(0, 0), (1, 1)])
    sizes = [text.get_window_extent() for text in axes.texts]
    assert len(sizes) == len(table)
    assert max(size.width for size in sizes) <= right - left
    assert max(text.get_fontsize() for text in axes.texts) * figure.dpi / 72 <= top - bottom


@pytest.mark.parametrize(
    ("model", "title"),
    [({"name": "demo", "fingerprint": "e1aa"}, "Survey of demo"), ("gpt2", "Survey of gpt2"),
     (None, "Survey of a model's heads")],
)  # fmt: skip
def test_its_title_names_the_model_alone(tables, model, title):
    assert survey(tables, {"model": model}).title == title


def test_a_survey_of_an_earlier_version_is_drawn(tables, card):
    """Its roles have names of their own, no other names beside them and no cases."""
    old = tables["roles"].drop(columns=["also", "error"]).assign(role="subject → verb")
    view = survey({"roles": old, "exemplars": tables["exemplars"]}, card, pinned=(2, 3))
    assert (view.payload["roles"]["names"], view.payload["roles"]["letters"]) == (["subject → verb"], ["S→"])
    assert view.payload["roleExemplars"] is None
    assert view.figure().caption


def test_exemplars_keep_their_pair_and_each_text_once(tables, card):
    packed_texts = survey(tables, card).payload["exemplars"]
    assert len(packed_texts["texts"]) == 2
    row = tables["exemplars"].query("layer == 3 and head == 2 and rank == 1").iloc[0]
    place, query, key, weight = packed_texts["of"]["3,2"][1]
    tokens = packed_texts["texts"][place]
    assert (tokens[query], tokens[key]) == (row["query_token"], row["key_token"])
    assert weight == pytest.approx(row["value"])


def test_tokens_without_spaces_read_as_the_text():
    text = "Don't stop, now!"
    tokens = ["<s>", "Don", "'", "t", "stop", ",", "now", "!", "</s>"]
    assert "".join(add_spaces(tokens, text)) == "<s> Don't stop, now! </s>"
    assert add_spaces([" a", " b"], "a b") == [" a", " b"]
    assert "".join(add_spaces(["other", "words"], "nothing here")) == "other words"


def test_a_long_text_is_cut_around_its_pair_and_says_so():
    tokens = [f" {place}" for place in range(512)]
    short, query, key = shorten_around(tokens, 400, 20)
    assert (short[query], short[key]) == (" 400", " 20")
    assert len(short) < 60
    assert [token for token in short if "tokens" in token] == ["… (8 tokens)", " … (355 tokens)", " … (99 tokens)"]


def test_constant_axes_travel_once():
    array = np.tile(np.array([[1.0], [np.nan]]), (1, 500))
    assert pack_array(array)["shape"] == [2, 1]
    assert np.array_equal(np.broadcast_to(unpack_array(pack_array(array)), array.shape), array, equal_nan=True)
    assert pack_array(np.arange(6.0).reshape(2, 3))["shape"] == [2, 3]


def test_a_number_that_a_page_cannot_hold_is_refused():
    with pytest.raises(BadInput, match="A page holds numbers"):
        pack_array(np.array([1.0, 1e300]))


def test_a_survey_of_a_real_size_stays_below_four_megabytes(make_tables, make_by_layer, card):
    tables = make_tables(30, 9, 46)
    random = np.random.default_rng(0)
    words = [f" word{number}" for number in range(5000)]
    rows = [
        {"layer": layer, "head": head, "rank": rank, "value": 0.9, "query": 20, "key": 3, "text": "",
         "tokens": list(random.choice(words, 30))}
        for layer in range(30) for head in range(9) for rank in range(10)
    ]  # fmt: skip
    page = survey({**tables, "exemplars": pd.DataFrame(rows)}, card, by_layer=make_by_layer(tables)).html()
    assert len(page) < 4_000_000


def test_the_payload_is_json_and_no_token_leaves_its_script(tables, card):
    page = page_html(survey(tables, card), "<i>title</i>", "<p>intro</p>")
    assert "throw 1</script>" not in page
    assert "<b>small</b>" not in page
    assert "<i>title" not in page
    assert "<p>intro</p>" in page
    data = page.split("<script type=application/json>")[1].split("</script>")[0]
    assert json.loads(data)["payload"]["layers"] == list(range(6))


def test_a_view_shows_itself_in_a_sandbox_and_saves(tables, card, tmp_path):
    view = VIEWS["survey"](tables, card)
    html = view._repr_html_()
    assert html.startswith('<iframe sandbox="allow-scripts"')
    assert html.count("<") == 2
    first = view.save(tmp_path / "a.html").read_bytes()
    assert first == view.save(tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda tables, card: survey({}, card), "no statistic to draw"),
        (lambda tables, card: survey({"distance": tables["distance"].drop(columns="head")}, card), "no column 'head'"),
        (lambda tables, card: survey(tables, card, statistic="mood"), "no map of 'mood'; there are roles, part_of"),
        (lambda tables, card: survey(tables, card, pinned=(0, 99)), "no layer 0, head 99"),
        (lambda tables, card: survey(tables, card, pinned=[(0, 1, 2)]), r"\(0, 1, 2\) is no pair"),
        (lambda tables, card: chosen(survey(tables, card), statistic="patterns", label=["no"]).figure(), "for no"),
        (lambda tables, card: chosen(survey(tables, card), statistic="distance", measure="no").figure(), "column 'no'"),
        (lambda tables, card: survey({"twice": pd.concat([tables["distance"]] * 2)}, card), "'twice' has several rows"),
        (lambda tables, card: survey(tables, card).save("view.gif"), r"view.gif ends in \.gif"),
        (lambda tables, card: page_html([], "empty"), "at least one view"),
    ],
)
def test_bad_input_is_one_sentence(call, sentence, tables, card):
    with pytest.raises(BadInput, match=sentence):
        call(tables, card)


def texts_of(path):
    return [element.text for element in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314


def test_the_roles_are_printed_with_letters_and_a_legend(tables, card, tmp_path):
    view = survey(tables, card, pinned=(2, 3))
    texts = texts_of(view.save(tmp_path / "roles.svg"))
    counts = tables["roles"]["role"].value_counts()
    assert {f"{name}  {count}" for name, count in counts.items()} <= set(texts)
    # each letter once for each of its heads, and once in the legend
    letters = dict(zip(view.payload["roles"]["names"], view.payload["roles"]["letters"], strict=True))
    for letter in letters.values():
        alike = [name for name in letters if letters[name] == letter]
        assert texts.count(letter) == sum(counts[name] + 1 for name in alike)
    assert "Framed: layer 2, head 3." in view.figure().caption
    pale = chosen(view, role="broad")
    assert "Heads of other roles than broad are pale." in pale.figure().caption
    assert pale.save(tmp_path / "pale.svg").read_bytes() != (tmp_path / "roles.svg").read_bytes()


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"statistic": "distance"}, "tokens"),
        ({"statistic": "distance", "measure": "signed"}, "signed"),
        ({"statistic": "entropy"}, "head   (hatched: not measured)"),
        ({"statistic": "patterns", "label": ["next"], "root": True}, "head   (square root scale)"),
        ({"statistic": "dependency_alignment", "role": "broad"}, "share of attention"),
    ],
)
def test_the_selected_map_is_printed_the_same_every_time(tables, card, tmp_path, state, said):
    view = chosen(survey(tables, card), **state)
    assert said in texts_of(view.save(tmp_path / "map.svg"))
    for suffix in ("svg", "pdf", "png"):
        first = view.save(tmp_path / f"first.{suffix}").read_bytes()
        assert first == view.save(tmp_path / f"second.{suffix}").read_bytes()


def test_the_printed_cells_are_the_selected_figures(tables, card):
    view = chosen(survey(tables, card), statistic="patterns", label=["next"])
    mesh = view.figure().figure.axes[0].collections[0]
    table = tables["patterns"].query("pattern == 'next'").sort_values(["layer", "head"])
    assert np.allclose(mesh.get_array().flatten(), table["value"])
    assert "Pattern (next)" in view.figure().caption


def test_the_table_is_that_of_the_selected_map(tables, card):
    view = survey(tables, card)
    assert view.to_frame().equals(tables["roles"])
    assert chosen(view, statistic="entropy").selected["statistic"] == "entropy"
    assert survey(tables, card, statistic="entropy").to_frame().equals(tables["entropy"])


def test_a_statistic_of_the_users_own_is_drawn(tables, card):
    own = tables["patterns"].rename(columns={"pattern": "kind"})
    statistic = statistic_of(survey({"my_own": own}, card), "my_own")
    assert statistic["title"] == "My own"
    assert statistic["labels"] == [{"name": "kind", "title": "kind"}]
