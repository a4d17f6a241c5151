"""A small training loop that can be killed at any moment and then ends with the very same weights."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from ..engine import load_checkpoint, save_checkpoint
from ..errors import BadInput
from ..files import written_atomically

STEPS_PER_ROW = 50  # of the log

LogRow = dict[str, int | float]  # step, loss, accuracy, learning_rate


@dataclass(frozen=True)
class Measurement:
    """What one batch gave: the loss to descend, and the share of right answers."""

    loss: Float[Tensor, ""]
    accuracy: float


def warmup_then_decay(peak: float, warmup: int, steps: int) -> Callable[[int], float]:
    """The learning rate at each step: up in a line to `peak`, then down in a line to zero after the last step.

    >>> rate = warmup_then_decay(peak=1.0, warmup=2, steps=6)
    >>> [rate(step) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """

    def rate(step: int) -> float:
        return peak * min((step + 1) / max(1, warmup), (steps - step) / max(1, steps - warmup))

    return rate


def train(
    model: nn.Module,
    measure: Callable[[int], Measurement],
    learning_rate: Callable[[int], float],
    steps: int,
    recipe: Mapping[str, Any],
    checkpoint: Path,
    seconds_between_checkpoints: float = 30.0,
) -> list[LogRow]:
    """Train `model` in place with AdamW and return the log, one row for every 50 steps.

    `measure(step)` runs the model on the batch of that step. The batch must depend on the step alone; randomness inside
    the model (dropout) comes from torch's generator, which the checkpoint holds.

    If the file `checkpoint` exists, training goes on from it. `recipe` says what is trained, in JSON terms; a
    checkpoint of another recipe is refused.
    """
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01, fused=True)
    log: list[LogRow] = []
    start = 0
    if checkpoint.exists():
        state = load_checkpoint(checkpoint)
        if state["recipe"] != dict(recipe):
            raise BadInput(f"{checkpoint} belongs to the training {state['recipe']}, not to {dict(recipe)}.")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        log, start = state["log"], state["step"]

    def save(step: int) -> None:
        state = {
            "recipe": dict(recipe),
            "step": step,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "log": log,
        }
        save_checkpoint(checkpoint, state)

    model.train()
    saved = time.monotonic()
    losses: list[float] = []
    accuracies: list[float] = []
    with _progress() as progress:
        task = progress.add_task("", total=steps, completed=start, figures="")
        for step in range(start, steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step)
            measurement = measure(step)
            optimizer.zero_grad()
            measurement.loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(measurement.loss.item())
            accuracies.append(measurement.accuracy)
            progress.advance(task)
            if len(losses) == STEPS_PER_ROW or step + 1 == steps:
                loss, accuracy = sum(losses) / len(losses), sum(accuracies) / len(accuracies)
                log.append({"step": step + 1, "loss": loss, "accuracy": accuracy, "learning_rate": learning_rate(step)})
                progress.update(task, figures=f"loss {loss:.3f}  accuracy {accuracy:.1%}")
                losses, accuracies = [], []
                # Only here, where a row ends, so that a checkpoint needs no half-filled row.
                if time.monotonic() - saved >= seconds_between_checkpoints or step + 1 == steps:
                    save(step + 1)
                    saved = time.monotonic()
    return log


def write_log(path: Path, log: list[LogRow]) -> None:
    """Write the log as JSON lines."""
    with written_atomically(path) as temporary:
        temporary.write_text("".join(json.dumps(row) + "\n" for row in log), encoding="utf-8")


def _progress() -> Progress:
    """A bar with loss, accuracy and the time left; nothing at all where no one watches."""
    console = Console(stderr=True)
    return Progress(
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
