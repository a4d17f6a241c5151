"""What can be asked of a text: why this outcome, why not that one, by token, word or sentence; as `explain` answers."""

import json
from dataclasses import replace

import pytest
import torch

import attnscope
from attnscope.app import Desk
from attnscope.app.turns import Work
from attnscope.attribution.phrases import Phrase
from attnscope.explaining import carried_words
from attnscope.views.weights import inflate

from .conftest import client_of

TEXT = "the key to the cabinets"
METHODS = ["rollout", "gradient_x_input", "integrated_gradients", "blank_out"]
QUESTIONS = [
    {},
    {"target": "plural"},
    {"against": "plural"},
    {"target": "plural", "against": "singular"},
]


@pytest.fixture(scope="module")
def client(demo):
    desk = Desk({"demo": demo}, budget=50_000_000)
    with client_of(desk) as client:
        yield client
    desk.close()


def read(client, text=TEXT, **more):
    return client.post("/api/texts", json={"model": "demo", "text": text, **more})


def scores_of(client, by="token", methods=METHODS, **question):
    text = read(client, **question).json()["id"]
    answer = client.post("/api/views", json={"text": text, "view": "scores", "methods": methods, "by": by})
    return json.loads(answer.text.splitlines()[-1])["view"]


def rows_of(client, view):
    """The scores as the page gets them, by method."""
    sent = client.get(f"/api/views/{view['id']}/blobs/own").content
    rows = torch.frombuffer(bytearray(inflate(sent)), dtype=torch.float64)
    names = [method["name"] for method in view["values"]["payload"]["methods"]]
    return dict(zip(names, rows.reshape(len(names), -1), strict=True))


@pytest.mark.parametrize("by", ["token", "word", "sentence"])
@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_the_scores_and_the_headline_are_those_of_explain(client, demo, question, by):
    view = scores_of(client, by, **question)
    explained = attnscope.explain(demo, TEXT, METHODS, by=by, **question)
    rows = rows_of(client, view)
    # the one the headline speaks of comes first
    assert list(rows) == sorted(METHODS, key=lambda name: name != "blank_out")
    for scores in explained.comparison.scores:
        assert torch.allclose(rows[scores.method], scores.scores.double(), atol=1e-6), scores.method
    assert view["carried"].endswith(carried_words(explained.comparison, "blank_out", by))
    assert f"{by}s " in view["carried"] or f"this {by} " in view["carried"]


def test_what_speaks_for_one_of_two_labels_speaks_against_the_other(client):
    one, other = (rows_of(client, scores_of(client, target=label)) for label in ("singular", "plural"))
    assert torch.allclose(one["blank_out"], -other["blank_out"], atol=1e-6)
    assert float(one["blank_out"].abs().max()) > 0.1


def test_each_question_is_kept_apart_and_asked_once(client, demo, monkeypatch):
    told = [read(client, **question).json() for question in QUESTIONS]
    assert len({one["id"] for one in told}) == len(QUESTIONS)
    assert [(one["target"], one["against"]) for one in told] == [
        (None, None),
        ("plural", None),
        (None, "plural"),
        ("plural", "singular"),
    ]
    assert all(one["outcomes"] == ["singular", "plural"] for one in told)
    views = [scores_of(client, by, target="plural") for by in ("token", "word", "sentence")]
    assert len({view["id"] for view in views}) == 3
    monkeypatch.setattr(type(demo), "record", None)
    monkeypatch.setattr(type(demo), "probabilities", None)
    assert [read(client, **question).json() for question in QUESTIONS] == told
    assert [scores_of(client, by, target="plural") for by in ("token", "word", "sentence")] == views


def test_the_headline_says_what_was_asked(client):
    assert scores_of(client)["carried"].startswith("By blank-out these tokens carried it most: “key”")
    asked = scores_of(client, target="plural")["carried"]
    assert asked.startswith("Explained: why 'plural' (< 0.1 %). By blank-out these tokens speak against it: “key”")
    rival = scores_of(client, against="plural")["carried"]
    assert rival.startswith("Explained: why 'singular' (> 99.9 %) and not 'plural'. By blank-out, on log-odds,")


def test_a_label_is_told_as_the_model_spells_it(client):
    assert read(client, target="PLURAL").json()["target"] == "plural"


def test_phrases_are_looked_for_once_where_no_word_carries_the_answer(desk, monkeypatch):
    looked = []

    def found(record, model):
        looked.append(record.target)
        return (Phrase(("the", "key"), (1, 2), 2.5, 0.25),)

    monkeypatch.setattr("attnscope.app.entry.phrases", found)
    entry = desk.read("demo", TEXT, None, Work(), target="plural")
    carried = desk.draw(entry, "scores", ["blank_out"], None, Work()).carried
    assert (looked, "Taken away together" in carried) == ([], False)
    scores = entry.scores["blank_out", "token"]
    entry.scores["blank_out", "token"] = replace(scores, noise="no single token carries the answer")
    assert entry.needs_model(["blank_out"], "token")
    for _ in range(2):
        carried = desk.draw(entry, "scores", ["blank_out"], None, Work()).carried
        assert "No single token carries the answer." in carried
        assert carried.endswith("change its log-odds: “the key” +2.50 (its strongest word alone +0.25).")
    assert [target.outcome for target in looked] == ["plural"]
    assert not entry.needs_model(["blank_out"], "token")


@pytest.mark.parametrize(
    ("question", "status", "sentence"),
    [
        ({"target": "dual"}, 400, "There is no outcome 'dual' here: choose singular, plural, or 'sum'."),
        ({"against": "dual"}, 400, "There is no outcome 'dual' here"),
        ({"against": "singular"}, 400, "The answer explained is 'singular' itself"),
        ({"target": "sum", "against": "plural"}, 400, "against= is for one outcome"),
        ({"target": ""}, 422, "target: "),
        ({"target": 1}, 422, "target: "),
        ({"against": "x" * 201}, 422, "against: "),
    ],
    ids=str,
)
def test_a_question_that_has_no_answer_is_refused_in_one_sentence(client, question, status, sentence):
    answer = read(client, **question)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert answer.json()["error"].startswith(sentence)


def test_a_level_that_there_is_not_is_refused(client):
    text = read(client).json()["id"]
    answer = client.post("/api/views", json={"text": text, "view": "scores", "by": "letter"})
    assert (answer.status_code, answer.json()["error"]) == (
        422,
        "by: Input should be 'token', 'word' or 'sentence'.",
    )


def test_a_long_text_is_refused_a_wrong_outcome_at_once(desk, monkeypatch):
    monkeypatch.setattr("attnscope.app.desk.RICH_TOKENS", 3)
    with pytest.raises(attnscope.BadInput, match="There is no outcome 'dual' here"):
        desk.read("demo", TEXT, None, Work(), target="dual")
    assert desk.read("demo", TEXT, None, Work()).rich is None


@pytest.mark.parametrize("by", ["word", "sentence"])
def test_the_python_of_a_question_makes_the_same_page(client, by, tmp_path, monkeypatch):
    view = scores_of(client, by, target="plural", against="singular")
    code = client.post(f"/api/views/{view['id']}/code", json={"state": {}}).json()["python"]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "copied.py", "exec"), {})  # noqa: S102 - the code is what is tested
    page = client.post(f"/api/views/{view['id']}/page", json={"state": {}}).text
    written = (tmp_path / "scores.html").read_bytes().decode("utf-8")
    assert written.split("<main>")[1] == page.split("<main>")[1]


def test_a_record_without_its_model_is_scored_by_word_and_offers_no_outcomes(client, demo, tmp_path):
    path = demo.record(TEXT, gradients=True, target="plural").save(tmp_path / "r.safetensors")
    told = client.post("/api/files", content=path.read_bytes()).json()
    assert (told["target"], told["against"], told["outcomes"]) == (None, None, [])
    asked = {"text": told["id"], "view": "scores", "methods": ["gradient"], "by": "word"}
    view = json.loads(client.post("/api/views", json=asked).text.splitlines()[-1])["view"]
    expected = attnscope.attribute(demo.record(TEXT, gradients=True, target="plural"), "gradient").words()
    assert torch.allclose(rows_of(client, view)["gradient"], expected.scores.double(), atol=1e-6)
    assert view["carried"].startswith("Explained: why 'plural'")


def test_a_text_that_is_too_long_can_be_cut(client, demo):
    longest = demo.reader.longest
    text = "the key to " * longest
    refused = read(client, text)
    assert refused.status_code == 400
    assert refused.json()["too_long"] is True
    assert f"reads at most {longest}" in refused.json()["error"]
    assert "truncate" not in refused.json()["error"]
    answer = read(client, text, truncate=True).json()
    assert answer["tokens"] == longest
    assert answer["sentences"][0].startswith(f"Only the first {longest} tokens were read")
    made = client.post("/api/views", json={"text": answer["id"], "view": "head"}).text.splitlines()[-1]
    code = client.post(f"/api/views/{json.loads(made)['view']['id']}/code", json={"state": {}}).json()["python"]
    assert ", truncate=True)" in code
    assert read(client).json()["sentences"][0].startswith("The answer is read at")
