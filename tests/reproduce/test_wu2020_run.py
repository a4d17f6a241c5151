"""The whole experiment on the toy treebank: its files, its resuming to the same bytes, and what it refuses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from attnscope.errors import BadInput
from attnscope.lab.data.story import PARTS
from attnscope.lab.word_vectors import word_vectors
from attnscope.reproduce import read_claims
from attnscope.reproduce.experiment import Attempt
from attnscope.reproduce.wu2020 import reproduce_wu2020, stages
from attnscope.reproduce.wu2020.claims import Evidence
from attnscope.reproduce.wu2020.data import Stories, sentences_of, stories_of
from attnscope.reproduce.wu2020.paper import SCALES, Options
from attnscope.reproduce.wu2020.stories import predicted_series


@pytest.fixture(scope="module")
def whole(run_by_command):
    """A finished run, made by the command."""
    return run_by_command("wu2020")


def test_everything_is_written(whole):
    files = {path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file()}
    assert {"report.md", "report.html", "claims.json", "recipe.json"} <= files
    assert {f"tables/{name}.csv" for name in "correlations evenness heads regressions scores".split()} <= files
    figures = ["fig03_tracing"]
    for name in "fig04_words fig05_valence fig05_valence_length_corrected fig06_heads".split():
        figures += [name, f"{name}_stories"]
    assert {f"figures/{name}" for name in figures} <= {path.removesuffix(".svg").removesuffix(".png") for path in files}
    claims = {claim.id: claim for claim in read_claims(whole)}
    assert claims["send-ccc"].holds is None
    assert "SEND is given only on request" in claims["send-ccc"].note
    assert claims["sst5-accuracy"].here != "–"
    assert {claim.holds for claim in claims.values()} == {None}, "a toy run gives no verdict"
    assert "The treebank and its raters are toys" in (whole / "report.md").read_text()
    scores = pd.read_csv(whole / "tables" / "scores.csv")
    assert scores["data"].tolist() == ["sentences", "a stand-in for SEND, made from labelled sentences"]


def test_a_stopped_run_goes_on_to_the_same_bytes(whole, tmp_path, monkeypatch, draw_from):
    draw_from(whole)
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


def begun(folder: Path, **options: object) -> Attempt:
    """A trial whose data are read, before its first stage."""
    attempt = Attempt(folder, "smoke", SCALES["smoke"], Options(**options), ())
    stages.prepare(attempt)
    attempt.results["vectors"] = stages.find_vectors(attempt)
    return attempt


def written_as_send(folder: Path, stories: Stories) -> Path:
    """The stories in the layout of SEND: each word at a time of its own, two ratings to a second."""
    for split, part in PARTS.items():
        said, rated = (
            folder / name for name in (f"features/{part}/linguistic-word-level", f"ratings/{part}/observer_EWE")
        )
        said.mkdir(parents=True)
        rated.mkdir(parents=True)
        for number, story in enumerate(stories.splits[split]):
            words = [
                f"{5 * place + at * 4.9 / len(window.tokens):.3f}\t{word}"
                for place, window in enumerate(story.windows)
                if not window.silent
                for at, word in enumerate(window.tokens)
            ]
            ratings = [f"{half / 2},{50 * (story.valences[half // 10] + 1)}" for half in range(10 * len(story.windows))]
            (said / f"ID{100 + number}_vid1_words.tsv").write_text("\n".join(["time-offset\tword", *words]))
            head = "time,evaluatorWeightedEstimate"
            (rated / f"results_{100 + number}_1.csv").write_text("\n".join([head, *ratings]))
    return folder


def test_where_send_is_given_its_claims_are_judged(tmp_path):
    sentences = sentences_of(toy=True, corpus=None, lexicon="own", data=None)
    made = stories_of(sentences, None, toy=True)
    read = stories_of(sentences, written_as_send(tmp_path / "send", made), toy=True)
    assert read.name == "SEND"
    for split, stories in made.splits.items():
        for story, again in zip(stories, read.splits[split], strict=True):
            assert again.windows[1:] == story.windows[1:]
            assert again.valences == pytest.approx(story.valences, abs=1e-6)
    attempt = begun(tmp_path, vectors="scratch", send=tmp_path / "send")
    model, run = stages.run_story_seed(attempt, 1)
    assert model.settings.answer == "series"
    series = predicted_series(model, read.splits["test"])
    by_hand = [
        2 * np.cov(said, story.valences, bias=True)[0, 1]
        / (np.var(said) + np.var(story.valences) + (np.mean(said) - np.mean(story.valences)) ** 2)
        for said, story in zip(series, read.splits["test"], strict=True)
    ]  # fmt: skip
    assert run.score == pytest.approx(np.mean(by_hand), abs=1e-6)
    assert run.study.methods == ["layerwise_tracing", "gradient_of_sum", "rollout", "flow", "raw"]
    said = sum(len(window.tokens) for story in read.splits["test"] for window in story.windows if not window.silent)
    assert run.study.words["count"].sum() == said
    claims = {claim.id: claim for claim in reproduce_wu2020.judge(Evidence((run,), (run,)))}
    assert all(claim.here != "–" for claim in claims.values())
    stand_in = {claim.id: claim for claim in reproduce_wu2020.judge(Evidence((run,), (run,), made.name))}
    assert {claim.holds for name, claim in stand_in.items() if "send" in name} == {None}


def test_with_softmax_the_gradient_is_that_of_the_predicted_class(tmp_path):
    attempt = begun(tmp_path, probabilities="softmax")
    attempt.scale = replace(attempt.scale, epochs=1)
    ((model, run),) = stages.run_sentences(attempt)
    assert model.settings.probabilities == "softmax"
    assert "gradient_of_sum" not in run.study.methods
    claim = {claim.id: claim for claim in reproduce_wu2020.judge(Evidence((run,), ()))}["gradient-not-quadratic-sst"]
    row = run.regression("gradient_of_prediction")
    assert f"t {row['b2_t']:.2f}" in claim.here


def test_vectors_of_the_papers_width_are_made_once(tmp_path, monkeypatch):
    dice = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(320)])
    read = [dice.choice(words, 9).tolist() for _ in range(900)]
    monkeypatch.setattr(stages, "_vector_texts", lambda _data: iter(read))
    monkeypatch.setattr(stages, "is_toy", lambda _attempt: False)
    made = begun(tmp_path, vectors="trained-300")["vectors"]
    found = word_vectors(made, words.tolist())
    assert (len(found.words), found.width) == (320, 300)
    monkeypatch.setattr(stages, "_vector_texts", lambda _data: pytest.fail("they were made before"))
    assert begun(tmp_path, vectors="trained-300")["vectors"] == made


def test_bad_input_is_one_sentence_and_nothing_is_written(tmp_path):
    with pytest.raises(BadInput, match="no scale 'large'"):
        reproduce_wu2020(tmp_path / "large", scale="large")
    with pytest.raises(BadInput):
        reproduce_wu2020(tmp_path / "corpus", scale="cpu", corpus=str(tmp_path / "nowhere"))
    with pytest.raises(BadInput, match="give the folder of SEND"):
        reproduce_wu2020(tmp_path / "send", send=tmp_path / "nowhere")
    with pytest.raises(BadInput, match="Probabilities are made by sigmoid or softmax"):
        reproduce_wu2020(tmp_path / "loss", probabilities="hinge")
    with pytest.raises(BadInput, match="no engine 'gpus'"):
        reproduce_wu2020(tmp_path / "engine", engine="gpus")
    assert not any(tmp_path.iterdir())
