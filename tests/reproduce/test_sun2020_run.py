"""The whole experiment on made-up sentences: its files, its resuming to the same bytes, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
import torch

from attnscope.errors import BadInput
from attnscope.lab.data import PackedTexts, toy_polarity
from attnscope.lab.models import AttentionClassifier
from attnscope.reproduce.sun2020 import reproduce_sun2020, stages
from attnscope.reproduce.sun2020.paper import SCALES, SCALINGS, VARIANTS
from attnscope.reproduce.sun2020.words import kinds_of, word_table


@pytest.fixture(scope="module")
def whole(run_by_command):
    """A finished run, made by the command."""
    return run_by_command("sun2020")


def test_everything_is_written(whole):
    files = {path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file()}
    assert {"report.md", "report.html", "claims.json", "recipe.json"} <= files
    assert {f"tables/{name}.csv" for name in "table_1 table_2 scores comparisons made_up skewed".split()} <= files
    figures = "table_2 fig02_scores fig03_scores fig04_additive fig04_lstm fig05_weights gap_over_vw skew".split()
    for name in [*figures, "made_up_0", "made_up_0.001"]:
        assert any(path.startswith(f"figures/{name}.") for path in files), name
    assert not any("unfinished" in path for path in files)
    table = pd.read_csv(whole / "tables" / "table_2.csv")
    plain = table[table["penalty"] == 0]
    assert sorted(zip(plain["variant"], plain["scaling"], strict=True)) == sorted(
        (variant, scaling) for variant in VARIANTS for scaling in SCALINGS
    )
    report = (whole / "report.md").read_text()
    assert "The sentences are made up" in report
    first = "\n".join(report.splitlines()[:20])
    for said in (
        "| model | a classifier with one attention: DP, DP-A, AD, DP-L; vectors of 16 dimensions |",
        "(training / dev / test), of each text all; 240 made-up sentences |",
        "| seeds | SST 1; ",
        "| steps | epochs at most: DP 6, DP-A 6, AD 6, DP-L 6; made-up sentences 20, with skewed classes 10 |",
        "| differs from the paper | the paper has the same models",
    ):
        assert said in first, said
    signs = pd.read_csv(whole / "tables" / "signs.csv")
    assert set(signs["data"]) == {"sst", "made-up"}
    assert set(signs["term"]) == set("BCEF")
    assert (signs.loc[signs["data"] == "made-up", "looks"] > 10).all()


def test_a_stopped_run_goes_on_to_the_same_bytes(whole, tmp_path, monkeypatch, draw_from):
    draw_from(whole)
    out = tmp_path / "run"

    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stages, "train_made_up", stopped)
        with pytest.raises(KeyboardInterrupt):
            reproduce_sun2020(out)
    assert not (out / "claims.json").exists()
    with monkeypatch.context() as patch:
        patch.setattr(stages, "sweep_groups", stopped)  # what is kept is not trained again
        reproduce_sun2020(out, resume=True)
    for name in ("report.md", "claims.json", "tables/table_2.csv", "tables/comparisons.csv", "tables/made_up.csv"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


def test_made_up_sentences_are_learned_by_plain_descent(tmp_path):
    """A run of the study against the same steps by PyTorch's own SGD, without dropout's masks: one update of all."""
    scale = SCALES["smoke"]
    data = toy_polarity()
    run = stages.MadeUpRun("run", data, stages.RunSettings("dot", 10.0, 1), 1, scale.width, {})
    recipe = stages.Recipe(scale.width, 1, len(data.train), 0.015 * stages.STEADY, 0, 0, "float64", None, stages.STEADY)
    (state,) = stages.begin_runs(data, [run.settings], recipe)
    model = AttentionClassifier(data.vocabulary, scaling=10.0, classes=data.classes, width=scale.width, dropout=0.0)
    model.double().load_state_dict({name: torch.from_numpy(array.copy()) for name, array in state.weights.items()})
    stages.train_epoch(data, 0, recipe, [state])
    ids, real = (torch.from_numpy(table) for table in data.train.padded(np.arange(len(data.train))))
    descent = torch.optim.SGD(model.parameters(), 0.015)
    model.loss(model(ids, real), torch.from_numpy(data.train.labels)).backward()
    descent.step()
    for name, weights in model.state_dict().items():
        assert torch.from_numpy(state.weights[name]).allclose(weights, atol=1e-9), name


def test_words_have_what_the_model_gives_them():
    data = toy_polarity()
    torch.manual_seed(0)
    model = (
        AttentionClassifier(data.vocabulary, scaling=2.0, classes=data.classes, width=8).eval().requires_grad_(False)
    )
    table = word_table(data, model, kinds_of(data))
    row = table.iloc[3]
    number = data.vocabulary.encode([row["word"]])[0]
    vector = model.embeddings.weight[number]
    assert row["polarity"] == pytest.approx(float(vector @ model.output.weight[0]), abs=1e-6)
    assert row["attention"] == pytest.approx(float(vector @ model.context) / 2, abs=1e-6)
    counted = sum(int((text == number).sum()) for text in data.train)
    assert row["count"] == counted
    weights = []
    for text in data.test:
        scores = np.array([float(model.embeddings.weight[token] @ model.context) / 2 for token in text])
        shares = np.exp(scores) / np.exp(scores).sum()
        weights += [share for share, token in zip(shares, text, strict=True) if token == number]
    assert row["weight"] == pytest.approx(np.mean(weights), abs=1e-6)
    assert set(table["kind"]) == {"positive", "negative", "neutral", "neutral of like frequency"}


def test_long_texts_are_cut():
    texts = PackedTexts.of([[2, 3, 4, 5], [6], [7, 8]], [0, 1, 1])
    assert [list(text) for text in stages.shorten(texts, 2)] == [[2, 3], [6], [7, 8]]


def test_bad_input_is_one_sentence_and_nothing_is_written(tmp_path):
    with pytest.raises(BadInput, match="no scale 'large'"):
        reproduce_sun2020(tmp_path / "large", scale="large")
    with pytest.raises(BadInput):
        reproduce_sun2020(tmp_path / "cpu", scale="cpu", data=tmp_path / "nowhere")
    with pytest.raises(BadInput, match="no engine"):
        reproduce_sun2020(tmp_path / "engine", engine="steam")
    assert not any(tmp_path.iterdir())
