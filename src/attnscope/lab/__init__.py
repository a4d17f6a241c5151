"""Small models trained here: every task by its name, a function `(out, seed, resume, steps, …) -> out`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from .agreement import train_agreement
from .classifier import train_classifier
from .demo_model import train_demo

TASKS: Mapping[str, Callable[..., Path]] = {
    "demo": train_demo,
    "agreement": train_agreement,
    "classifier": train_classifier,
}

__all__ = ["TASKS", "train_agreement", "train_classifier", "train_demo"]
