"""The training of one Seq2Seq on endless sequences to copy, looked at as it learns (Snell et al. 2021, section 3.3)."""

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from .data.copying import CopyingTask
from .models.seq2seq import Seq2Seq
from .train import LogRow, Measurement, adam, constant, train

RATE = 1e-3
LOOKED_AT = 1_000_000
"""Sequences that a model is looked at with are drawn as for steps from here on, which no training reaches."""


@dataclass(frozen=True, eq=False)
class CopyingAccuracy:
    """Loss and accuracy on fresh sequences, each word told after the right ones before it, the end included."""

    model: Seq2Seq
    task: CopyingTask
    seed: int
    steps: Container[int]
    sequences: int = 50
    fixed: bool = False
    """Whether it looks with the same sequences every time."""
    name: str = field(default="copying", init=False)

    def drawn(self, step: int) -> tuple[Int[Tensor, "row place"], Int[Tensor, "row place"], Int[Tensor, "row place"]]:
        """The sequences of a step."""
        return self.task.batch(self.sequences, self.seed, LOOKED_AT + (0 if self.fixed else step))

    def __call__(self, step: int) -> Mapping[str, float]:
        """Both figures."""
        source, read, right = self.drawn(step)
        logits = self.model(source, read)
        return {"accuracy": self.model.accuracy(logits, right), "loss": float(self.model.loss(logits, right))}


@dataclass(frozen=True, eq=False)
class CopyingLexical(CopyingAccuracy):
    """The same, and log β: its mean at the place of the right word and elsewhere, and how often it is largest there."""

    def __call__(self, step: int) -> Mapping[str, float]:
        """All figures; the end, which has no word of its own in the source, does not count for β."""
        source, read, right = self.drawn(step)
        length = self.task.length
        found = self.model.lexical(source, read[:, :length], right[:, :length])
        here = source.unsqueeze(1) == right[:, :length, None]
        return {
            **super().__call__(step),
            "lexical_right": float(found[here].mean()),
            "lexical_other": float(found[~here].mean()),
            "lexical_top": float(here.gather(2, found.argmax(2, keepdim=True)).float().mean()),
        }


def train_copying(
    model: Seq2Seq,
    task: CopyingTask,
    checkpoint: Path,
    *,
    seed: int,
    steps: int,
    batch: int,
    looks: CopyingAccuracy,
    said: Mapping[str, Any] | None = None,
) -> list[LogRow]:
    """Train in place on sequences that depend on the seed and the step alone, and return what was seen.

    `said` is what else tells this training from others, in JSON terms, such as how the model began.
    """

    def measure(step: int) -> Measurement:
        source, read, right = task.batch(batch, seed, step)
        logits = model(source, read)
        return Measurement(model.loss(logits, right), model.accuracy(logits.detach(), right))

    recipe = {
        "task": "copying",
        "sequences": [task.length, task.words, task.sets, task.reordered],
        "seed": seed,
        "steps": steps,
        "batch": batch,
        **(said or {}),
    }
    with torch.random.fork_rng(devices=[]):
        log = train(
            model,
            measure,
            constant(RATE),
            steps,
            recipe,
            checkpoint,
            optimizer=adam,
            longest_gradient=math.inf,
            probes=(looks,),
        )
    model.eval()
    return [{name: value for name, value in row.items() if name != "probe"} for row in log if "probe" in row]
