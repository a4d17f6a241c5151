"""Small models trained here: every task by its name, a function `(out, seed, resume, steps) -> out`."""

from .demo_model import train_demo

TASKS = {"demo": train_demo}

__all__ = ["TASKS", "train_demo"]
