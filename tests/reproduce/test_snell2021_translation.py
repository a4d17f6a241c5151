"""The translation stage of Snell et al. (2021), on a language that is translated word for word."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from attnscope.engine import Store
from attnscope.lab.probes.saliency import contextualised
from attnscope.lab.probes.top_agreement import top_agreement
from attnscope.reproduce.snell2021 import translation as stage
from attnscope.reproduce.snell2021.agreements import grouped_error, row_agreement
from attnscope.reproduce.snell2021.paper import SCALES
from attnscope.reproduce.snell2021.snapshots import load_snapshot, load_snapshots

SCALE, PAPER = (SCALES[name].translation for name in ("smoke", "paper"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translation")
    return folder, stage.run_translation(folder, SCALE)


def test_checkpoints_are_the_papers() -> None:
    assert PAPER.checkpoints[:8] == [0, 50, 100, 500, 1000, 1500, 2000, 4000]
    assert PAPER.checkpoints[-2:] == [36_000, 36_260]
    assert SCALE.checkpoints == [0, 5, 10]


def test_every_pair_has_its_curve(run) -> None:
    _, tables = run
    table = tables["agreements"]
    assert set(table["part"]) == {"validation", "training"}
    for pair in ("attention_uniform", "uniform_proxy", "saliency_uniform", "attention_lexical", "attention_attention"):
        for _, rows in table[table["pair"] == pair].groupby(["part", "seeds"]):
            assert rows["step"].tolist() == SCALE.checkpoints
    shares = table[["agreement", "chance", "shuffled", "tied"]]
    assert ((shares >= 0) & (shares <= 1)).all(axis=None)
    optimal = table[table["pair"] == "optimal_lexical"].set_index(["part", "seeds"])["agreement"]
    assert set(optimal.index.get_level_values("seeds")) == {"same", "two"}
    assert (optimal.xs("same", level="seeds") > 0.3).all()  # β and what is best for it, of one model


def test_agreements_come_from_the_snapshots(run) -> None:
    folder, tables = run
    best = load_snapshot(folder / "learned-0" / "best" / "validation.safetensors")
    proxy = load_snapshot(folder / "proxy-0" / "best" / "validation.safetensors").values["lexical"]
    table = tables["agreements"]
    table = table[(table["part"] == "validation") & (table["seeds"] == "two")]
    for name, pair, first in (
        ("uniform-2", "attention_uniform", best.values["attention"]),
        ("uniform-2", "saliency_uniform", best.values["saliency"]),
        ("uniform-2", "uniform_proxy", proxy),
        ("learned-1", "attention_lexical", best.values["attention"]),
    ):
        expected = [
            top_agreement(first, shot.values["lexical"], shot.real).double().mean().item()
            for shot in load_snapshots(folder / name / "validation")
        ]
        assert table[table["pair"] == pair]["agreement"].tolist() == pytest.approx(expected)
    optimal, other = (
        load_snapshot(folder / name / "best" / "validation.safetensors") for name in ("sum-0", "learned-1")
    )
    expected = top_agreement(optimal.values["optimal"], other.values["lexical"], other.real).double().mean().item()
    assert table[table["pair"] == "optimal_lexical"]["agreement"].tolist() == pytest.approx([expected])


def test_contexts_are_read_off_the_curve_of_run_b(run) -> None:
    _, tables = run
    agreements, contexts, performance = (tables[name] for name in ("agreements", "contexts", "performance"))
    assert set(contexts["measure"]) == {"accuracy", "bleu"}
    for _, row in contexts.iterrows():
        chosen = agreements[(agreements["part"] == row["part"])]
        curve = chosen[(chosen["pair"] == "attention_attention") & (chosen["seeds"] == "two")]
        runs = performance[
            (performance["kind"] == "learned") & (performance["seed"] == 1) & (performance["part"] == row["part"])
        ]
        scale = 100 if row["measure"] == "bleu" else 1
        points = list(zip(curve["step"], curve[row["by"]], runs[row["measure"]] / scale, strict=True))
        asked = chosen[(chosen["pair"] == row["pair"]) & (chosen["seeds"] == row["seeds"])][row["by"]].max()
        found = contextualised(asked, points)
        assert (row["performance"], row["step"], row["reached"]) == (found.performance, found.step, found.reached)
        assert row["best"] == points[-1][2]


def test_a_second_call_trains_nothing(run, monkeypatch) -> None:
    folder, tables = run
    monkeypatch.setattr(stage, "train_translation", None)
    monkeypatch.setattr(stage, "train_translation_bag", None)
    again = stage.run_translation(folder, SCALE)
    for name, table in tables.items():
        pd.testing.assert_frame_equal(again[name], table)


def test_a_run_that_was_killed_ends_the_same(tmp_path, monkeypatch) -> None:
    scale = dataclasses.replace(SCALE, steps=55, every=55, batch=2, beams=1, validation_pairs=2, training_pairs=1)
    data = stage.translation_data(tmp_path, scale)
    wanted = stage.TranslationRun("learned", 1)
    whole = stage.do_translation_run(tmp_path / "whole", scale, data, wanted)
    monkeypatch.setattr("attnscope.reproduce.snell2021.training.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    killed = tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(stage.TranslationLook, "__call__", _killed_at(55, stage.TranslationLook.__call__))
        with pytest.raises(KeyboardInterrupt):
            stage.do_translation_run(killed, scale, data, wanted)
    assert (killed / "learned-1.growing" / "checkpoint.safetensors").exists()
    assert Store(killed, "stage", {}).find("learned-1") is None
    assert stage.do_translation_run(killed, scale, data, wanted) == whole
    assert Store(killed, "stage", {}).find("learned-1") == whole
    for part in ("validation", "training"):
        shots = [
            load_snapshot(place / "learned-1" / "best" / f"{part}.safetensors")
            for place in (tmp_path / "whole", killed)
        ]
        assert torch.equal(shots[0].values["attention"], shots[1].values["attention"])


def _killed_at(step, look):
    def killed(self, now):
        if now == step:
            raise KeyboardInterrupt
        return look(self, now)

    return killed


def test_row_agreement_does_not_take_words_of_a_sentence_for_independent() -> None:
    draw = torch.Generator().manual_seed(0)
    first, second = (torch.rand(40, 9, generator=draw) for _ in range(2))
    real = torch.ones(40, 9, dtype=torch.bool)
    once = row_agreement(first, second, real)
    twice = row_agreement(
        *(table.repeat_interleave(4, 0) for table in (first, second, real)), torch.arange(40).repeat_interleave(4)
    )
    assert twice["agreement"] == once["agreement"]
    assert twice["error"] == pytest.approx(once["error"])
    hits = top_agreement(first, second, real).double().numpy()
    assert once["error"] == pytest.approx(np.std(hits, ddof=1) / np.sqrt(40))
    assert np.isnan(grouped_error(torch.ones(3), torch.zeros(3, dtype=torch.long)))
