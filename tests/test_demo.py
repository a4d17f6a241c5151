"""The demo on the shipped model."""

import io
import json

import pytest
from rich.console import Console

from attnscope import BadInput
from attnscope.demo import TEXTS, run_demo, show


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return run_demo(tmp_path_factory.mktemp("demo"))


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
    assert page.count("<article") == 2
    assert all(f">{text}<" in page for text in TEXTS)


def test_a_log_has_prediction_numbers_and_the_way_on(result):
    text = printed(result)
    assert "the key to the cabinets → singular" in text
    score = float(result.scores[0].scores[2])
    assert f"key {score:.3f}" in text
    assert str(result.report) in text.replace("\n", "")
    assert "attnscope report MODEL TEXT" in text
    assert "\x1b" not in text


def test_a_terminal_has_one_coloured_row_for_each_layer(result):
    text = printed(result, force_terminal=True, color_system="truecolor", no_color=False)
    assert "\x1b[" in text
    assert text.count("layer 0") == 2
    assert text.count(f"layer {result.records[0].layers[-1]}") == 2


def test_the_result_is_plain_data(result):
    told = json.loads(json.dumps(result.to_dict()))
    assert told["texts"][0]["scores"] == pytest.approx(result.scores[0].scores.tolist())


def test_a_file_is_no_folder(tmp_path):
    file = tmp_path / "taken"
    file.write_text("mine")
    with pytest.raises(BadInput, match="is a file"):
        run_demo(file)
    assert file.read_text() == "mine"
