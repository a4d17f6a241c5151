"""The whole experiment on the toy treebank: its files, its resuming to the same bytes, and what it refuses."""

import json

import pytest
from typer.testing import CliRunner

from attnscope.cli import app
from attnscope.errors import BadInput
from attnscope.reproduce import read_claims
from attnscope.reproduce.wu2020 import reproduce_wu2020, stages


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run, made by the command."""
    out = tmp_path_factory.mktemp("whole") / "run"
    found = CliRunner().invoke(app, ["reproduce", "wu2020", "--json", "--out", str(out)])
    assert found.exit_code == 0, found.output
    assert [claim["id"] for claim in json.loads(found.stdout)["claims"]] == [claim.id for claim in read_claims(out)]
    return out


def test_everything_is_written(whole):
    files = {path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file()}
    assert {"report.md", "report.html", "claims.json", "recipe.json"} <= files
    assert {f"tables/{name}.csv" for name in "accuracy correlations evenness heads regressions".split()} <= files
    figures = "fig03_tracing fig04_words fig05_valence fig05_valence_length_corrected fig06_heads".split()
    assert {f"figures/{name}" for name in figures} <= {path.removesuffix(".svg").removesuffix(".png") for path in files}
    claims = {claim.id: claim for claim in read_claims(whole)}
    assert claims["send-ccc"].holds is None
    assert "SEND is given only on request" in claims["send-ccc"].note
    assert claims["sst5-accuracy"].holds is not None
    assert "The treebank and its raters are toys" in (whole / "report.md").read_text()


def test_a_stopped_run_goes_on_to_the_same_bytes(whole, tmp_path, monkeypatch):
    out = tmp_path / "run"

    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stages, "lexicon", stopped)
        with pytest.raises(KeyboardInterrupt):
            reproduce_wu2020(out)
    assert not (out / "claims.json").exists()
    with pytest.raises(BadInput, match="already holds an unfinished reproduction"):
        reproduce_wu2020(out)
    reproduce_wu2020(out, resume=True)
    for name in ("report.md", "claims.json", "tables/regressions.csv", "tables/heads.csv"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


def test_bad_input_is_one_sentence_and_nothing_is_written(tmp_path):
    with pytest.raises(BadInput, match="no scale 'large'"):
        reproduce_wu2020(tmp_path / "large", scale="large")
    with pytest.raises(BadInput):
        reproduce_wu2020(tmp_path / "corpus", scale="cpu", corpus=str(tmp_path / "nowhere"))
    assert not any(tmp_path.iterdir())
