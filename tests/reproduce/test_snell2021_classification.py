"""The classification stage on made-up sentences: what it trains and keeps, that it goes on, and what it compares."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from attnscope.errors import BadInput
from attnscope.lab.data import ClassifiedTexts, toy_polarity
from attnscope.lab.probes.top_agreement import top_agreement
from attnscope.reproduce.snell2021 import classification as stage
from attnscope.reproduce.snell2021.classification import (
    ClassificationRun,
    begin_with_vectors,
    cut,
    do_classification_run,
    embedding_width,
    keep_texts,
    proxy_rate,
    read_texts,
    run_classification,
    runs_of,
    word_values,
)
from attnscope.reproduce.snell2021.paper import SCALES, DataScale
from attnscope.reproduce.snell2021.snapshots import best_snapshot, load_snapshot, load_snapshots
from attnscope.reproduce.snell2021.training import checkpoints

SMOKE, CPU, PAPER = (SCALES[name].classification for name in ("smoke", "cpu", "paper"))
SCALE = replace(SMOKE, data={"sst": SMOKE.data["sst"]})


def sst(folder: Path, vectors: Path | None = None) -> ClassifiedTexts:
    return keep_texts(folder / "sst", SCALE, read_texts(folder, "sst", SCALE, None), vectors)


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> tuple[Path, dict[str, pd.DataFrame]]:
    folder = tmp_path_factory.mktemp("classification")
    return folder, run_classification(folder, SCALE, {"sst": read_texts(folder, "sst", SCALE, None)})


def row(table: pd.DataFrame, **wanted) -> pd.Series:
    for name, value in wanted.items():
        table = table[table[name] == value]
    assert len(table) == 1
    return table.iloc[0]


def test_every_pair_has_a_curve_over_the_checkpoints_on_both_parts(done) -> None:
    table = done[1]["agreements"]
    pairs = {
        "attention_uniform": 2,
        "saliency_uniform": 2,
        "uniform_proxy": 1,
        "uniform_logistic": 1,
        "attention_lexical": 2,
        "attention_attention": 1,
        "attention_frozen": 1,
    }
    steps = checkpoints(60)
    assert len(table) == 2 * len(steps) * sum(pairs.values())
    for pair, variants in pairs.items():
        chosen = table[(table["pair"] == pair) & (table["part"] == "training")]
        assert chosen["seeds"].nunique() == variants
        assert sorted(set(chosen["step"])) == list(steps)
    assert table["agreement"].between(0, 1).all()
    assert table["tau"].between(-1, 1).all()
    assert table["chance"].to_numpy() == pytest.approx(0.1)  # ten positions with bos and eos, one of them the top


def test_a_run_with_itself_agrees_at_its_best_step(done) -> None:
    """The same-seed curve of A(α, β) is of run A alone, and figures are those of the snapshots."""
    folder, found = done
    reference = folder / "sst" / "learned-0" / "validation"
    best = best_snapshot(load_snapshots(reference))
    at = load_snapshot(reference / "50.safetensors")
    expected = top_agreement(best.values["attention"], at.values["lexical"], at.real).double().mean()
    told = row(found["agreements"], pair="attention_lexical", seeds="same", part="validation", step=50)
    assert told["agreement"] == pytest.approx(float(expected))


def test_the_proxy_is_asked_where_its_top_is_in_the_order_of_uniform_attention(done) -> None:
    folder, found = done
    texts = sst(folder).dev
    proxy = word_values(folder / "sst", ClassificationRun("sst", "proxy", 0), texts)
    at = load_snapshot(folder / "sst" / "uniform-1" / "validation" / "60.safetensors")
    expected = top_agreement(proxy, at.values["lexical"], at.real).double().mean()
    told = row(found["agreements"], pair="uniform_proxy", part="validation", step=60)
    assert told["agreement"] == pytest.approx(float(expected))


def test_contexts_are_accuracies_of_other_seeds(done) -> None:
    folder, found = done
    here = found["contexts"][found["contexts"]["part"] == "validation"]
    table = found["agreements"][found["agreements"]["part"] == "validation"]
    shots = [load_snapshots(folder / "sst" / f"learned-{seed}" / "validation") for seed in (1, 2)]
    accuracy = {
        one.step: (one.performance["accuracy"] + other.performance["accuracy"]) / 2
        for one, other in zip(*shots, strict=True)
    }
    assert set(here["by"]) == {"agreement", "tau"}
    labels = sst(folder).dev.labels
    assert here["trivial"].to_numpy() == pytest.approx(max(labels.mean(), 1 - labels.mean()))
    told = row(here, pair="attention_uniform", seeds="two", by="agreement")
    best = table[(table["pair"] == "attention_uniform") & (table["seeds"] == "two")]["agreement"].max()
    assert told["agreement"] == best
    seeds = table[table["pair"] == "attention_attention"].sort_values("step")
    above = seeds[seeds["agreement"] > best]["step"].tolist()
    step = above[0] if above else 60
    assert (told["step"], told["reached"]) == (step, bool(above))
    assert (told["performance"], told["best"]) == pytest.approx((accuracy[step], accuracy[60]))


def test_only_attention_changes_in_the_frozen_run(done) -> None:
    folder = done[0] / "sst" / "frozen-1" / "validation"
    first, last = load_snapshot(folder / "0.safetensors"), load_snapshot(folder / "60.safetensors")
    assert torch.equal(first.values["lexical"], last.values["lexical"])
    assert not torch.equal(first.values["attention"], last.values["attention"])
    uniform = load_snapshot(done[0] / "sst" / "uniform-1" / "validation" / "60.safetensors")
    torch.testing.assert_close(uniform.values["attention"], torch.full(uniform.real.shape, 0.1))


def test_what_is_kept_is_not_trained_again(done, monkeypatch) -> None:
    def never(*_arguments, **_options):
        raise AssertionError("trained again")

    monkeypatch.setattr(stage, "train_recurrent", never)
    monkeypatch.setattr(stage, "train_bag", never)
    again = run_classification(done[0], SCALE, {"sst": sst(done[0])})
    pd.testing.assert_frame_equal(again["agreements"], done[1]["agreements"])
    pd.testing.assert_frame_equal(again["performance"], done[1]["performance"])


def test_a_run_that_was_killed_ends_the_same(done, tmp_path: Path, monkeypatch) -> None:
    sst(tmp_path)
    run, whole = ClassificationRun("sst", "learned", 1), stage.look_at

    def killed_late(model, texts, quantities, step):
        if step == 60:
            raise KeyboardInterrupt
        return whole(model, texts, quantities, step)

    monkeypatch.setattr(stage, "look_at", killed_late)
    monkeypatch.setattr("attnscope.reproduce.snell2021.training.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        do_classification_run(tmp_path, SCALE, run)
    assert (tmp_path / "sst" / "learned-1.growing" / "checkpoint.safetensors").exists()
    monkeypatch.setattr(stage, "look_at", whole)
    rows = do_classification_run(tmp_path, SCALE, run)
    assert rows == do_classification_run(done[0], SCALE, run)
    files = [place / "sst" / "learned-1" / "training" / "60.safetensors" for place in (tmp_path, done[0])]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_data_is_cut_to_the_scale() -> None:
    texts = cut(toy_polarity(), DataScale(steps=1, others=1, longest=4, train=50, validation=20, sample=10), ends=0)
    assert (len(texts.train), len(texts.dev), len(texts.test)) == (50, 20, 10)
    assert set(np.concatenate([texts.train.lengths, texts.dev.lengths])) == {6}
    numbers = {name: texts.vocabulary.number(name) for name in ("bos", "eos")}
    assert all((text[0], text[-1]) == (numbers["bos"], numbers["eos"]) for text in texts.dev)
    counts = np.bincount(texts.train.tokens, minlength=len(texts.vocabulary))
    assert counts[4:].min() >= 3


def test_the_paper_s_scale_is_the_paper_s() -> None:
    assert all((each.steps, each.others, each.longest) == (4_000, 5, None) for each in PAPER.data.values())
    assert (PAPER.hidden, PAPER.width, PAPER.proxy_epochs) == (256, 300, 60)
    assert [run.kind for run in runs_of("sst", CPU)].count("learned") == 6
    assert (proxy_rate("imdb"), proxy_rate("sst")) == (5e-5, 1.5e-4)


def test_words_may_begin_as_given_vectors(done, tmp_path: Path) -> None:
    vocabulary = sst(done[0]).vocabulary
    first, second, *_ = vocabulary.words
    glove = tmp_path / "glove.txt"
    glove.write_text(f"{second} 1 2 3\nelsewhere 7 8 9\n")
    sst(tmp_path, glove)
    own = tmp_path / "sst"
    assert (embedding_width(own, 16), embedding_width(done[0] / "sst", 16)) == (3, 16)
    table = torch.nn.Embedding(len(vocabulary), 3)
    before = table.weight.detach().clone()
    begin_with_vectors(table, own)
    place = vocabulary.encode([second])[0]
    assert table.weight[place].tolist() == [1.0, 2.0, 3.0]
    changed = (table.weight != before).any(1).nonzero().flatten().tolist()
    assert changed == [place] != vocabulary.encode([first])
    run = ClassificationRun("sst", "uniform", 1)
    assert (
        do_classification_run(tmp_path, SCALE, run)[0]["loss"] != do_classification_run(done[0], SCALE, run)[0]["loss"]
    )
    with pytest.raises(BadInput, match="is now not given"):
        sst(tmp_path)
