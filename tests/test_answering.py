"""Answers from Python and from the command line: documents of every form, finished answers, bad input."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import attnscope
from attnscope import BadInput
from attnscope.answering import Finished, answers_of, documents_of, finished_answers
from attnscope.cli import app

RUNNER = CliRunner()
QUESTION, ANSWER = "Which river?", "The river is called Ald."


@pytest.fixture
def folder(tmp_path):
    """A folder of documents, with a file that is none."""
    place = tmp_path / "documents"
    (place / "more").mkdir(parents=True)
    (place / "a.txt").write_text("Rome fell. It was late.")
    (place / "more" / "b.md").write_text("The river is called Ald.")
    (place / "c.png").write_bytes(b"\x89PNG")
    return place


@pytest.fixture(scope="module")
def saved(chat_model, tmp_path_factory):
    """The tiny chat model as a folder."""
    place = tmp_path_factory.mktemp("chat")
    chat_model.model.save_pretrained(place)
    chat_model.tokenizer.save_pretrained(place)
    return place


def test_documents_of_a_folder_are_called_by_their_files(chat_model, folder):
    assert documents_of(folder) == [("a.txt", "Rome fell. It was late."), ("more/b.md", "The river is called Ald.")]
    answer = attnscope.answer(chat_model, QUESTION, str(folder), answer=ANSWER)
    drops = answer.drops(by="document")
    assert list(drops["segment"])[1:] == ["a.txt", "more/b.md", "question"]
    listed = attnscope.answer(chat_model, QUESTION, documents_of(folder), answer=ANSWER)
    assert listed.text == answer.text == ANSWER
    assert listed.record.tokens == answer.record.tokens


def test_another_models_answer_is_said_to_be_one(chat_model):
    own, others = (attnscope.answer(chat_model, QUESTION, **{name: ANSWER}) for name in ("answer", "text"))
    assert own.notes == ()
    assert "how likely" in others.notes[0]
    np.testing.assert_array_equal(own.log_probabilities, others.log_probabilities)
    assert others.scores().attrs["warnings"] == [*others.notes]


def test_long_answers_keep_vectors_and_say_the_same(chat_model, monkeypatch):
    short = attnscope.answer(chat_model, QUESTION, ["Rome fell."], answer=ANSWER)
    assert not isinstance(short.record, attnscope.VectorRecord)
    monkeypatch.setattr("attnscope.capture.request.SMALL", 0)
    long = attnscope.answer(chat_model, QUESTION, ["Rome fell."], answer=ANSWER)
    assert isinstance(long.record, attnscope.VectorRecord)
    for method in ("raw", "rollout", "layerwise_tracing", "value_weighted", "effective"):
        np.testing.assert_allclose(long.scores(method), short.scores(method), atol=1e-5, rtol=1e-4)


def test_finished_answers_are_read_line_by_line(chat_model, tmp_path):
    path = tmp_path / "answers.jsonl"
    rows = [
        {"id": "first", "question": QUESTION, "documents": [["a", "Rome fell."], ["b", "Late."]], "answer": ANSWER},
        {"messages": [{"role": "user", "content": "Rome?"}], "text": "It was late."},
    ]  # fmt: skip
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    found = list(answers_of(chat_model, list(finished_answers(path))))
    assert [one.text for one in found] == [ANSWER, "It was late."]
    assert [len(one.notes) for one in found] == [0, 1]
    path.write_text(json.dumps({**rows[0], "answer": " "}))
    with pytest.raises(BadInput, match="Answer first: answer= is a text"):
        list(answers_of(chat_model, list(finished_answers(path))))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "holds no answers"),
        ("{", "Line 1 of answers.jsonl is not JSON"),
        ("[1]", 'is an object with "question"'),
        ('{"answer": "a"}', 'is an object with "question"'),
        ('{"question": "a", "colour": "red"}', "has a field 'colour'"),
        ('{"question": "a", "documents": "folder"}', "documents is a list"),
        ("[" * 100_000, "not JSON"),
        (b"\xff", "no text in UTF-8"),
    ],
)
def test_files_of_answers_that_are_none(tmp_path, content, sentence):
    path = tmp_path / "answers.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInput, match=sentence) as caught:
        list(finished_answers(path))
    assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match="no file"):
        list(finished_answers(tmp_path / "none.jsonl"))


def test_documents_that_are_none(chat_model, tmp_path, folder):
    with pytest.raises(BadInput, match="there is no folder"):
        attnscope.answer(chat_model, QUESTION, str(tmp_path / "none"))
    with pytest.raises(BadInput, match="holds no documents"):
        documents_of(_empty(tmp_path))
    (folder / "d.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="no text in UTF-8"):
        documents_of(folder)
    (folder / "d.txt").write_text(" \n")
    with pytest.raises(BadInput, match=r"Document 1 \('d.txt'\) is empty"):
        attnscope.answer(chat_model, QUESTION, folder)
    with pytest.raises(BadInput, match="Nothing is asked"):
        attnscope.answer(chat_model)
    with pytest.raises(BadInput, match="one of them"):
        attnscope.answer(chat_model, QUESTION, answer="a", text="b")


def _empty(tmp_path):
    place = tmp_path / "empty"
    place.mkdir()
    return place


# ---- the command


def test_the_command_prints_an_answer_and_what_it_came_from(saved, folder):
    asked = ["answer", str(saved), "--documents", str(folder), "--question", QUESTION, "--answer", ANSWER]
    shown = RUNNER.invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[0] == ANSWER
    assert "rollout, of what goes to the conversation:" in shown.stdout
    assert "falls by:" in shown.stdout
    told = json.loads(RUNNER.invoke(app, [*asked, "--json", "--by", "document", "--method", "raw"]).stdout)
    answer = attnscope.answer(str(saved), QUESTION, folder, answer=ANSWER)
    np.testing.assert_allclose(told["scores"]["raw"]["rows"], answer.scores("raw", by="document"), atol=1e-5)
    assert told["scores"]["raw"]["kinds"].count("document") == 2
    assert [row["segment"] for row in told["drops"]] == list(answer.drops()["segment"])
    assert told["answer"] == ANSWER
    assert len(told["tokens"]) == len(told["probabilities"]) == len(answer.tokens)


def test_the_command_generates_and_reads_finished_answers(saved, tmp_path):
    told = json.loads(
        RUNNER.invoke(
            app, ["answer", str(saved), "--question", QUESTION, "--max-new-tokens", "3", "--seed", "1", "--json"]
        ).stdout
    )
    assert 1 <= len(told["tokens"]) <= 3
    assert told["drops"] == []
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(json.dumps({"question": QUESTION, "answer": text}) for text in (ANSWER, "It was late.")))
    several = json.loads(RUNNER.invoke(app, ["answer", str(saved), "--answers", str(path), "--json"]).stdout)
    assert [one["answer"] for one in several] == [ANSWER, "It was late."]
    assert [one["id"] for one in several] == ["1", "2"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "Nothing is asked"),
        (["--question", "a", "--answers", "x.jsonl"], "leave the options of a single answer out"),
        (["--question", "a", "--documents", "nowhere"], "no folder"),
        (["--answers", "nowhere.jsonl"], "no file"),
        (["--question", "a", "--answer", "It was late.", "--by", "page"], "no level 'page'"),
        (["--question", "a", "--answer", "It was late.", "--methods", "guess"], "no method 'guess'"),
        (["--question", "a", "--answer", "It was late.", "--span", "Rome"], "does not stand in the answer"),
        (["--question", "a", "--answer", "It was late.", "--seed", "3"], "leave seed= out|leave do_sample= out"),
    ],
)
def test_what_the_command_cannot_do_gets_one_sentence(saved, options, sentence):
    result = RUNNER.invoke(app, ["answer", str(saved), *options])
    assert result.exit_code == 2
    assert re.search(sentence, result.stderr)
    assert result.stderr.count("\n") == 1


def test_the_command_writes_a_page_and_a_figure(saved, folder, tmp_path):
    asked = ["answer", str(saved), "--documents", str(folder), "--question", QUESTION, "--answer", ANSWER]
    done = RUNNER.invoke(app, [*asked, "-o", str(tmp_path / "answer.html")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "answer.html").read_text(encoding="utf-8")
    assert "data-view=answer" in page
    assert "more/b.md" in page
    assert RUNNER.invoke(app, [*asked, "--no-drops", "-o", str(tmp_path / "answer.svg")]).exit_code == 0
    assert (tmp_path / "answer.svg").read_bytes().startswith(b"<?xml")
    refused = RUNNER.invoke(app, [*asked, "-o", str(tmp_path / "answer.txt")])
    assert refused.exit_code == 2
    assert "answer.txt ends in .txt" in " ".join(refused.stderr.split())
    lines = tmp_path / "finished.jsonl"
    lines.write_text(2 * (json.dumps({"question": QUESTION, "answer": ANSWER}) + "\n"))
    both = RUNNER.invoke(app, ["answer", str(saved), "--answers", str(lines), "-o", str(tmp_path / "both.html")])
    assert both.exit_code == 0, both.output
    assert (tmp_path / "both.html").read_text(encoding="utf-8").count("<section class=attnscope data-view=answer>") == 2


def test_a_single_answer_is_not_called_by_a_number(chat_model):
    with pytest.raises(BadInput, match=r"^documents= is a folder"):
        list(answers_of(chat_model, [Finished({"question": QUESTION, "documents": "nowhere"}, "")]))
