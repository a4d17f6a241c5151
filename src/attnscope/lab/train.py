"""The training loop of all small models: it can be killed at any moment and then ends with the very same weights."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer

from ..engine import Store
from ..errors import BadInput
from ..files import written_atomically
from ..progress import tell_log
from ..terminal import PlainConsole
from .probes import Probe

# Early stopping: a training ends when a figure on held-out data no longer grows, and keeps its best weights.


@dataclass(frozen=True)
class EarlyStopping:
    """When to stop: after `patience` looks in a row, one `every` so many steps, that brought no new best.

    `figure()` measures the model on held-out data, the higher the better (of a loss, give the negative). It is called
    in evaluation mode and without gradients, and its random numbers do not touch those of the training.
    """

    figure: Callable[[], float]
    every: int
    patience: int

    def __post_init__(self) -> None:
        if self.every < 1 or self.patience < 1:
            raise BadInput(f"every={self.every} and patience={self.patience} must both be at least 1.")


@dataclass
class Best:
    """The best weights so far, their figure and their step, and how many looks have brought nothing better since."""

    figure: float | None = None
    step: int = 0
    looks_since: int = 0
    weights: dict[str, Tensor] | None = None

    def see(self, figure: float, step: int, model: nn.Module) -> None:
        """Keep the weights if this is a new best."""
        if self.figure is not None and not figure > self.figure:
            self.looks_since += 1
            return
        self.figure, self.step, self.looks_since = figure, step, 0
        self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    def restore(self, model: nn.Module) -> None:
        """Give the model its best weights back, if there are any."""
        if self.weights is not None:
            model.load_state_dict(self.weights)


def look_at(model: nn.Module, look: Callable[[], Any]) -> Any:
    """What `look` finds in the model in evaluation mode; the training continues as if nobody had looked."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            return look()
    finally:
        for module, mode in modes:
            module.training = mode


# Learning rates over time: each is a function that gives the rate of a step, counted from zero.


Rate = Callable[[int], float]


def constant(rate: float) -> Rate:
    """The same learning rate at every step."""
    return lambda _step: rate


def warmup_then_decay(peak: float, warmup: int, steps: int) -> Rate:
    """The learning rate at each step: up in a line to `peak`, then down in a line to zero after the last step.

    >>> rate = warmup_then_decay(peak=1.0, warmup=2, steps=6)
    >>> [rate(step) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """

    def rate(step: int) -> float:
        return peak * min((step + 1) / max(1, warmup), (steps - step) / max(1, steps - warmup))

    return rate


def cosine_restarts(peak: float, first: int, longer: int | float) -> Rate:
    """Down from `peak` along half a cosine and up again at once: `first` steps, then `longer` times as many.

    Loshchilov & Hutter 2017, with T_0 = `first` and T_mult = `longer`.

    >>> rate = cosine_restarts(peak=1.0, first=2, longer=2)
    >>> [round(rate(step), 2) for step in range(7)]
    [1.0, 0.5, 1.0, 0.85, 0.5, 0.15, 1.0]
    """

    def rate(step: int) -> float:
        begun, length = 0.0, float(first)
        while step >= begun + length:
            begun, length = begun + length, length * longer
        return peak * (1 + math.cos(math.pi * (step - begun) / length)) / 2

    return rate


STEPS_PER_ROW = 50  # of the log

LogRow = dict[str, int | float | str]
"""step, loss, accuracy and learning_rate; or step and validation; or step, probe and what the probe saw."""


@dataclass(frozen=True)
class Measurement:
    """What one batch gave: the loss to descend, and the share of right answers."""

    loss: Float[Tensor, ""]
    accuracy: float


def adamw(model: nn.Module) -> Optimizer:
    """AdamW with the usual weight decay; the loop sets the learning rate."""
    return AdamW(model.parameters(), weight_decay=0.01, fused=True)


def adam(model: nn.Module, penalty: float = 0.0) -> Optimizer:
    """Adam, with an L2 penalty where one is given; the loop sets the learning rate. Frozen weights stay as they are."""
    learned = [weights for weights in model.parameters() if weights.requires_grad]
    return Adam(learned, weight_decay=penalty, fused=True)


@dataclass
class TrainingState:
    """How far a training is: the updates done, whether it is over, and what it has seen."""

    step: int = 0
    over: bool = False
    log: list[LogRow] = field(default_factory=list)
    best: Best = field(default_factory=Best)


def train(
    model: nn.Module,
    measure: Callable[[int], Measurement],
    learning_rate: Rate,
    steps: int,
    recipe: Mapping[str, Any],
    checkpoint: Path,
    seconds_between_checkpoints: float = 30.0,
    *,
    optimizer: Callable[[nn.Module], Optimizer] = adamw,
    longest_gradient: float = 1.0,
    stopping: EarlyStopping | None = None,
    probes: Sequence[Probe] = (),
) -> list[LogRow]:
    """Train `model` in place and return the log, one row for every 50 steps.

    `measure(step)` runs the model on the batch of that step. The batch must depend on the step alone; randomness inside
    the model (dropout) comes from torch's generator, which the checkpoint holds. `optimizer(model)` makes the
    optimizer; gradients longer than `longest_gradient` (all together, by the Euclidean norm) are shortened to it.

    With `stopping` the training may end before `steps`, and the model has its best weights at the end. Each of `probes`
    looks at its steps. What both see are rows of the log.

    `checkpoint` is the folder of a `Store` that keeps the whole state; what it already holds is continued. `recipe`
    says what is trained, in JSON terms, and a folder of another recipe is refused. A loss that is not finite ends the
    training and removes the folder.
    """
    rule = optimizer(model)
    store = Store(checkpoint, "training", recipe)
    state = _load(store, model, rule)
    model.train()
    saved = time.monotonic()
    measurements: list[tuple[float, float]] = []
    with _progress() as progress:
        task = progress.add_task("", total=steps, completed=state.step, figures="")
        if state.step == 0:
            _probe(model, probes, state)
        while state.step < steps and not state.over:
            rate = learning_rate(state.step)
            for group in rule.param_groups:
                group["lr"] = rate
            measurement = measure(state.step)
            loss = measurement.loss.item()
            if not math.isfinite(loss):
                store.clear()  # it would only lead to the same end again
                raise BadInput(
                    f"The training has come to nothing: its loss at step {state.step} is {loss},"
                    " so look for what is not finite in the data or the model that it begins with."
                )
            rule.zero_grad()
            measurement.loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), longest_gradient)
            rule.step()
            measurements.append((loss, measurement.accuracy))
            state.step += 1
            progress.advance(task)
            _probe(model, probes, state)
            if stopping is not None and (state.step % stopping.every == 0 or state.step == steps):
                _validate(model, stopping, state)
            last = state.step == steps or state.over
            if len(measurements) == STEPS_PER_ROW or last:
                mean_loss, accuracy = (sum(column) / len(column) for column in zip(*measurements, strict=True))
                state.log.append({"step": state.step, "loss": mean_loss, "accuracy": accuracy, "learning_rate": rate})
                figures = f"loss {mean_loss:.3f}  accuracy {accuracy:.1%}{_best(state)}"
                progress.update(task, figures=figures)
                tell_log(f"step {state.step} of {steps}  {figures}")
                measurements = []
                # Only here, where a row ends, so that a checkpoint needs no half-filled row.
                if time.monotonic() - saved >= seconds_between_checkpoints or last:
                    _save(store, model, rule, state)
                    saved = time.monotonic()
    state.best.restore(model)
    return state.log


def _probe(model: nn.Module, probes: Sequence[Probe], state: TrainingState) -> None:
    """Let the probes that are due look."""
    for probe in probes:
        if state.step in probe.steps:
            seen = look_at(model, partial(probe, state.step))
            state.log.append({"step": state.step, "probe": probe.name, **seen})


def _validate(model: nn.Module, stopping: EarlyStopping, state: TrainingState) -> None:
    """Look at held-out data, keep what is best, and stop where nothing better comes."""
    figure = float(look_at(model, stopping.figure))
    state.log.append({"step": state.step, "validation": figure})
    state.best.see(figure, state.step, model)
    state.over = state.best.looks_since >= stopping.patience


def _best(state: TrainingState) -> str:
    return "" if state.best.figure is None else f"  best {state.best.figure:.3f} at {state.best.step}"


CHECKPOINT = "checkpoint"
"""The one part of the store."""


def _save(store: Store, model: nn.Module, rule: Optimizer, state: TrainingState) -> None:
    kept = {"model": model.state_dict(), "optimizer": rule.state_dict(), "random": torch.get_rng_state()}
    store.keep(CHECKPOINT, {**kept, **vars(state), "best": vars(state.best)})


def _load(store: Store, model: nn.Module, rule: Optimizer) -> TrainingState:
    """How far the training in the store is; model, optimizer and torch's generator are as they were then."""
    kept = store.find(CHECKPOINT)
    if kept is None:
        return TrainingState()
    try:
        model.load_state_dict(kept["model"])
    except RuntimeError:
        raise BadInput(
            f"{store.folder} holds weights of another shape than this model's: choose another folder."
        ) from None
    rule.load_state_dict(kept["optimizer"])
    torch.set_rng_state(kept["random"])
    return TrainingState(kept["step"], kept["over"], kept["log"], Best(**kept["best"]))


def write_log(path: Path, log: Sequence[LogRow]) -> None:
    """Write the log as JSON lines."""
    with written_atomically(path) as temporary:
        temporary.write_text("".join(json.dumps(row) + "\n" for row in log), encoding="utf-8")


def _progress() -> Progress:
    """A bar with loss, accuracy and the time left, on a terminal."""
    console = PlainConsole(stderr=True)
    return Progress(
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
