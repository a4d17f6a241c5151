"""The training loop learns, and a kill changes nothing about its end."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from attnscope.errors import BadInput
from attnscope.lab.train import LogRow, Measurement, train, warmup_then_decay, write_log

STEPS = 130


def small_model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))


def measuring(model: nn.Module, dies_at: int | None = None) -> Callable[[int], Measurement]:
    def measure(step: int) -> Measurement:
        if step == dies_at:
            raise KeyboardInterrupt
        inputs = torch.randn(32, 4, generator=torch.Generator().manual_seed(step))
        targets = (inputs[:, 0] > 0).long()
        logits = model(inputs)
        accuracy = (logits.argmax(-1) == targets).float().mean().item()
        return Measurement(nn.functional.cross_entropy(logits, targets), accuracy)

    return measure


def run(model: nn.Module, checkpoint: Path, dies_at: int | None = None, seed: int = 0) -> list[LogRow]:
    rate = warmup_then_decay(peak=0.03, warmup=10, steps=STEPS)
    recipe = {"task": "sign", "seed": seed}
    return train(model, measuring(model, dies_at), rate, STEPS, recipe, checkpoint, seconds_between_checkpoints=0.0)


def test_it_learns_and_keeps_a_log(tmp_path: Path) -> None:
    log = run(small_model(), tmp_path / "checkpoint")
    assert [row["step"] for row in log] == [50, 100, 130]
    assert log[-1]["loss"] < 0.5 * log[0]["loss"]
    assert log[-1]["accuracy"] > 0.9


@pytest.mark.parametrize("dies_at", [0, 30, 50, 119])
def test_killed_and_resumed_it_ends_with_the_same_bits(tmp_path: Path, dies_at: int) -> None:
    whole = small_model()
    log = run(whole, tmp_path / "whole")

    with pytest.raises(KeyboardInterrupt):
        run(small_model(), tmp_path / "killed", dies_at)
    resumed = small_model()
    torch.rand(7)  # the generator stands elsewhere in the new process
    if not (tmp_path / "killed").exists():  # killed before its first checkpoint: from the start, with its own seed
        resumed = small_model()
    assert run(resumed, tmp_path / "killed") == log
    for name, tensor in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], tensor), name


def test_a_finished_training_is_not_trained_further(tmp_path: Path) -> None:
    model = small_model()
    log = run(model, tmp_path / "checkpoint")
    again = small_model()
    assert run(again, tmp_path / "checkpoint", dies_at=STEPS - 1) == log
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in model.state_dict().items())


def test_the_checkpoint_of_another_recipe_is_refused(tmp_path: Path) -> None:
    run(small_model(), tmp_path / "checkpoint")
    with pytest.raises(BadInput, match="belongs to the training"):
        run(small_model(), tmp_path / "checkpoint", seed=1)


def test_the_learning_rate_rises_and_falls() -> None:
    rates = [warmup_then_decay(peak=2.0, warmup=5, steps=20)(step) for step in range(20)]
    assert max(rates) == rates[4] == 2.0
    assert rates[:5] == sorted(rates[:5])
    assert rates[5:] == sorted(rates[5:], reverse=True)
    assert min(rates) > 0


def test_the_log_is_written_as_json_lines(tmp_path: Path) -> None:
    rows = [{"step": 50, "loss": 0.5}, {"step": 100, "loss": 0.25}]
    write_log(tmp_path / "log.jsonl", rows)
    assert [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()] == rows
