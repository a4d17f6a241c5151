"""`attnscope lexicon`: what it prints, what it keeps, and how it refuses; and the example of its page."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnscope.cli import app

RUNNER = CliRunner()
PAGE = Path(__file__).parents[2] / "docs" / "lexicon.md"


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "valence.csv"
    rows = ["word,value", "rat,2.5", "snake,2.0", "dog,8.0", "horse,7.0", "bird,7.5", "old,4.5", "big,5.5", "both,5.1"]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.usefixtures("lexicon_libraries")
def test_it_prints_the_summary_and_keeps_tables_and_figures(tmp_path, words):
    out = tmp_path / "out"
    asked = ["lexicon", "demo", "demo", "--lexicon", str(words), "--limit", "20", "--method", "raw", "--out", str(out)]
    result = RUNNER.invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "the lexicon valence.csv has" in result.stdout
    assert result.stdout.rstrip().endswith(f"Written: {out}")
    kept = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    tables = {f"{name}.csv" for name in ("words", "regressions", "correlations", "heads")}
    figures = {f"figures/{name}.svg" for name in ("valence_softmax", "valence_length_corrected", "heads", "cloud")}
    assert kept == tables | figures | {"summary.txt", "lexicon.json"}
    again = RUNNER.invoke(app, asked)
    assert again.exit_code == 2
    assert "already holds a finished measurement of words" in again.stderr
    told = json.loads(RUNNER.invoke(app, [*asked, "--resume", "--json"]).stdout)
    assert told["card"]["texts"] == 20
    assert {row["method"] for row in told["regressions"]} == {"raw"}


@pytest.mark.usefixtures("lexicon_libraries")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["demo", "no/such/file.txt"], "There is no file"),
        (["demo", "demo", "--lexicon", "nope.csv"], "There is no lexicon"),
        (["demo", "demo", "--method", "nope"], "There is no method 'nope'"),
        (["demo", "demo", "--figures", "gif"], "svg, pdf or png"),
        (["demo", "demo", "--limit", "0"], "limit must be at least 1"),
        (["demo", "demo", "--limit", "1"], "a parabola needs"),
        (["demo", "demo", "--negative-below", "3", "--positive-from", "2"], "overlap"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, sentence, tmp_path, words):
    lexicon = [] if "--lexicon" in arguments else ["--lexicon", str(words)]
    result = RUNNER.invoke(app, ["lexicon", *arguments, *lexicon, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("lexicon_libraries")
def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)  # noqa: S102 - our own page
    assert (tmp_path / "figures" / "cloud.svg").is_file()
