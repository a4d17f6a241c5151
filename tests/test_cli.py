"""The command line: what it prints, its exit codes, and that an error leaves nothing behind."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from attnscope import __version__
from attnscope.cli import app

RUNNER = CliRunner()


def one_sentence(text):
    return text.startswith("attnscope: ") and text.count("\n") == 1 and "Traceback" not in text


def test_help_names_every_command_and_imports_no_torch():
    code = "import sys\nfrom attnscope.cli import main\ntry: main()\nfinally: print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("demo", "report", "train"))
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("command", ["demo", "report", "train", "survey", "reproduce"])
def test_every_command_shows_an_example(command):
    result = RUNNER.invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: attnscope {command}" in result.stdout


def test_help_tells_what_the_demo_writes_and_what_a_corpus_may_be():
    told = " ".join(RUNNER.invoke(app, ["demo", "--help"]).stdout.split())
    assert all(page in told for page in ("report.html", "survey.html"))
    told = RUNNER.invoke(app, ["survey", "--help"], terminal_width=400).stdout
    assert all(name in told for name in ("ud_ewt:dev", "NAME:CONFIGURATION:SPLIT", "#COLUMN"))


def test_version():
    result = RUNNER.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"attnscope {__version__}\n"


def test_demo_writes_its_report_and_nothing_but_its_words(tmp_path):
    command = [sys.executable, "-c", "from attnscope.cli import main; main()", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the key to the cabinets → singular" in done.stdout
    assert done.stderr == ""
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["report.html", "survey.html"]


def test_explain_prints_each_method_asked_for_or_json():
    asked = ["explain", "demo", "the key to the cabinets", "--methods", "rollout", "--method", "blank_out"]
    result = RUNNER.invoke(app, asked)
    assert result.exit_code == 0
    assert "singular" in result.stdout
    assert "rollout" in result.stdout
    told = json.loads(RUNNER.invoke(app, [*asked, "--json"]).stdout)
    assert set(told["scores"]) == {"rollout", "blank_out"}
    refused = RUNNER.invoke(app, ["explain", "demo", "the key", "--method", "guess"])
    assert refused.exit_code == 2
    assert "no method 'guess'" in refused.stderr


def test_an_unknown_benchmark_is_refused():
    refused = RUNNER.invoke(app, ["bench", "guess"])
    assert refused.exit_code == 2
    assert "choose flow, rollout, blank_out" in refused.stderr


def test_report_writes_one_page_for_all_texts(tmp_path):
    out = tmp_path / "pages" / "two.html"
    result = RUNNER.invoke(app, ["report", "demo", "the key", "the keys", "-o", str(out)])
    assert result.exit_code == 0
    assert result.stdout == f"Written: {out}\n"
    assert out.read_text(encoding="utf-8").count("<blockquote") == 2


def test_report_as_json(tmp_path):
    result = RUNNER.invoke(app, ["report", "demo", "the key", "-o", str(tmp_path / "page.html"), "--json"])
    assert json.loads(result.stdout)["texts"][0]["text"] == "the key"


@pytest.mark.parametrize("arguments", [["no/such-model-here", "a text"], ["demo", ""]])
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, tmp_path):
    result = RUNNER.invoke(app, ["report", *arguments, "-o", str(tmp_path / "page.html")])
    assert result.exit_code == 2
    assert one_sentence(result.stderr)
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_task_lists_the_known_ones(tmp_path):
    result = RUNNER.invoke(app, ["train", "nothing", "--out", str(tmp_path / "model")])
    assert result.exit_code == 2
    assert one_sentence(result.stderr)
    assert "demo" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_train_hands_over_what_was_asked(monkeypatch, tmp_path):
    from attnscope import lab

    asked = []

    def pretend(out, **options):
        asked.append((out, options))
        return out

    monkeypatch.setitem(lab.TASKS, "pretend", pretend)
    result = RUNNER.invoke(app, ["train", "pretend", "--out", str(tmp_path), "--seed", "3", "--resume"])
    assert result.exit_code == 0
    assert asked == [(tmp_path, {"seed": 3, "resume": True})]
    (tmp_path / "training_log.jsonl").write_text("")
    result = RUNNER.invoke(app, ["train", "pretend", "--out", str(tmp_path), "--seed", "4", "--resume"])
    assert "holds a finished training, which is left as it is" in result.output
    assert len(asked) == 1


def test_a_missing_argument_is_bad_input():
    assert RUNNER.invoke(app, ["report", "demo"]).exit_code == 2


def test_what_cannot_be_written_is_a_failure(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("mine")
    result = RUNNER.invoke(app, ["report", "demo", "the key", "-o", str(blocked / "page.html")])
    assert result.exit_code == 1
    assert one_sentence(result.stderr)
    assert blocked.read_text() == "mine"
