"""What `attnscope train` has made opens like any other model: by load, by explain and in the app."""

import json
from pathlib import Path
from random import Random

import pytest
import torch
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import attnscope
from attnscope.app import Desk
from attnscope.app.server import build
from attnscope.cli import app
from attnscope.errors import BadInput
from attnscope.lab.data import AgreementExample
from attnscope.lab.data.examples_file import write_examples
from attnscope.lab.models import SAVED, AgreementTransformer, SentimentTransformer

TEXTS = {"agreement": "the old key", "sst5": "a good film"}
CLASSES = {"agreement": AgreementTransformer, "sst5": SentimentTransformer}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of each task, trained by the command for two steps on a few sentences."""
    place, dice = tmp_path_factory.mktemp("trained"), Random(0)
    nouns = {"key": "singular", "keys": "plural"}
    examples = [
        AgreementExample(("the", f"w{number}", noun), nouns[noun], 0, 2, "is")
        for number in range(100)
        for noun in nouns
    ]
    write_examples(place / "examples.jsonl", examples)
    for split in ("train", "dev", "test"):
        labels = [dice.randrange(5) for _ in range(20)]
        trees = [f"({label} (2 a) ({label} {['bad', 'poor', 'plain', 'good', 'great'][label]}))" for label in labels]
        (place / f"{split}.txt").write_text("\n".join(trees) + "\n")
    given = {"agreement": [str(place / "examples.jsonl")], "sst5": [str(place), "--vectors", "scratch"]}
    for task, data in given.items():
        command = ["train", task, "--steps", "2", "--out", str(place / task), "--data", *data]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    return {task: place / task for task in given}


@pytest.mark.parametrize("task", TEXTS)
def test_load_gives_the_model_that_was_trained(folders, task):
    record = attnscope.load(folders[task]).record(TEXTS[task], gradients=True)
    expected = CLASSES[task].load(folders[task]).instrumented().record(TEXTS[task], gradients=True)
    assert record.tokens == expected.tokens
    assert torch.equal(record.weights, expected.weights)
    assert torch.equal(record.embedding_gradients, expected.embedding_gradients)
    assert record.prediction == expected.prediction


@pytest.mark.parametrize("task", TEXTS)
def test_explain_explains_it(folders, task):
    done = CliRunner().invoke(app, ["explain", str(folders[task]), TEXTS[task], "--json"])
    assert done.exit_code == 0, done.output
    methods = set(json.loads(done.stdout)["scores"])
    assert {"raw", "rollout", "gradient", "blank_out"} <= methods


def test_the_app_opens_them_beside_a_hugging_face_model(folders):
    loaded = {task: attnscope.load(folder) for task, folder in folders.items()}
    desk = Desk({**loaded, "demo": attnscope.load("demo")}, budget=50_000_000)
    with TestClient(build(desk, upload_bytes=1_000_000), base_url="http://127.0.0.1") as client:
        described = {model["name"]: model for model in client.get("/api/start").json()["models"]}
        assert set(described) == {"agreement", "sst5", "demo"}
        for task, text in TEXTS.items():
            assert (described[task]["task"], described[task]["pairs"]) == ("classifier", False)
            answer = client.post("/api/texts", json={"model": task, "text": text})
            assert answer.status_code == 200, answer.text
            found = [(one["label"], pytest.approx(one["probability"])) for one in answer.json()["prediction"]]
            assert found == list(loaded[task].record(text).prediction[: len(found)])
            for view in ("scores", "head"):
                drawn = client.post("/api/views", json={"text": answer.json()["id"], "view": view})
                assert drawn.status_code == 200, drawn.text
                assert "view" in json.loads(drawn.text.splitlines()[-1]), drawn.text
            refused = client.post("/api/views", json={"text": answer.json()["id"], "view": "neuron"})
            assert "cannot be read" in refused.text
    desk.close()


def test_a_survey_of_one_is_refused_in_a_sentence(folders, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("The old key is here.\n")
    with pytest.raises(BadInput, match=r"is a torch module .* this is for Hugging Face models"):
        attnscope.survey(str(folders["agreement"]), str(corpus), statistics=["entropy"])


def test_a_folder_names_a_class_and_nothing_else(folders, tmp_path):
    """Whatever a file says, nothing but the lab's own classes is looked for."""
    for name in ("BagOfWords", "os:system", "attnscope.lab.models:AgreementTransformer", ["list"]):
        (tmp_path / "lab_model.json").write_text(json.dumps({"model": name, "settings": {}}))
        with pytest.raises(BadInput, match="which is none of AgreementTransformer"):
            attnscope.load(tmp_path)
    for damaged in ("no json", "[]", '{"model": "AgreementTransformer"}'):
        (tmp_path / "lab_model.json").write_text(damaged)
        with pytest.raises(BadInput, match="is damaged"):
            attnscope.load(tmp_path)
    assert all(name == kind.__name__ for name, kind in SAVED.items())
