"""Questions about documents: what the server streams, keeps and refuses."""

import json

import pytest
from fastapi.testclient import TestClient

import attnscope
from attnscope import BadInput
from attnscope.app import Desk, Guard
from attnscope.app.asking import METHODS_OF_ANSWERS
from attnscope.app.requests import AnswerRequest
from attnscope.app.server import build
from attnscope.app.turns import Cancelled, Work
from attnscope.progress import told_to
from attnscope.views.sides import printable

DOCUMENTS = [
    {"title": "Rome", "text": "Rome fell. It was late."},
    {"title": "The Ald", "text": "The river is called Ald."},
]
ASKED = {"model": "chat", "question": "Which river?", "documents": DOCUMENTS, "tokens": 6}


@pytest.fixture(scope="module")
def talking(chat_model, base_model):
    desk = Desk({"chat": chat_model, "base": base_model, "demo": attnscope.load("demo")}, budget=50_000_000)
    service = build(desk, upload_bytes=1_000_000)
    with TestClient(Guard(service, upload_bytes=1_000_000), base_url="http://127.0.0.1") as client:
        client.desk = desk
        yield client


def lines(client, path, asked):
    response = client.post(path, json=asked)
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def answer_to(client, **more):
    return lines(client, "/api/answers", {**ASKED, **more})[-1]


def test_an_answer_is_that_of_the_library_and_its_view_has_its_scores(talking, chat_model):
    reply = answer_to(talking)["answer"]
    documents = [(document["title"], document["text"]) for document in DOCUMENTS]
    own = attnscope.answer(chat_model, question="Which river?", documents=documents, max_new_tokens=6)
    assert reply["text"] == own.text
    assert (reply["tokens"], reply["given"], reply["goes_on"]) == (len(own.tokens), False, True)
    assert reply["prompt_tokens"] == own.record.card["prompt_tokens"]
    asked = {"text": reply["id"], "view": "answer", "methods": ["rollout", "gradient_x_input"]}
    made = lines(talking, "/api/views", asked)[-1]["view"]
    payload = made["values"]["payload"]
    assert [part["name"] for part in payload["parts"] if part["kind"] == "document"] == ["Rome", "The Ald"]
    assert "".join(payload["tokens"]) == "\n".join(map(printable, own.text.split("\n")))
    assert [method["name"] for method in payload["methods"]] == ["rollout", "gradient_x_input"]
    assert not payload["drops"]
    assert made["blobs"] == ["scores0", "scores1"]
    measured = lines(talking, "/api/views", {**asked, "drops": "document"})[-1]["view"]
    assert measured["values"]["payload"]["drops"]
    assert measured["id"] != made["id"]
    code = talking.post(f"/api/views/{measured['id']}/code", json={"state": {"order": "reading"}}).json()["python"]
    assert "attnscope.answer(model, question='Which river?', documents=[('Rome', " in code
    assert "methods=['rollout', 'gradient_x_input'], drops=\"document\").selecting(order='reading')" in code
    compile(code, "copied", "exec")
    page = talking.post(f"/api/views/{measured['id']}/page", json={"state": {}})
    assert page.status_code == 200
    assert "data-view=answer" in page.text


def test_the_same_question_is_answered_once_and_another_seed_anew(talking):
    first = answer_to(talking, temperature=1.5, seed=1)["answer"]
    assert answer_to(talking, temperature=1.5, seed=1)["answer"]["id"] == first["id"]
    assert answer_to(talking, temperature=1.5, seed=2)["answer"]["id"] != first["id"]


def test_other_views_of_an_answer_are_made_of_its_record(talking):
    reply = answer_to(talking)["answer"]
    for view in reply["views"]:
        made = lines(talking, "/api/views", {"text": reply["id"], "view": view["name"]})[-1]
        assert made["view"]["name"] == view["name"]
    text = talking.post("/api/texts", json={"model": "demo", "text": "the key"}).json()
    assert "answer" not in {view["name"] for view in text["views"]}


def test_a_given_answer_says_whose_probabilities_these_are(talking):
    reply = answer_to(talking, answer="The Ald.")["answer"]
    assert (reply["text"], reply["given"]) == ("The Ald.", True)
    made = lines(talking, "/api/views", {"text": reply["id"], "view": "answer"})[-1]["view"]
    assert any("another model" in note for note in made["values"]["payload"]["notes"])
    assert talking.post(f"/api/views/{made['id']}/figure", json={"state": {}, "format": "pdf"}).content[:4] == b"%PDF"


def test_earlier_turns_are_read_and_a_base_model_reads_plain_text(talking):
    turns = [{"question": "Who fell?", "answer": "Rome fell."}]
    further = answer_to(talking, turns=turns)["answer"]
    assert further["prompt_tokens"] > answer_to(talking)["answer"]["prompt_tokens"]
    plain = answer_to(talking, model="base")["answer"]
    assert not plain["goes_on"]
    assert "no chat template" in plain["sentences"][0]
    assert "no chat template" in answer_to(talking, model="base", turns=turns)["error"]


def test_the_text_is_heard_while_it_is_written(talking):
    heard = []
    work = Work()
    with told_to(lambda *_: heard.append(work.said)):
        entry = talking.desk.answer(AnswerRequest(**ASKED, seed=7), work)
    assert len(heard) >= 2
    assert entry.answer.text.startswith(work.said[:-1])


def test_who_goes_away_ends_the_writing(talking):
    steps = []

    def watch(done, _whole):
        steps.append(done)
        if len(steps) == 3:
            raise Cancelled

    with pytest.raises(Cancelled), told_to(watch):
        talking.desk.answer(AnswerRequest(**{**ASKED, "tokens": 40}, seed=8), Work())
    assert len(steps) == 3


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"model": "nobody"}, 400, "This server has no model 'nobody'"),
        ({"question": ""}, 422, "question: Value should have at least 1 item"),
        ({"tokens": 0}, 422, "tokens: Input should be greater than or equal to 1"),
        ({"temperature": 3}, 422, "temperature: Input should be less than or equal to 2"),
        ({"documents": [{"text": ""}]}, 422, "documents.0.text: Value should have at least 1 item"),
        ({"documents": [{"text": "a" * 50_000}] * 3}, 422, "the documents have 150,000 characters"),
        ({"documents": [{"text": "a"}] * 51}, 422, "documents: List should have at most 50 items"),
        ({"colour": "red"}, 422, "colour: Extra inputs are not permitted"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(talking, asked, status, said):
    response = talking.post("/api/answers", json={**ASKED, **asked})
    assert response.status_code == status
    assert said in response.json()["error"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"model": "demo"}, "demo writes no text"),
        ({"question": " "}, "at least one word"),
        ({"documents": [{"text": " "}]}, "is empty: leave it out"),
        ({"documents": [{"text": "Rome fell. " * 500}]}, "the model reads at most"),
    ],
)
def test_what_the_model_cannot_answer_is_said_in_the_last_line(talking, asked, said):
    assert said in answer_to(talking, **asked)["error"]


def test_more_than_the_shelf_holds_is_refused_before_it_runs(chat_model):
    desk = Desk({"chat": chat_model}, budget=1000)
    with pytest.raises(BadInput, match="more than the 0 MB that this server keeps"):
        desk.answer(AnswerRequest(**ASKED), Work())


def test_a_text_that_was_not_asked_has_no_answer_view(talking):
    text = talking.post("/api/texts", json={"model": "demo", "text": "the key"}).json()["id"]
    assert "has no answer" in lines(talking, "/api/views", {"text": text, "view": "answer"})[-1]["error"]


def test_methods_and_limits_are_told(talking):
    start = talking.get("/api/start").json()
    assert {method["name"] for method in start["answer_methods"]} < set(METHODS_OF_ANSWERS)
    assert [model["name"] for model in start["models"] if model["writes"]] == ["chat", "base"]
    assert start["limits"]["context"] == 120_000
    assert talking.get("/chat").status_code == 200
