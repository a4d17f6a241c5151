"""`attnscope survey` and `attnscope reproduce` in the shell: what they write, what they print, their exit codes."""

import json

import pytest
from typer.testing import CliRunner

import attnscope
from attnscope.cli import app

RUNNER = CliRunner()
FAST = ["--statistics", "distance", "--statistics", "null_attention", "--threads", "1"]


def sentence_of(result) -> str:
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("attnscope: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_a_survey_is_written_and_told(tmp_path):
    out = tmp_path / "survey"
    result = RUNNER.invoke(app, ["survey", "demo", "demo", "--out", str(out), "--limit", "10", *FAST])
    assert result.exit_code == 0, result.output
    assert "6 layers x 8 heads, 10 sentences" in result.stdout
    assert str(out / "survey.html") in result.stdout
    assert list(attnscope.Survey.load(out)) == ["distance", "null_attention"]


def test_as_json_it_prints_the_card_and_nothing_else(tmp_path):
    arguments = [
        "survey",
        "demo",
        "demo",
        "--out",
        str(tmp_path / "s"),
        "--limit",
        "10",
        "--json",
        "--null",
        "0,-1",
        *FAST,
    ]
    result = RUNNER.invoke(app, arguments)
    told = json.loads(result.stdout)
    assert told["card"]["null"] == [0, -1]
    assert told["card"]["sentences"] == 10


def test_a_second_run_says_so_and_resuming_gives_the_same(tmp_path):
    arguments = ["survey", "demo", "demo", "--out", str(tmp_path / "s"), "--limit", "10", *FAST]
    first = RUNNER.invoke(app, arguments)
    assert "already holds a finished survey" in sentence_of(RUNNER.invoke(app, arguments))
    again = RUNNER.invoke(app, [*arguments, "--resume"])
    assert again.exit_code == 0
    assert again.stdout == first.stdout


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--null", "last"], "null is first, special, sinks, none"),
        (["--null", "1,x"], "--null is first, special, sinks, none, or positions"),
        (["--engine", "spark"], "There is no engine 'spark'"),
        (["--workers", "2"], "--workers is not for --engine local"),
        (["--statistics", "beauty"], "There is no statistic 'beauty'"),
        (["--limit", "0"], "limit"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(tmp_path, more, said):
    out = tmp_path / "s"
    result = RUNNER.invoke(app, ["survey", "demo", "demo", "--out", str(out), *more])
    assert said in sentence_of(result)
    assert not out.exists()


def test_a_split_of_a_data_set_by_its_name(tmp_path):
    folder = tmp_path / "data" / "ud_ewt"
    folder.mkdir(parents=True)
    row = "1\tkeys\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    (folder / "en_ewt-ud-dev.conllu").write_text(row * 3)
    arguments = ["--data", str(folder.parent), "--out", str(tmp_path / "s"), "--json", *FAST]
    told = json.loads(RUNNER.invoke(app, ["survey", "demo", "ud_ewt:dev", *arguments]).stdout)
    assert (told["card"]["corpus"], told["card"]["sentences"]) == ("en_ewt-ud-dev.conllu", 3)


def test_a_split_and_column_of_a_folder(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets", reason="datasets is missing: pip install 'attnscope[corpora]'.")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    home = tmp_path / "reviews"
    home.mkdir()
    for split, texts in (("train", ["the key"]), ("test", ["the keys", "the old keys"])):
        (home / f"{split}.jsonl").write_text("".join(json.dumps({"review": text}) + "\n" for text in texts))
    arguments = ["survey", "demo", f"{home}:test#review", "--out", str(tmp_path / "s"), "--json", *FAST]
    told = json.loads(RUNNER.invoke(app, arguments).stdout)
    assert (told["card"]["corpus"], told["card"]["sentences"]) == ("reviews, test (review)", 2)


def test_a_parser_that_is_not_there_is_told_before_anything_is_written(tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("the key to the cabinets is rusty .\n")
    out = tmp_path / "s"
    result = RUNNER.invoke(app, ["survey", "demo", str(texts), "--parser", "no_such_model", "--out", str(out)])
    assert "no_such_model" in sentence_of(result)
    assert not out.exists()


def test_a_broken_treebank_is_told_with_its_line(tmp_path):
    broken = tmp_path / "broken.conllu"
    broken.write_text("1\tdogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tsleep\tsleep\tVERB\t_\t_\tzero\troot\t_\t_\n\n")
    out = tmp_path / "s"
    result = RUNNER.invoke(app, ["survey", "demo", str(broken), "--out", str(out)])
    assert "2" in sentence_of(result)
    assert not out.exists()


def test_figures_are_drawn_on_request(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib draws the figures: pip install 'attnscope[figures]'")
    out = tmp_path / "s"
    arguments = ["survey", "demo", "demo", "--out", str(out), "--limit", "10", "--figures", "svg", *FAST]
    assert RUNNER.invoke(app, arguments).exit_code == 0
    assert {path.name for path in (out / "figures").iterdir()} == {
        "distance.svg",
        "distance_by_layer.svg",
        "null_attention.svg",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nobody1999"], "There is no experiment 'nobody1999'"), (["vig2019", "--scale", "moon"], "moon")],
)
def test_what_cannot_be_reproduced_is_one_sentence(tmp_path, arguments, said):
    out = tmp_path / "r"
    assert said in sentence_of(RUNNER.invoke(app, ["reproduce", *arguments, "--out", str(out)]))
    assert not out.exists()
