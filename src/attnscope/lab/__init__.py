"""Small models trained here: every task by its name, a function `(out, seed, resume, steps, …) -> out`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from .agreement import train_agreement
from .classifier import train_classifier
from .demo_model import train_demo
from .sentiment_training import train_sst5

TASKS: Mapping[str, Callable[..., Path]] = {
    "demo": train_demo,
    "agreement": train_agreement,
    "classifier": train_classifier,
    "sst5": train_sst5,
}

__all__ = ["TASKS", "train_agreement", "train_classifier", "train_demo", "train_sst5"]
