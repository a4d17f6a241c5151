"""Snapshots come back as they were kept, and a training keeps them at its steps."""

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from attnscope.engine import save_checkpoint
from attnscope.errors import BadInput
from attnscope.lab.probes import Probe
from attnscope.lab.train import Measurement, train
from attnscope.reproduce.snell2021.snapshots import (
    Snapshot,
    SnapshotProbe,
    best_snapshot,
    load_snapshot,
    load_snapshots,
    save_snapshot,
)


def snapshot(step: int, accuracy: float) -> Snapshot:
    torch.manual_seed(step)
    real = torch.arange(5) < torch.tensor([5, 1, 3])[:, None]
    values = {name: torch.randn(3, 5).masked_fill(~real, 0.0) for name in ("attention", "saliency")}
    return Snapshot(step, {"accuracy": accuracy, "loss": 0.25}, values, real)


def test_a_snapshot_comes_back_bit_by_bit_without_its_padding(tmp_path: Path) -> None:
    made = snapshot(7, 0.5)
    made.values["attention"][~made.real] = math.nan
    save_snapshot(tmp_path / "7.safetensors", made)
    kept = load_snapshot(tmp_path / "7.safetensors")
    assert (kept.step, kept.performance) == (7, {"accuracy": 0.5, "loss": 0.25})
    assert torch.equal(kept.real, made.real)
    for name, table in made.values.items():
        assert torch.equal(kept.values[name][kept.real], table[made.real])
        assert (kept.values[name][~kept.real] == 0).all()


def test_snapshots_of_a_folder_are_in_order_and_the_first_best_is_found(tmp_path: Path) -> None:
    for step, accuracy in ((1000, 0.8), (0, 0.5), (50, 0.9), (250, 0.9)):
        save_snapshot(tmp_path / f"{step}.safetensors", snapshot(step, accuracy))
    kept = list(load_snapshots(tmp_path))
    assert [each.step for each in kept] == [0, 50, 250, 1000]
    assert best_snapshot(kept).step == 50
    assert best_snapshot(kept, by="loss").step == 0


def test_a_probe_keeps_a_snapshot_at_each_of_its_steps(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)

    def look(step: int) -> Snapshot:
        return Snapshot(step, {"accuracy": 0.5}, {"attention": model.weight.detach().clone()}, torch.ones(1, 2).bool())

    probe = SnapshotProbe("validation", tmp_path / "kept", {0, 2, 3}, look)
    assert isinstance(probe, Probe)
    log = train(
        model,
        lambda _step: Measurement(model(torch.ones(1, 2)).square().sum(), 0.0),
        lambda _step: 0.1,
        3,
        {},
        tmp_path / "checkpoint",
        probes=[probe],
    )
    assert [row["step"] for row in log if row.get("probe") == "validation"] == [0, 2, 3]
    kept = list(load_snapshots(tmp_path / "kept"))
    assert [each.step for each in kept] == [0, 2, 3]
    assert torch.equal(kept[-1].values["attention"], model.weight)
    assert not torch.equal(kept[0].values["attention"], kept[1].values["attention"])


def test_what_is_no_snapshot_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="padding behind"):
        Snapshot(0, {}, {}, torch.tensor([[False, True]]))
    with pytest.raises(BadInput, match="no snapshots in"):
        load_snapshots(tmp_path)
    save_checkpoint(tmp_path / "0.safetensors", {"step": 3})
    with pytest.raises(BadInput, match="not a snapshot"):
        load_snapshot(tmp_path / "0.safetensors")
