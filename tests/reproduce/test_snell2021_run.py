"""The whole experiment at its smallest: what it writes, that it goes on, and that stages may be run by themselves."""

import pandas as pd
import pytest

from attnscope.errors import BadInput
from attnscope.reproduce import read_claims
from attnscope.reproduce.snell2021 import classification, reproduce_snell2021, training
from attnscope.reproduce.snell2021.experiment import missing_data


@pytest.fixture(scope="module")
def whole(run_by_command):
    """A finished run, made by the command."""
    return run_by_command("snell2021")


def test_everything_is_written(whole):
    files = {path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file()}
    assert {"report.md", "report.html", "claims.json", "recipe.json"} <= files
    names = "copying locality heads heads_tried agreements contexts performance table_9 initial_gradient permutations"
    assert {f"tables/{name}.csv" for name in names.split()} <= files
    for name in "fig03_copying fig06_heads fig07_locality agreements".split():
        assert any(path.startswith(f"figures/{name}.") for path in files), name
    report = (whole / "report.md").read_text()
    assert "Texts and pairs are made up" in report
    for table in ("Tables 2 and 5", "Table 3", "Table 4", "Table 6", "Table 7", "Table 8", "Table 9", "Table 10"):
        assert f"### {table}" in report, table
    agreements = pd.read_csv(whole / "tables" / "agreements.csv")
    assert set(agreements["data"]) == {"sst", "20news", "multi30k"}
    assert agreements["error"].notna().all()


def test_a_trial_measures_and_judges_nothing(whole):
    claims = {claim.id: claim for claim in read_claims(whole)}
    assert {claim.holds for claim in claims.values()} == {None}
    assert claims["proxy-is-logistic"].effect.size < 1e-5, "an equation holds in a trial too"
    assert claims["optimal-attention-may-avoid-largest-beta"].effect.size < 1e-3
    assert claims["agreement-alpha-beta-imdb"].note == "IMDB was not run."
    assert claims["agreement-alpha-beta-yelp"].note.startswith("Yelp was not run: its users must bring its files")
    assert claims["agreement-alpha-beta-sst"].note.startswith("A toy run: ")


def test_a_stopped_run_goes_on_to_the_same_bytes(whole, tmp_path, monkeypatch, draw_from):
    """Of two stages, which must be what they are among all."""
    draw_from(whole)
    out, stages = tmp_path / "run", "copying,classification"

    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(classification, "train_bag", stopped)
        with pytest.raises(KeyboardInterrupt):
            reproduce_snell2021(out, stages=stages)
    assert not (out / "claims.json").exists()
    kept = sorted((out / "copying").glob("*-*.safetensors"))
    assert len(kept) == 10
    written = {path: path.stat().st_mtime_ns for path in kept}
    reproduce_snell2021(out, stages=stages, resume=True)
    assert {path: path.stat().st_mtime_ns for path in kept} == written, "what is kept is not trained again"
    assert (out / "tables" / "copying.csv").read_bytes() == (whole / "tables" / "copying.csv").read_bytes()
    for name in ("agreements", "contexts"):
        alone = (out / "tables" / f"{name}.csv").read_text().splitlines()
        assert alone[1:] == (whole / "tables" / f"{name}.csv").read_text().splitlines()[1 : len(alone)], name


def test_one_stage_alone(whole, tmp_path, monkeypatch, draw_from):
    draw_from(whole)

    def never(*arguments, **options):
        raise AssertionError("trained")

    monkeypatch.setattr(training, "train", never)
    found = reproduce_snell2021(tmp_path / "run", stages="theory")
    measured = {claim.id for claim in found.claims if claim.here != "–"}
    assert measured == {
        "proxy-is-logistic",
        "initial-gradient-is-cooccurrence",
        "optimal-attention-may-avoid-largest-beta",
    }


def test_stages_one_after_the_other_are_all_in_the_report(whole, tmp_path, draw_from):
    draw_from(whole)
    run = tmp_path / "run"
    reproduce_snell2021(run, stages="theory")
    claims = reproduce_snell2021(run, stages="locality", resume=True).claims
    measured = {claim.id for claim in claims if claim.here not in ("", "–")}
    assert {"proxy-is-logistic", "locality-late-last-state"} <= measured
    assert "| scale and stages | smoke: locality, theory |" in (run / "report.md").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stages": "copying,tasting"}, "no stage 'tasting': choose of copying, locality, theory"),
        ({"engine": "dask"}, "no engine 'dask'"),
        ({"scale": "large"}, "no scale 'large': choose smoke, cpu, paper"),
        ({"scale": "cpu", "data": "/nowhere"}, "no folder /nowhere to look for data sets in"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(tmp_path, monkeypatch, options, said):
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path / "nothing"))
    with pytest.raises(BadInput, match=said):
        reproduce_snell2021(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_data_sets_that_are_missing_are_told(tmp_path, monkeypatch):
    monkeypatch.delenv("ATTNSCOPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "sms_spam" / "SMSSpamCollection.gz"
    file.parent.mkdir()
    file.touch()
    missing = missing_data(["sst", "sms"], tmp_path)
    assert list(missing) == ["sst"]
    assert missing["sst"].startswith("The data set sst")
    with pytest.raises(BadInput, match="The data set imdb"):
        missing_data(["imdb", "sst"], tmp_path)


def test_a_data_set_that_cannot_be_read_is_told_before_anything_is_written(tmp_path):
    file = tmp_path / "data" / "sms_spam" / "SMSSpamCollection"
    file.parent.mkdir(parents=True)
    file.write_text("no tab in this line\n")
    with pytest.raises(BadInput, match="SMSSpamCollection"):
        reproduce_snell2021(tmp_path / "run", scale="cpu", stages="copying,classification", data=tmp_path / "data")
    assert not (tmp_path / "run").exists()
