"""The command line: what it prints, its exit codes, and that an error leaves nothing behind."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from safetensors import SafetensorError
from typer.testing import CliRunner

from attnscope import __version__
from attnscope.capture.loading import SHIPPED
from attnscope.cli import app
from attnscope.lab import demo_model
from attnscope.terminal import STEERING

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
    # on a slow machine, a line a minute would come between
    code = "from attnscope import cli, progress; progress.SECONDS_BETWEEN_LINES = 1e6; cli.main()"
    command = [sys.executable, "-c", code, "demo"]
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


def test_a_dry_run_tells_the_memory_and_scores_nothing():
    asked = ["explain", "demo", "the key to the cabinets", "--dry-run"]
    result = RUNNER.invoke(app, asked)
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == [
        "record",
        "blank_out",
        "integrated_gradients",
    ]
    assert result.stdout.count("over the loaded model") == 3
    told = json.loads(RUNNER.invoke(app, [*asked, "--methods", "rollout", "--json"]).stdout)
    assert list(told) == ["record"]
    assert told["record"]["peak_bytes"] > told["record"]["record_bytes"] > 0


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


@pytest.mark.parametrize("argument", [b"caf\xe9", b"\xff.txt"])
def test_arguments_in_another_encoding_are_one_sentence(argument):
    code = "from attnscope.cli import main; main()"
    command = [sys.executable, "-c", code, "explain", "demo", argument]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONUTF8": "1"})
    assert done.returncode == 2
    assert one_sentence(done.stderr.decode())
    assert "Argument 3 is not text in UTF-8" in done.stderr.decode()


def test_a_name_of_any_length_is_one_sentence_of_some_length(tmp_path):
    for command in (
        ["survey", "demo", "x" * 100_000, "--out", str(tmp_path / "out")],
        ["survey", "demo", "demo", "--limit", "1", "--out", "x" * 100_000],
        ["trust", "demo", "x" * 100_000],
        ["report", "demo", "the key", "-o", "x" * 100_000],
        ["train", "demo", "--out", "x" * 100_000],
        ["data", "add", "sst", "x" * 100_000],
    ):
        result = RUNNER.invoke(app, command)
        assert result.exit_code == 2, command[:2]
        assert one_sentence(result.stderr)
        assert len(result.stderr) < 1200
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_read_and_not_reported_on_by_its_name(tmp_path):
    texts, out = tmp_path / "texts.tsv", tmp_path / "page.html"
    texts.write_text("label\ttext\n1\tthe key\n0\tthe keys\n")
    result = RUNNER.invoke(app, ["report", "demo", str(texts), "the dog", "-o", str(out), "--methods", "raw", "--json"])
    assert [told["text"] for told in json.loads(result.stdout)["texts"]] == ["the key", "the keys", "the dog"]
    assert result.stderr == f"Read as a file: {texts}, 2 texts.\n"
    for command, said in (
        (["report", "demo", str(tmp_path / "missing.txt")], "There is no file"),
        (["report", "demo", "the key", "--limit", "2"], "--limit is for texts that are read from a file"),
        (["explain", "demo", str(texts)], "is the name of a file, and explain takes a text"),
    ):
        result = RUNNER.invoke(app, command)
        assert result.exit_code == 2
        assert one_sentence(result.stderr)
        assert said in result.stderr


def test_the_labels_of_a_stranger_do_not_steer_the_terminal(tmp_path):
    model = tmp_path / "model"
    shutil.copytree(SHIPPED / "demo", model)
    card = json.loads((model / "config.json").read_text())
    card["id2label"] = {"0": "sing\x1b[2J\x9b31m", "1": "\u202eplural"}
    card["label2id"] = {label: int(number) for number, label in card["id2label"].items()}
    (model / "config.json").write_text(json.dumps(card))
    told = RUNNER.invoke(app, ["explain", str(model), "the key \x1b]0;title\x07 [/bold]", "--method", "raw"]).output
    assert "sing\\x1b[2J\\x9b31m" in told
    assert "[/bold]" in told
    assert not STEERING.search(told)
    refused = RUNNER.invoke(app, ["explain", "no\x1b[2J\nmodel", "the key"])
    assert one_sentence(refused.stderr)
    assert not STEERING.search(refused.stderr)


def test_seeds_and_steps_beyond_every_number_are_one_sentence(tmp_path):
    for option in ("--seed", "--steps"):
        for number in (str(10**30), "-1"):
            result = RUNNER.invoke(app, ["train", "demo", "--out", str(tmp_path / "model"), option, number])
            assert result.exit_code == 2
            assert one_sentence(result.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_sentence_and_the_training_can_go_on(tmp_path, monkeypatch):
    asked = ["train", "demo", "--steps", "2", "--out", str(tmp_path / "model")]

    def full(*_arguments, **_options):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(demo_model, "HELD_OUT_SENTENCES", 8)
    with monkeypatch.context() as patched:
        patched.setattr("safetensors.torch.save_file", full)
        result = RUNNER.invoke(app, asked)
    assert result.exit_code == 1
    assert one_sentence(result.stderr)
    assert "No space left on device" in result.stderr
    assert RUNNER.invoke(app, [*asked, "--resume"]).exit_code == 0
    assert (tmp_path / "model" / "model.safetensors").is_file()


def test_all_that_a_reproduction_lacks_is_told_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path / "data"))
    (tmp_path / "data" / "sst").mkdir(parents=True)
    (tmp_path / "data" / "sst" / "train.txt").write_text("")
    out = tmp_path / "out"
    for paper, lacking in (
        (
            "sun2020",
            ["sst (dev, test, some 1 MB: attnscope data get sst)", "20news (train, test", "imdb (train, val, test"],
        ),
        ("abnar2020", ["ud_ewt (train, dev", "wikitext2 (valid, test", "imdb (train", "agreement (test, gold"]),
        ("wu2020", ["sst (dev, test", "warriner (all"]),
        (
            "snell2021",
            [
                "sst (test",
                "imdb (train, val, test",
                "multi30k (4 files",
                "amazon (8 files, some 4 MB",
                "--leave-out does without",
            ],
        ),
    ):
        result = RUNNER.invoke(app, ["reproduce", paper, "--scale", "cpu", "--out", str(out)])
        assert result.exit_code == 2
        assert one_sentence(result.stderr)
        assert "minutes on" in result.stderr or "hours on" in result.stderr
        assert all(one in result.stderr for one in lacking)
    asked = ["reproduce", "wu2020", "--scale", "cpu", "--out", str(out), "--corpus", "mine", "--lexicon", "vader"]
    assert "lacks" not in RUNNER.invoke(app, asked).stderr, "what the user brings is not lacking"
    refused = RUNNER.invoke(app, ["reproduce", "sun2020", "--vectors", "nowhere.txt", "--out", str(out)])
    assert (refused.exit_code, one_sentence(refused.stderr)) == (2, True)
    assert not out.exists()
