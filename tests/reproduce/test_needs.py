"""What a run reads and takes is said in one sentence before it starts, or all that is missing in another."""

import gzip
from pathlib import Path

import pytest

from attnscope.corpora import CORPORA
from attnscope.errors import BadInput
from attnscope.reproduce import EXPERIMENTS
from attnscope.reproduce.needs import plan_run


def put(folder: Path, *needs: str) -> None:
    """Files that are there; what is in them is not looked at before the run."""
    for need in needs:
        name, _, split = need.partition(":")
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / CORPORA[name].files[split]).write_bytes(gzip.compress(b"text"))


def test_a_trial_needs_nothing():
    assert plan_run(EXPERIMENTS["wu2020"], "smoke", {}) == ""


def test_the_plan_has_sizes_and_time_and_the_refusal_all_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path / "none"))
    wu2020 = EXPERIMENTS["wu2020"]
    with pytest.raises(BadInput) as refused:
        plan_run(wu2020, "cpu", {"data": tmp_path})
    told = str(refused.value)
    assert told.startswith("wu2020 at the scale cpu lacks 2 of its needs, and would then take hours on two cores")
    assert "the data set sst (train, dev, test, some 1 MB: attnscope data get sst)" in told
    assert "the data set warriner (all, some 1 MB: attnscope data add warriner FILE)" in told
    put(tmp_path, *wu2020.needs)
    assert plan_run(wu2020, "cpu", {"data": tmp_path}) == (
        "wu2020 at the scale cpu reads 2 data sets of 2 MB together (sst 1 MB, warriner 1 MB), all of them here, and "
        "takes hours on two cores."
    )
    monkeypatch.setattr("attnscope.reproduce.needs.find_spec", lambda package: None if package == "statsmodels" else 1)
    with pytest.raises(BadInput, match=r"lacks 1 of its needs.*statsmodels \(pip install 'attnscope\[lexicon\]'\)"):
        plan_run(wu2020, "cpu", {"data": tmp_path})


def test_what_is_left_out_is_not_lacking(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path / "none"))
    snell2021 = EXPERIMENTS["snell2021"]
    put(tmp_path, *(need for need in snell2021.needs if not need.startswith("amazon")))
    with pytest.raises(
        BadInput, match=r"the data set amazon \(8 files, some 4 MB: .*; --leave-out does without data sets\."
    ):
        plan_run(snell2021, "cpu", {"data": tmp_path})
    assert "takes some 5 hours" in plan_run(snell2021, "cpu", {"data": tmp_path, "leave_out": "amazon"})
    stages = {"data": tmp_path / "nowhere", "stages": "copying,heads"}
    assert plan_run(snell2021, "cpu", stages) == "snell2021 at the scale cpu takes some 5 hours on two cores."
    with pytest.raises(BadInput, match="no data set 'amazonas' to leave out"):
        snell2021(tmp_path / "run", leave_out="amazonas")
