"""The answer view: its figures are sums of scores, the same on the page and in print, and nonsense is refused."""

import json
import math
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from attnscope.errors import BadInput
from attnscope.views.answer import view_of
from attnscope.views.answer_figure import TALLEST
from attnscope.views.answer_scene import KINDS, AnswerMethod
from attnscope.views.page import HERE
from attnscope.views.printing import file_bytes
from attnscope.views.weights import inflate

from .answers import WORDS, YEAR, scene_of

STATES = [
    {"method": "rollout"},
    {"method": "rollout", "order": "reading", "special": True},
    {"method": "rollout", "queries": YEAR, "keys": [0, 4]},
    {"method": "gradient_x_input", "queries": [1, 2, 14]},
    {"method": "gradient_x_input", "keys": [3], "special": True},
]
OPENING = {"method": "rollout", "order": "strongest", "special": False, "root": False, "queries": [], "keys": []}


def test_shares_are_sums_of_scores():
    """A plain loop over tokens and passages."""
    scene = scene_of()
    for state in STATES:
        rows = scene.rows({**OPENING, **state})
        [method] = [one for one in scene.methods if one.name == state["method"]]
        tokens = state.get("queries") or range(len(scene.texts))
        whole = sum(abs(method.scores[token, place]) for token in tokens for place in range(len(scene.passages)))
        parts = [0.0] * len(scene.parts)
        for place, passage in enumerate(scene.passages):
            share = sum(method.scores[token, place] for token in tokens) / whole
            assert rows.shares[place] == pytest.approx(share, abs=1e-12)
            parts[passage.part] += share
        assert rows.part_shares == pytest.approx(parts, abs=1e-12)
        assert sum(rows.origin.values()) == pytest.approx(rows.shares.sum(), abs=1e-12)
        source = state.get("keys") or [
            place for place, passage in enumerate(scene.passages) if scene.parts[passage.part].kind == "document"
        ]
        for word, share in zip(WORDS, rows.word_shares, strict=True):
            given = sum(method.scores[token, place] for token in word for place in source)
            assert share == pytest.approx(given / np.abs(method.scores[word]).sum(), abs=1e-12)
        drops = [sum(scene.drops[token, part] for token in tokens) for part in range(len(scene.parts))]
        assert rows.drops == pytest.approx(drops, nan_ok=True)


def test_shares_of_one_whole_sum_to_one_and_the_strongest_document_stands_first():
    scene = scene_of()
    rows = scene.rows(OPENING)
    assert sum(rows.origin.values()) == pytest.approx(1)
    documents = [part for part in rows.order if scene.parts[part].kind == "document"]
    assert documents == sorted(documents, key=lambda part: -rows.part_shares[part])
    kinds = [KINDS.index(scene.parts[part].kind) for part in rows.order]
    assert kinds == sorted(kinds)
    assert {scene.parts[part].kind for part in rows.order} == {"document", "question", "turn"}
    assert scene.rows({**OPENING, "order": "reading", "special": True}).order == tuple(range(len(scene.parts)))
    # the sinks take most, and are set aside where the scale ends
    assert rows.scale.end == pytest.approx(rows.shares[[*range(10)]].max())
    assert rows.shares.max() > rows.scale.end


def test_the_year_comes_of_its_sentence_and_goes_back_to_it():
    scene = scene_of()
    rows = scene.rows({**OPENING, "queries": YEAR})
    assert int(rows.shares.argmax()) == 0
    assert rows.order[0] == 0
    assert rows.drops[0] == pytest.approx(2.5, abs=0.2)
    back = scene.rows({**OPENING, "keys": [0]})
    assert int(back.word_shares.argmax()) == WORDS.index(YEAR)
    assert back.source == (0,)


def test_without_documents_words_are_coloured_by_the_prompt():
    scene = scene_of()
    parts = [replace(part, kind="turn" if part.kind == "document" else part.kind) for part in scene.parts]
    bare = replace(scene, parts=parts)
    assert bare.context == tuple(range(10))  # all but the answer's own words and the two markers


def test_the_script_selects_the_same(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing: install it to run the tests of the scripts.")
    scene = scene_of(2)
    view = view_of(scene, "An answer")
    given = {
        "payload": view.payload,
        "scores": {method.name: method.scores.astype("<f4").reshape(-1).tolist() for method in scene.methods},
        "states": [{**OPENING, **state} for state in STATES],
    }
    code = """
import { readFileSync } from "node:fs";
const { rowsOf } = await import(process.argv[1]);
const { payload, scores, states } = JSON.parse(readFileSync(0));
const found = states.map((state) => rowsOf(payload, Float32Array.from(scores[state.method]), null, state));
console.log(JSON.stringify(found.map((rows) => ({ ...rows, shares: [...rows.shares], drops: null, dropOfAll: null }))));
"""
    command = [node, "--input-type=module", "-e", code, (HERE / "answer_rows.js").as_uri()]
    ran = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    for found, state in zip(json.loads(ran.stdout), given["states"], strict=True):
        rows = scene.rows(state)
        assert found["order"] == list(rows.order)
        assert found["tokens"] == list(rows.tokens)
        assert found["source"] == list(rows.source)
        assert found["shares"] == pytest.approx(rows.shares.tolist(), abs=1e-6)
        assert found["partShares"] == pytest.approx(rows.part_shares.tolist(), abs=1e-6)
        assert found["wordShares"] == pytest.approx(rows.word_shares.tolist(), abs=1e-6)
        assert found["origin"] == pytest.approx(rows.origin, abs=1e-6)
        assert (found["end"], found["wordEnd"]) == pytest.approx((rows.scale.end, rows.word_scale.end), abs=1e-6)


def test_arrays_travel_as_floats():
    scene = scene_of()
    blobs = view_of(scene, "An answer").blobs
    for place, method in enumerate(scene.methods):
        assert np.array_equal(
            np.frombuffer(inflate(blobs[f"scores{place}"]), "<f4"), method.scores.astype("f4").reshape(-1)
        )
    drops = np.frombuffer(inflate(blobs["drops"]), "<f4").reshape(len(scene.texts), -1)
    assert np.array_equal(drops[:, :-1], scene.drops.astype("f4"), equal_nan=True)
    assert np.array_equal(drops[:, -1], scene.drop_of_all.astype("f4"))
    assert "drops" not in view_of(replace(scene, drops=None, drop_of_all=None), "An answer").blobs


def test_the_table_has_every_score():
    scene = scene_of()
    table = view_of(scene, "An answer").to_frame()
    assert len(table) == 2 * len(scene.texts) * len(scene.passages)
    row = table[(table["method"] == "gradient_x_input") & (table["position"] == 7)].iloc[4]
    assert row["score"] == scene.methods[1].scores[7, 4]
    assert (row["part"], row["passage"]) == ("The railway", "The station was built of <b>red</b> brick.")
    assert row["part_drop"] == scene.drops[7, 1]


@pytest.mark.parametrize(("repeats", "width"), [(20, 3.3), (1, 6.8)])
def test_the_printed_answer_fits_a_page(repeats, width):
    view = view_of(scene_of(repeats), "Answer view: made by hand").selecting(queries=YEAR, keys=[0])
    plot = view.figure(width)
    assert plot.figure.get_figheight() <= TALLEST + 1e-6
    assert "“1854”" in plot.caption
    assert "no proof" in plot.caption
    assert ("do not fit" in plot.caption) == (repeats == 20)
    drawn = {text.get_text() for text in plot.figure.axes[0].texts}
    assert {"1854", "1854.", "markers and sinks"} <= drawn
    assert file_bytes(view.figure(width), "svg") == file_bytes(plot, "svg")


def test_signed_scores_say_so_in_print():
    view = view_of(scene_of(), "An answer", method="gradient_x_input")
    assert "blue is above zero, orange below" in view.figure().caption


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"texts": [], "words": []}, "the answer has no tokens"),
        ({"methods": []}, "name at least one method"),
    ],
)
def test_nothing_to_show_is_refused(wrong, said):
    with pytest.raises(BadInput, match=said):
        view_of(replace(scene_of(), **wrong), "An answer")


def test_scores_that_are_no_numbers_are_refused():
    scene = scene_of()
    broken = AnswerMethod("flow", np.where(scene.methods[0].scores > 0.5, math.nan, 0.0))
    with pytest.raises(BadInput, match="flow gives scores that are not numbers"):
        view_of(replace(scene, methods=[broken]), "An answer")


@pytest.mark.parametrize("wrong", [{"method": "flow"}, {"order": "best"}, {"keys": [99]}, {"queries": [-99]}])
def test_what_is_not_there_cannot_be_selected(wrong):
    with pytest.raises(BadInput):
        view_of(scene_of(), "An answer").selecting(**wrong)
