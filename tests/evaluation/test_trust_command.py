"""`attnscope trust`: what it prints, what it keeps, and how it refuses."""

import json

import pytest
from typer.testing import CliRunner

from attnscope.cli import app

RUNNER = CliRunner()
ASKED = ["trust", "demo", "demo", "--method", "raw", "--limit", "3"]


def test_it_prints_the_table_and_the_verdict_and_keeps_them(tmp_path):
    result = RUNNER.invoke(app, [*ASKED, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "demo on 3 texts" in result.stdout
    assert "need not be an explanation" in result.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["trust.csv", "trust.json"]
    again = RUNNER.invoke(app, [*ASKED, "--out", str(tmp_path / "out")])
    assert again.exit_code == 2
    assert "already holds a finished measurement" in again.stderr
    resumed = RUNNER.invoke(app, [*ASKED, "--out", str(tmp_path / "out"), "--resume", "--json"])
    assert json.loads(resumed.stdout)["card"]["texts"] == 3


def test_as_json_it_prints_json_alone(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("the key to the cabinets\nthe keys\n")
    result = RUNNER.invoke(app, ["trust", "demo", str(path), "--method", "rollout", "--json"])
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["card"]["texts"] == 2
    assert {row["method"] for row in told["table"]} >= {"rollout", "random", "position", "frequency"}
    assert told["verdict"][-1].startswith("Attention need not be an explanation")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["demo", "no/such/file.txt"], "There is no file"),
        (["demo", "demo", "--method", "nope", "--limit", "2"], "There is no method 'nope'"),
        (["demo", "demo", "--limit", "0"], "limit must be at least 1"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, sentence, tmp_path):
    result = RUNNER.invoke(app, ["trust", *arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
