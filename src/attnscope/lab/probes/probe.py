"""The Probe protocol: what watches a training loop, a step in, a row out."""

from collections.abc import Container, Mapping
from typing import Protocol, runtime_checkable


@runtime_checkable
class Probe(Protocol):
    """Looks at a model at chosen steps of its training.

    A step is the number of updates done: at 0 the model is as it was made, and at the number of steps it is finished.
    The model is in evaluation mode, without gradients (`torch.enable_grad()` brings them back). The rows go into the
    training's log, each with the step and the probe's name, and survive a kill with it.
    """

    @property
    def name(self) -> str:
        """What its rows are called in the log."""
        ...

    @property
    def steps(self) -> Container[int]:
        """When it looks: a range, a set, or anything else that knows what is in it."""
        ...

    def __call__(self, step: int) -> Mapping[str, int | float | str]:
        """What it sees."""
        ...
