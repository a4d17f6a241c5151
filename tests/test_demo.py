"""The demo on the shipped model."""

import io
import json

import pytest
from rich.console import Console
from typer.testing import CliRunner

import attnscope
from attnscope import BadInput, cli
from attnscope.demo import TEXTS, run_demo, show


@pytest.fixture(scope="module")
def commanded(tmp_path_factory):
    """What `attnscope demo --json` prints, and the result it prints it of: the demo is run once for both."""
    results = []
    with pytest.MonkeyPatch.context() as patch:
        # on a slow machine, a line a minute would come between
        patch.setattr("attnscope.progress.SECONDS_BETWEEN_LINES", 1e6)
        patch.setattr("attnscope.demo.run_demo", lambda out: results.append(run_demo(out)) or results[0])
        printed = CliRunner().invoke(cli.app, ["demo", "--out", str(tmp_path_factory.mktemp("demo")), "--json"])
    return printed, results[0]


@pytest.fixture(scope="module")
def result(commanded):
    return commanded[1]


def printed(result, **options):
    file = io.StringIO()
    show(Console(file=file, width=100, **options), result)
    return file.getvalue()


def test_the_minimal_pair_is_told_apart(result):
    assert [record.text for record in result.records] == list(TEXTS)
    assert [record.prediction[0][0] for record in result.records] == ["singular", "plural"]


def test_the_report_shows_both_texts(result):
    page = result.report.read_text(encoding="utf-8")
    assert result.report.name == "report.html"
    assert page.count("<blockquote") == 2
    assert all(f">{text}<" in page for text in TEXTS)


def test_a_log_has_prediction_numbers_and_the_way_on(result):
    text = printed(result)
    assert "the key to the cabinets → singular" in text
    by_method = {scores.method: scores for scores in result.explanations[0].comparison.scores}
    assert f"key {float(by_method['rollout'].scores[2]):.3f}" in text
    assert str(result.report) in text.replace("\n", "")
    assert "attnscope explain MODEL TEXT" in text
    assert "\x1b" not in text


def test_every_method_is_shown_and_the_trust_table(result):
    text = printed(result)
    shown = {scores.method for scores in result.explanations[0].comparison.scores}
    assert shown == set(attnscope.METHODS) - {"lat"}
    assert all(f"  {name} " in text for name in shown)
    assert result.trust.verdict().splitlines()[0].split()[0] in text
    assert "need not be an explanation" in " ".join(text.split())


def test_blank_out_finds_the_subject(result):
    for explanation in result.explanations:
        scores = next(scores for scores in explanation.comparison.scores if scores.method == "blank_out")
        assert scores.tokens[int(scores.scores.argmax())] in ("key", "keys")


def test_every_head_has_a_role_and_the_map_is_written(result):
    roles = result.survey["roles"].result()
    assert len(roles) == 6 * 8
    text = printed(result)
    assert all(role in text for role in roles["role"].unique())
    assert str(result.head_map) in text.replace("\n", "")
    assert result.head_map.name == "survey.html"
    assert result.survey.card["sentences"] == 128


def test_a_terminal_has_coloured_rows(result):
    text = printed(result, force_terminal=True, color_system="truecolor", no_color=False)
    assert "\x1b[" in text
    assert text.count("rollout") >= 3


def test_the_result_is_plain_data(result):
    told = json.loads(json.dumps(result.to_dict()))
    by_method = {scores.method: scores for scores in result.explanations[0].comparison.scores}
    assert told["texts"][0]["scores"]["flow"] == pytest.approx(by_method["flow"].scores.tolist())
    assert told["texts"][1]["prediction"][0]["label"] == "plural"


def test_the_command_prints_it_as_json_alone(commanded):
    printed, result = commanded
    assert printed.exit_code == 0
    assert printed.stderr == ""
    told = json.loads(printed.stdout)
    assert told == json.loads(json.dumps(result.to_dict()))
    assert told["texts"][0]["prediction"][0]["label"] == "singular"
    tokens = told["texts"][0]["tokens"]
    assert all(len(scores) == len(tokens) for scores in told["texts"][0]["scores"].values())


def test_a_file_is_no_folder(tmp_path):
    file = tmp_path / "taken"
    file.write_text("mine")
    with pytest.raises(BadInput, match="is a file"):
        run_demo(file)
    assert file.read_text() == "mine"
