"""The answer view: its figures are sums of scores, the same on the page and in print, and nonsense is refused."""

import json
import math
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import attnscope
from attnscope import views
from attnscope.errors import BadInput
from attnscope.views.answer import view_of
from attnscope.views.answer_figure import TALLEST
from attnscope.views.answer_scene import KINDS, AnswerMethod
from attnscope.views.page import HERE
from attnscope.views.printing import file_bytes
from attnscope.views.weights import inflate

from .answers import WORDS, YEAR, scene_of

DOCUMENTS = {"Rome": "Rome fell. It was late, you see.", "The Ald": "The river is called Ald.\n\nYou see it."}
STATES = [
    {"method": "rollout"},
    {"method": "rollout", "order": "reading", "special": True},
    {"method": "rollout", "queries": YEAR, "keys": [0, 4]},
    {"method": "rollout", "order": "drop", "queries": [0, 1], "special": True},
    {"method": "gradient_x_input", "queries": [1, 2, 14]},
    {"method": "gradient_x_input", "keys": [3], "special": True},
]
OPENING = {"method": "rollout", "order": "strongest", "special": False, "root": False, "queries": [], "keys": []}


# ---- of a real answer


@pytest.fixture(scope="module")
def answered(chat_model):
    return attnscope.answer(
        chat_model, question="Which river?", documents=list(DOCUMENTS.items()), answer="The river is called Ald."
    )


def decoded(view, place):
    payload = view.payload
    return np.frombuffer(inflate(view.blobs[f"scores{place}"]), "<f4").reshape(
        len(payload["tokens"]), len(payload["passages"])
    )


def test_the_view_holds_the_scores_of_the_answer(answered):
    names = ["rollout", "raw", "layerwise_tracing", "gradient_x_input", "blank_out"]
    view = views.answer(answered, methods=names)
    payload = view.payload
    parts = payload["parts"]
    assert [part["name"] for part in payload["parts"] if part["kind"] == "document"] == [*DOCUMENTS]
    assert "".join(payload["tokens"]) == answered.text
    assert payload["probabilities"] == pytest.approx(answered.probabilities.tolist(), rel=1e-5)
    assert [method["signed"] for method in payload["methods"]] == [False, False, False, True, True]
    for place, name in enumerate(names):
        options = {"signed": True} if name == "gradient_x_input" else {}
        table = answered.scores(name, by="sentence", **options)
        found = decoded(view, place)
        assert found.sum(1) == pytest.approx(table.sum(axis=1).to_numpy(), abs=1e-4)
        for column in ("Rome fell.", "It was late, you see.", "You see it."):
            [passage] = [at for at, one in enumerate(payload["passages"]) if one["text"].strip() == column]
            assert found[:, passage] == pytest.approx(table[column].to_numpy(), abs=1e-5), (name, column)
        if name == "blank_out":  # a document's absence is not the sum of those of its sentences, and that is said
            assert "added up" in payload["methods"][place]["warnings"][0]
            continue
        # of a span the answer has the mean or the sum of its tokens: as shares they are the same
        shares = scene_shares(found, range(3))
        span = answered.scores(name, by="document", span=range(3), **options)
        of_rome = [at for at, one in enumerate(payload["passages"]) if parts[one["part"]]["name"] == "Rome"]
        whole = np.abs(found[:3]).sum() / (1 if name == "gradient_x_input" else 3)
        assert shares[of_rome].sum() == pytest.approx(float(span["Rome"].iloc[0]) / whole, abs=1e-4), name


def scene_shares(scores, tokens):
    """Of these tokens."""
    chosen = scores[list(tokens)].astype(float)
    return chosen.sum(0) / np.abs(chosen).sum()


def test_where_the_score_goes_is_what_the_answer_says_of_its_origin(answered):
    view = views.answer(answered, methods=["rollout"])
    origin = answered.origin("rollout")
    payload = view.payload
    found = decoded(view, 0)
    for kind, column in (("document", "document"), ("question", "question"), ("answer", "answer"), ("marker", "sink")):
        own = [at for at, one in enumerate(payload["passages"]) if payload["parts"][one["part"]]["kind"] == kind]
        assert found[:, own].sum(1) == pytest.approx(origin[column].to_numpy(), abs=1e-5), kind


def test_drops_are_those_of_the_answer(answered):
    view = views.answer(answered, drops="document")
    payload = view.payload
    drops = np.frombuffer(inflate(view.blobs["drops"]), "<f4").reshape(len(payload["tokens"]), -1)
    table = answered.drops("document").set_index("segment")["drop"]
    for part, one in enumerate(payload["parts"]):
        if one["kind"] == "document":
            assert drops[:, part].sum() == pytest.approx(table[one["name"]], abs=1e-4)
        if one["kind"] in ("answer", "marker"):
            assert np.isnan(drops[:, part]).all()
    assert drops[:, -1] == pytest.approx(answered.origin("raw")["without_documents"].to_numpy(), abs=1e-5)


def test_a_sink_in_a_passage_has_a_passage_of_its_own(base_model):
    """Without a template the first token, on which attention rests, is a word of the text."""
    answer = attnscope.answer(base_model, question="Which river?", documents=DOCUMENTS, answer="The Ald.")
    payload = views.answer(answer).payload
    markers = [
        passage["text"] for passage in payload["passages"] if payload["parts"][passage["part"]]["kind"] == "marker"
    ]
    assert len(markers) >= 1
    shares = decoded(views.answer(answer), 0)
    [sink, *_] = [at for at, one in enumerate(payload["passages"]) if payload["parts"][one["part"]]["kind"] == "marker"]
    rows, _ = answer.rows("rollout", [[place] for place in range(len(answer.tokens))])
    assert shares[:, sink] == pytest.approx(rows[:, 0].numpy(), abs=1e-6)


@pytest.mark.parametrize("by", ["turn", "document", "sentence", "word", "token"])
def test_every_level_has_the_same_sums(answered, by):
    view = views.answer(answered, by=by)
    payload, found = view.payload, decoded(view, 0)
    of_rome = [at for at, one in enumerate(payload["passages"]) if payload["parts"][one["part"]]["name"] == "Rome"]
    if by == "turn":
        assert not of_rome or len(of_rome) == 1
    else:
        wanted = answered.scores("rollout", by="document")["Rome"].to_numpy()
        assert found[:, of_rome].sum(1) == pytest.approx(wanted, abs=1e-5)
    assert found.sum(1) == pytest.approx(np.ones(len(found)), abs=1e-4)
    assert "".join(passage["text"] for passage in payload["passages"]) == answered.record.segments.text


def test_a_given_answer_of_another_model_says_so(chat_model):
    answer = attnscope.answer(chat_model, question="Which river?", text="The Ald.")
    payload = views.answer(answer).payload
    assert any("another model" in note for note in payload["notes"])
    assert not any(part["kind"] == "document" for part in payload["parts"])
    assert views.answer(answer, drops="document").payload["dropOfAll"] is False


def test_what_a_method_cannot_do_is_said_beside_the_others(answered):
    payload = views.answer(answered, methods=["rollout", "sampled_ablation"]).payload
    assert [method["name"] for method in payload["methods"]] == ["rollout"]
    assert "sampled_ablation is left out: sampled_ablation is fitted anew" in payload["notes"][0]
    gradient = views.answer(answered, methods=["gradient"]).payload["methods"][0]
    assert "lengths of the tokens' gradients are added up" in gradient["warnings"][0]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"methods": []}, "Name at least one method"),
        ({"methods": ["luck"]}, "no method 'luck'"),
        ({"methods": ["sampled_ablation"]}, "fitted anew for each span"),
        ({"by": "chapter"}, "chapter"),
        ({"drops": "sentence"}, 'measures drops="document"'),
        ({"method": "raw", "methods": ["rollout"]}, "no method 'raw'"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_sentence(answered, wrong, said):
    with pytest.raises(BadInput) as refused:
        views.answer(answered, **wrong)
    assert said.lower() in str(refused.value).lower()


def test_a_record_without_its_model_is_shown_by_attention(answered):
    alone = attnscope.Answer(record=answered.record, log_probabilities=answered.log_probabilities)
    assert views.answer(alone).title == views.answer(answered).title
    with pytest.raises(BadInput, match="with it"):
        views.answer(alone, drops="document")


# ---- of scores made by hand


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


def _with_all(scene):
    return np.concatenate([scene.drops, scene.drop_of_all[:, None]], axis=1)


def test_the_script_selects_the_same():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing: install it to run the tests of the scripts.")
    scene = scene_of(2)
    view = view_of(scene, "An answer")
    given = {
        "payload": view.payload,
        "scores": {method.name: method.scores.astype("<f4").reshape(-1).tolist() for method in scene.methods},
        "drops": [[None if math.isnan(drop) else drop for drop in row] for row in _with_all(scene).tolist()],
        "states": [{**OPENING, **state} for state in STATES],
    }
    code = """
import { readFileSync } from "node:fs";
const { rowsOf } = await import(process.argv[1]);
const { payload, scores, states, drops } = JSON.parse(readFileSync(0));
const fell = Float32Array.from(drops.flat(), (drop) => drop ?? NaN);
const found = states.map((state) => rowsOf(payload, Float32Array.from(scores[state.method]), fell, state));
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


def test_documents_stand_by_their_drop_where_it_was_measured():
    scene = scene_of(2)
    rows = scene.rows({**OPENING, "order": "drop"})
    documents = [part for part in rows.order if scene.parts[part].kind == "document"]
    assert documents == sorted(documents, key=lambda part: -rows.drops[part])
    assert view_of(scene, "An answer").state["order"] == "drop"
    bare = view_of(replace(scene, drops=None, drop_of_all=None), "An answer")
    assert bare.state["order"] == "strongest"
    with pytest.raises(BadInput):
        bare.selecting(order="drop")


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
