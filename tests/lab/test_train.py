"""The training loop learns, and a kill changes nothing about its end."""

import json
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

import pytest
import torch
from torch import nn

from attnscope.engine import Store
from attnscope.errors import BadInput
from attnscope.lab.batches import Batches
from attnscope.lab.train import (
    EarlyStopping,
    LogRow,
    Measurement,
    constant,
    cosine_restarts,
    train,
    warmup_then_decay,
    write_log,
)

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
    with pytest.raises(BadInput, match="belongs to another training"):
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


class Weights:
    """A probe that draws random numbers, changes the mode and looks at the weights, to disturb if it can."""

    name = "weights"

    def __init__(self, model: nn.Module, steps: Iterable[int]) -> None:
        self.model, self.steps = model, set(steps)

    def __call__(self, step: int) -> dict[str, float]:
        assert not self.model.training
        assert not torch.is_grad_enabled()
        torch.rand(3)
        return {"norm": sum(parameter.norm().item() for parameter in self.model.parameters())}


def stopped_run(
    model: nn.Module, checkpoint: Path, figures: list[float], dies_at: int | None = None, patience: int = 3
) -> list[LogRow]:
    """A training whose validation figures are given: one for every 20 steps."""
    looks = iter(figures)
    if checkpoint.exists():  # the same look at the same step, also after a kill
        done = [
            row
            for row in Store(checkpoint, "training", {"task": "stopped"}).find("checkpoint")["log"]
            if "validation" in row
        ]
        looks = iter(figures[len(done) :])
    return train(
        model,
        measuring(model, dies_at),
        warmup_then_decay(peak=0.03, warmup=10, steps=1000),
        1000,
        {"task": "stopped"},
        checkpoint,
        seconds_between_checkpoints=0.0,
        optimizer=lambda model: torch.optim.SGD(model.parameters(), momentum=0.9),
        stopping=EarlyStopping(lambda: next(looks), every=20, patience=patience),
        probes=[Weights(model, range(0, 1001, 30))],
    )


FIGURES = [0.5, 0.6, 0.7, 0.65, 0.7, 0.6, 0.9]


def test_it_stops_when_nothing_gets_better_and_has_its_best_weights(tmp_path: Path) -> None:
    model = small_model()
    log = stopped_run(model, tmp_path / "checkpoint", FIGURES)
    assert [row["validation"] for row in log if "validation" in row] == FIGURES[:6]
    assert log[-1]["step"] == 120
    assert [row["step"] for row in log if "probe" in row] == [0, 30, 60, 90, 120]
    (best,) = [row["norm"] for row in log if row.get("probe") == "weights" and row["step"] == 60]
    assert best == pytest.approx(sum(parameter.norm().item() for parameter in model.parameters()), abs=1e-6)


@pytest.mark.parametrize("dies_at", [0, 20, 55, 60, 99, 110, 119])
def test_killed_and_resumed_it_stops_with_the_same_bits(tmp_path: Path, dies_at: int) -> None:
    whole = small_model()
    log = stopped_run(whole, tmp_path / "whole", FIGURES)
    with pytest.raises(KeyboardInterrupt):
        stopped_run(small_model(), tmp_path / "killed", FIGURES, dies_at)
    resumed = small_model()
    assert stopped_run(resumed, tmp_path / "killed", FIGURES) == log
    for name, tensor in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], tensor), name
    again = small_model()
    assert stopped_run(again, tmp_path / "killed", FIGURES, dies_at=0) == log, "what has stopped stays so"
    assert torch.equal(again[0].weight, whole[0].weight)


def test_probes_and_looks_do_not_disturb(tmp_path: Path) -> None:
    plain = small_model()
    log = run(plain, tmp_path / "plain")
    watched = small_model()
    watched_log = train(
        watched,
        measuring(watched),
        warmup_then_decay(peak=0.03, warmup=10, steps=STEPS),
        STEPS,
        {},
        tmp_path / "watched",
        probes=[Weights(watched, range(0, STEPS + 1, 7))],
        stopping=EarlyStopping(lambda: float(torch.rand(1)) + next(rising), every=11, patience=1),
    )
    assert [row for row in watched_log if "loss" in row] == log
    assert all(torch.equal(plain.state_dict()[name], tensor) for name, tensor in watched.state_dict().items())


rising = count(start=0, step=2)  # every look is better than the last


def test_a_patience_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="must both be at least 1"):
        EarlyStopping(lambda: 0.0, every=10, patience=0)


def test_learning_rates_have_their_shapes() -> None:
    assert [constant(0.1)(step) for step in (0, 9)] == [0.1, 0.1]
    rate = cosine_restarts(peak=2.0, first=10, longer=5)
    assert rate(0) == rate(10) == rate(60) == 2.0
    assert rate(5) == pytest.approx(1.0)
    assert rate(35) == pytest.approx(1.0)


@pytest.mark.parametrize("size", [1, 3, 7, 50])
def test_an_epoch_has_every_example_once_in_batches_of_like_length(size: int) -> None:
    lengths = [(number * 7) % 23 for number in range(40)]
    batches = Batches(lengths, size, seed=5)
    for epoch in range(3):
        steps = range(epoch * len(batches), (epoch + 1) * len(batches))
        assert sorted(place for step in steps for place in batches[step]) == list(range(40))
        for step in steps:
            assert [lengths[place] for place in batches[step]] == sorted(lengths[place] for place in batches[step])
    again = Batches(lengths, size, seed=5)
    assert again[len(batches) + 1] == batches[len(batches) + 1], "a batch depends on seed and step alone"
    if size < 40:
        assert [batches[step] for step in range(len(batches))] != [
            batches[step] for step in range(len(batches), 2 * len(batches))
        ]


def test_a_loss_that_is_not_finite_ends_the_training_and_leaves_nothing(tmp_path: Path) -> None:
    model = small_model()

    def measure(step: int) -> Measurement:
        found = measuring(model)(step)
        return Measurement(found.loss * (float("nan") if step == 60 else 1.0), found.accuracy)

    checkpoint = tmp_path / "model" / "unfinished"
    with pytest.raises(BadInput, match=r"^The training has come to nothing: its loss at step 60 is nan, so look for"):
        train(model, measure, constant(0.01), 100, {}, checkpoint, seconds_between_checkpoints=0.0)
    assert list(tmp_path.iterdir()) == []
