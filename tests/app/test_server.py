"""The service: from a text to its views, what can be had of them, what is opened, and what is refused."""

import base64
import json
import sys

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

import attnscope
from attnscope.app import Desk, server
from attnscope.app.server import build
from attnscope.app.turns import Work
from attnscope.views.weights import inflate

from .conftest import client_of

TEXT = "the key to the cabinets"


@pytest.fixture(scope="module")
def client(demo):
    """One service for all tests that leave it as it was: to build it takes longer than to ask it."""
    desk = Desk({"demo": demo}, budget=50_000_000)
    with client_of(desk) as client:
        yield client
    desk.close()


def read(client, text=TEXT, **more):
    answer = client.post("/api/texts", json={"model": "demo", "text": text, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def lines_of(client, text, view, **more):
    answer = client.post("/api/views", json={"text": text, "view": view, **more})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def view_of(client, view, text=TEXT, **more):
    return lines_of(client, read(client, text)["id"], view, **more)[-1]["view"]


# ---- reading and looking


def test_start_tells_models_methods_views_and_limits(client):
    told = client.get("/api/start").json()
    (model,) = told["models"]
    assert (model["name"], model["task"], model["size"], model["longest"]) == (
        "demo",
        "classifier",
        "6 layers × 8 heads",
        64,
    )
    assert all(example["text"] and example["why"] for example in model["examples"])
    needs = {method["name"]: method["needs"] for method in told["methods"]}
    assert (needs["raw"], needs["gradient"], needs["blank_out"]) == ("weights", "gradients", "model")
    assert [view["name"] for view in told["views"]] == [
        "scores",
        "head",
        "model",
        "flow",
        "tracing",
        "neuron",
        "answer",
    ]
    limits = {"characters": 20_000, "context": 120_000, "documents": 50, "upload_bytes": 1_000_000}
    assert told["limits"] == limits


def test_a_text_is_answered_as_the_model_answers_it(client, demo):
    told = read(client)
    record = demo.record(TEXT)
    assert [(one["label"], pytest.approx(one["probability"])) for one in told["prediction"]] == list(record.prediction)
    assert told["tokens"] == len(record.tokens)
    assert "[CLS]" in told["sentences"][0]


def test_a_pair_is_read_as_a_pair(client, demo):
    told = read(client, "the key", second="the doors")
    assert told["tokens"] == len(demo.record(("the key", "the doors")).tokens)


@pytest.mark.parametrize("name", ["scores", "head", "model", "flow", "tracing", "neuron"])
def test_a_view_is_the_one_that_python_makes(client, demo, name):
    told = view_of(client, name)
    record = demo.record(TEXT, gradients=True, values=True)
    if name == "scores":
        explained = attnscope.explain(demo, TEXT, by="token")
        made = attnscope.views.scores(explained.comparison.reference_first, record=explained.record)
    else:
        made = attnscope.views.VIEWS[name](demo.record(TEXT, queries_and_keys=True) if name == "neuron" else record)
    assert told["name"] == name
    assert json.dumps(told["values"]["payload"], sort_keys=True) == json.dumps(dict(made.payload), sort_keys=True)
    assert set(told["blobs"]) == set(made.blobs)
    for blob in told["blobs"]:
        sent = client.get(f"/api/views/{told['id']}/blobs/{blob}")
        assert sent.headers["content-type"] == "application/octet-stream"
        assert sent.content == made.blobs[blob]


def test_the_bytes_of_a_layer_are_its_weights(client, demo):
    told = view_of(client, "head")
    weights = demo.record(TEXT).weights
    sent = client.get(f"/api/views/{told['id']}/blobs/layer3").content
    found = np.frombuffer(inflate(sent), "<f2").reshape(weights.shape[1:])
    assert torch.allclose(torch.from_numpy(found.astype(np.float32)), weights[3], atol=1e-3)


def test_methods_are_those_that_are_asked_for_and_say_what_they_lack(client):
    told = view_of(client, "scores", methods=["rollout", "blank_out"])
    # what the others are held against comes first
    assert [method["name"] for method in told["values"]["payload"]["methods"]] == ["blank_out", "rollout"]
    assert told["carried"].startswith("By blank-out these tokens carried it most: “key”")
    refused = client.post("/api/views", json={"text": read(client)["id"], "view": "scores", "methods": ["magic"]})
    assert (refused.status_code, refused.json()["error"][:28]) == (400, "There is no method 'magic': ")


def test_a_long_flow_tells_how_far_it_is_and_the_source_can_be_chosen(client, monkeypatch):
    monkeypatch.setattr(sys.modules["attnscope.attribution.flow_graph"], "PART_WORK", 1)
    monkeypatch.setattr(server, "STEP", 0.001)
    text = " ".join(["the key to the cabinets"] * 11)
    lines = lines_of(client, read(client, text)["id"], "flow", queries=[7])
    assert lines[-1]["view"]["values"]["payload"]["computed"]["sources"] == [7]
    told = [line["progress"] for line in lines[:-1]]
    assert any(one["doing"] == "drawing flow" and 0 < one["done"] < one["of"] == 57 for one in told), told


def test_what_was_read_lately_is_not_read_again(client, demo, monkeypatch):
    first = read(client)
    monkeypatch.setattr(type(demo), "record", None)
    assert read(client) == first


def test_what_is_not_kept_any_more_is_said(own_client, desk):
    told = view_of(own_client, "head")
    desk.shelf.budget = 20_000
    read(own_client, "the doors")
    answer = own_client.get(f"/api/views/{told['id']}/blobs/layer0")
    assert (answer.status_code, answer.json()) == (404, {"error": "This text is not kept any more: ask for it again."})


def test_a_text_beyond_the_memory_is_refused_before_it_is_run(own_client, desk):
    desk.shelf.budget = 1000
    answer = own_client.post("/api/texts", json={"model": "demo", "text": TEXT})
    assert answer.status_code == 400
    assert "more than the 0 MB that this server keeps" in answer.json()["error"]


def test_a_busy_model_says_so(own_client, desk):
    desk.model_turns["demo"]._asked.update(Work() for _ in range(9))
    answer = own_client.post("/api/texts", json={"model": "demo", "text": TEXT})
    assert (answer.status_code, answer.json()) == (
        503,
        {"error": "demo is busy with 9 requests: try again in a moment."},
    )
    assert answer.headers["retry-after"] == "2"


# ---- what can be had of a view


def test_the_page_and_the_figure_are_of_what_is_selected(client):
    told = view_of(client, "head")
    state = {"layer": 4, "heads": [2], "words": True}
    page = client.post(f"/api/views/{told['id']}/page", json={"state": state})
    assert page.headers["content-disposition"] == 'attachment; filename="head-the-key-to-the-cabinets-demo.html"'
    assert '"layer":4' in page.text
    figures = {kind: client.post(f"/api/views/{told['id']}/figure", json={"format": kind, "state": state}).content
               for kind in ("svg", "pdf", "png")}  # fmt: skip
    assert [figures["svg"][:5], figures["pdf"][:5], figures["png"][1:4]] == [b"<?xml", b"%PDF-", b"PNG"]
    other = client.post(f"/api/views/{told['id']}/figure", json={"format": "svg", "state": {"layer": 0}}).content
    assert other != figures["svg"]


@pytest.mark.parametrize(
    "state", [{"layer": 99}, {"layer": "x"}, {"heads": "x"}, {"queries": [10**9]}, {"words": None}]
)
def test_a_figure_of_nonsense_is_refused_in_a_sentence_or_drawn_without_it(client, state):
    told = view_of(client, "head")
    answer = client.post(f"/api/views/{told['id']}/figure", json={"format": "svg", "state": state})
    assert answer.status_code in (200, 400)
    assert answer.status_code == 200 or answer.json()["error"].endswith(".")


@pytest.mark.parametrize("name", ["scores", "head", "model", "flow", "tracing", "neuron"])
def test_the_python_makes_the_same_page(client, name, tmp_path, monkeypatch):
    told = view_of(client, name)
    chosen = {key: value for key, value in told["values"].items() if key not in {"payload", "kept"}}
    state = {**chosen, "special": False}
    code = client.post(f"/api/views/{told['id']}/code", json={"state": state}).json()["python"]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "copied.py", "exec"), {})  # noqa: S102 - the code is what is tested
    page = client.post(f"/api/views/{told['id']}/page", json={"state": state}).text
    written = (tmp_path / f"{name}.html").read_bytes().decode("utf-8")
    assert written.split("<main>")[1] == page.split("<main>")[1]


# ---- what is opened


def test_a_saved_record_is_opened(client, demo, tmp_path):
    path = demo.record(TEXT).save(tmp_path / "r.safetensors")
    told = client.post("/api/files", content=path.read_bytes()).json()
    assert (told["model"], told["tokens"]) == (None, 7)
    assert {view["name"]: view["why_not"] for view in told["views"]}["neuron"].startswith(
        "This record was saved without"
    )
    made = lines_of(client, told["id"], "scores")[-1]["view"]
    assert [method["name"] for method in made["values"]["payload"]["methods"]][:2] == ["raw", "rollout"]
    code = client.post(f"/api/views/{made['id']}/code", json={"state": {}}).json()["python"]
    assert "AttentionRecord.load" in code


@pytest.mark.parametrize("content", [b"", b"x", b"\x00" * 100, b"\xff" * 1000])
def test_a_file_that_is_no_record_is_refused_in_a_sentence(client, content):
    answer = client.post("/api/files", content=content)
    assert answer.status_code == 400
    assert "/" not in answer.json()["error"]


def folder_of(path):
    files = [file for file in sorted(path.rglob("*")) if file.suffix in {".json", ".csv", ".parquet"}]
    return {
        "files": [
            {"name": f"{path.name}/{file.relative_to(path)}", "base64": base64.b64encode(file.read_bytes()).decode()}
            for file in files
        ]
    }


def test_a_saved_survey_is_opened(client, demo, tmp_path):
    from attnscope.syntax import agreement_sentences, sentences_of

    sentences = [next(agreement_sentences(seed)) for seed in range(8)]
    attnscope.survey(demo, sentences_of(sentences), statistics=["distance", "entropy"]).save(tmp_path / "survey")
    told = client.post("/api/folders", json=folder_of(tmp_path / "survey")).json()
    assert told["kind"] == "survey"
    assert "8 sentences" in told["summary"]
    assert lines_of(client, told["id"], "survey")[-1]["view"]["name"] == "survey"


def test_a_trust_table_stands_beside_the_methods_from_then_on(own_client, demo, tmp_path):
    attnscope.trust(demo, [TEXT, "the keys to the cabinet"], ["raw", "rollout"]).save(tmp_path / "trust")
    assert view_of(own_client, "scores")["values"]["payload"]["methods"][0]["trust"] is None
    told = own_client.post("/api/folders", json=folder_of(tmp_path / "trust")).json()
    assert told["kind"] == "trust"
    assert told["sentence"]
    methods = {one["name"]: one["trust"] for one in view_of(own_client, "scores")["values"]["payload"]["methods"]}
    assert methods["raw"]["low"] <= methods["raw"]["value"] <= methods["raw"]["high"]


def test_a_folder_cannot_lead_out_of_its_place(client, tmp_path):
    model = {"name": "tiny", "fingerprint": "0"}
    card = {"model": model, "corpus": "demo", "statistics": ["../../secret"], "null": "first", "layers": 1, "heads": 1}
    card |= {"sentences": 1, "tokens": 1, "skipped": {}}
    files = [
        {"name": "survey.json", "base64": base64.b64encode(json.dumps(card).encode()).decode()},
        {"name": "../../secret.parquet", "base64": ""},
        {"name": "/etc/tables/secret.parquet", "base64": ""},
    ]
    answer = client.post("/api/folders", json={"files": files})
    assert answer.status_code == 400
    assert "the card of a survey, is damaged" in answer.json()["error"]
    assert "statistics[0] must be a name that fits" in answer.json()["error"]
    assert str(tmp_path.parent) not in answer.json()["error"]


# ---- what is refused


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/texts", {"model": "demo", "text": ""}),
        ("/api/texts", {"model": "demo", "text": "x" * 20_001}),
        ("/api/texts", {"model": "demo"}),
        ("/api/texts", {"model": "demo", "text": "x", "trust_remote_code": True}),
        ("/api/views", {"text": "t", "view": "head", "queries": [-1]}),
        ("/api/views/x/figure", {"format": "exe"}),
    ],
)
def test_a_malformed_request_gets_one_sentence(client, path, body):
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    assert list(answer.json()) == ["error"]


def post(client, path, body):
    return client.post(path, content=body, headers={"content-type": "application/json"})


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400, "1" * 5000, '{"a": 1}', "[[[1]]]"]
)
@pytest.mark.parametrize("made", ["page", "figure", "code"])
def test_a_state_that_no_view_has_is_refused(client, made, value):
    name = view_of(client, "head")["id"]
    kind = '"format": "svg", ' * (made == "figure")
    answer = post(client, f"/api/views/{name}/{made}", f'{{{kind}"state": {{"threshold": {value}}}}}')
    assert answer.status_code in (400, 422)
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"\\ud800": 1}', b'{"' + b"x" * 10_000 + b'": 1}', b"NaN"]
)
def test_what_is_no_request_gets_one_short_sentence(client, body):
    for path in ("/api/texts", "/api/views", "/api/folders"):
        answer = post(client, path, body)
        assert answer.status_code in (400, 422), path
        assert len(answer.json()["error"]) < 400


def test_what_a_model_cannot_read_is_refused_in_its_words(client, demo, monkeypatch):
    def refuse(*_, **__):
        raise attnscope.BadInput("The tokenizer has more words than the model.")

    monkeypatch.setattr(type(demo), "estimate", refuse)
    answer = client.post("/api/texts", json={"model": "demo", "text": "the lakes near the door"})
    assert (answer.status_code, answer.json()) == (400, {"error": "The tokenizer has more words than the model."})


def test_a_mistake_of_ours_is_told_as_such_and_written_down(desk, monkeypatch, caplog):
    def fail(*_, **__):
        raise ZeroDivisionError("a secret")

    app = build(desk, upload_bytes=1_000_000)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        text = read(client)["id"]
        monkeypatch.setattr(desk, "draw", fail)
        (line,) = lines_of(client, text, "head")
        assert line == {"error": server.MISTAKE}
        assert "ZeroDivisionError" in caplog.text
        monkeypatch.setattr(desk, "read", fail)
        answer = client.post("/api/texts", json={"model": "demo", "text": "x"})
        assert (answer.status_code, answer.json()) == (500, {"error": server.MISTAKE})


def test_half_a_character_is_refused(client):
    answer = client.post(
        "/api/texts", content=b'{"model": "demo", "text": "a \\ud800"}', headers={"content-type": "application/json"}
    )
    assert (answer.status_code, answer.json()["error"]) == (422, "text: it holds half a character.")


def test_only_the_models_given_at_start_are_there(client):
    for name in ("other", "../demo", "/etc/passwd"):
        answer = client.post("/api/texts", json={"model": name, "text": "x"})
        assert answer.json()["error"] == f"This server has no model {name!r}: it has demo."


@pytest.mark.parametrize(
    "path", ["/client/../server.py", "/views/..%2fpage.py", "/client/server.py", "/nothing", "/docs"]
)
def test_no_path_reaches_the_file_system(client, path):
    answer = client.get(path)
    assert (answer.status_code, list(answer.json())) == (404, ["error"])


def test_the_page_and_its_parts_are_served_with_their_kinds(client):
    kinds = {
        "/": "text/html",
        "/style.css": "text/css",
        "/client/app.js": "text/javascript",
        "/views/head.js": "text/javascript",
    }
    for path, kind in kinds.items():
        assert client.get(path).headers["content-type"].startswith(kind)
    assert "<script>" not in client.get("/").text
    assert "style=" not in client.get("/").text


def test_health_tells_what_there_is_to_do(client):
    told = client.get("/health").json()
    assert (told["status"], told["models"], told["working"], told["waiting"]) == ("ok", ["demo"], 0, 0)


def test_the_document_of_the_interface_knows_every_answer(desk):
    document = build(desk, upload_bytes=1).openapi()
    assert set(document["paths"]) == {
        "/health", "/api/start", "/api/texts", "/api/views", "/api/views/{name}/blobs/{blob}", "/api/views/{name}/page",
        "/api/views/{name}/figure", "/api/views/{name}/code", "/api/files", "/api/folders", "/api/answers",
    }  # fmt: skip
    for ways in document["paths"].values():
        for way in ways.values():
            assert {"200", "400", "404", "422", "503"} <= way["responses"].keys()
