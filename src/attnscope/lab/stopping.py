"""Early stopping: a training ends when a figure on held-out data no longer grows, and keeps its best weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import BadInput


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

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return dict(vars(self))


def looked_at(model: nn.Module, look: Callable[[], Any]) -> Any:
    """What `look` finds in the model, in evaluation mode; the training goes on as if nobody had looked."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            return look()
    finally:
        for module, mode in modes:
            module.training = mode
