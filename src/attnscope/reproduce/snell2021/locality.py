"""Locality, Figure 7: where the keyword is known under uniform attention, early and late in training (section 6.1)."""

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from ...errors import BadInput
from ...lab.copying_training import LOOKED_AT, RATE
from ...lab.models import RecurrentClassifier
from ...lab.train import Measurement, adam, constant, train
from ...lab.vocabulary import Vocabulary
from .kept_runs import Rows, all_runs, stage

# Endless sequences in two classes: the positive ones hold a keyword, once (Snell et al. 2021, section 6.1).


SPECIAL = {"pad": "[PAD]", "unk": "[UNK]"}
"""A sequence begins and ends with words, so that its last state is the state at a word."""


@dataclass(frozen=True)
class KeywordTask:
    """Sequences of `length` words out of `words`, drawn with replacement; the keyword is "1".

    >>> ids, classes, places = KeywordTask(length=5, words=4).batch(6, seed=0, step=0)
    >>> tuple(ids.shape), classes.tolist(), bool((places[classes == 0] == -1).all())
    ((6, 5), [1, 1, 1, 0, 0, 0], True)
    """

    length: int = 40
    words: int = 40

    def __post_init__(self) -> None:
        if self.length < 1 or self.words < 2:
            raise BadInput(f"A sequence has a word and a language two: length={self.length}, words={self.words}.")

    @property
    def vocabulary(self) -> Vocabulary:
        """The words, named by their numbers; the keyword is the first."""
        return Vocabulary([str(number + 1) for number in range(self.words)], special=SPECIAL)

    def batch(
        self, rows: int, seed: int, step: int
    ) -> tuple[Int[Tensor, "row place"], Int[Tensor, " row"], Int[Tensor, " row"]]:
        """Sequences, their classes (half of them 1, first), and the keyword's place, -1 where there is none.

        They depend on the seed and the step alone. Words that are not the keyword are uniform over the others, which is
        what the paper's rejection of sequences gives: given how often the keyword appears, the others stay uniform.
        """
        random = np.random.default_rng([seed, step])
        ids = random.integers(1, self.words, (rows, self.length)) + len(SPECIAL)
        classes = (np.arange(rows) < rows - rows // 2).astype(np.int64)
        places = np.where(classes == 1, random.integers(self.length, size=rows), -1)
        positive = np.flatnonzero(classes)
        ids[positive, places[positive]] = len(SPECIAL)
        return torch.from_numpy(ids), torch.from_numpy(classes), torch.from_numpy(places)


@dataclass(frozen=True)
class LocalityScale:
    """How long the classifier is trained, and how often it is looked at."""

    length: int
    words: int
    hidden: int
    steps: int
    batch: int
    seeds: int
    every: int
    early: int
    """Up to this step it is looked at after every step, because what is local is lost soon."""
    sequences: int = 200

    @property
    def looks(self) -> frozenset[int]:
        """The steps at which it is looked at."""
        return frozenset(range(self.early)) | frozenset(range(0, self.steps + 1, self.every))

    @property
    def task(self) -> KeywordTask:
        """The sequences."""
        return KeywordTask(self.length, self.words)


SMOKE = LocalityScale(6, 5, 8, 20, 16, 2, 10, 2, sequences=20)
CPU = LocalityScale(40, 40, 256, 2000, 32, 3, 50, 30)
PAPER = LocalityScale(40, 40, 256, 10_000, 32, 5, 50, 50, sequences=1000)


def locality(folder: Path, scale: LocalityScale, engine: str = "local") -> pd.DataFrame:
    """One row for each seed and step: accuracy, loss, and the four log-odds on positive sequences.

    `keyword` and `after` are at the keyword's place and one behind it (γ_l* and γ_l*+1), `mean` is over all places, and
    `last` is at the last one (γ_L).
    Sequences whose keyword stands in the last place, or before it, are left out, so that the four are four places.
    """
    worker = partial(_worker, folder.resolve(), scale)
    return pd.DataFrame(all_runs("Locality", worker, list(range(scale.seeds)), engine))


def _worker(folder: Path, scale: LocalityScale) -> "partial[Rows]":
    return partial(one_run, folder, scale)


def one_run(folder: Path, scale: LocalityScale, seed: int) -> Rows:
    """What was seen of a seed, trained now, gone on with, or kept from before."""
    return stage(folder, scale).grow(f"{seed}", partial(_trained, scale, seed))


@dataclass(frozen=True, eq=False)
class KeywordLogits:
    """γ of positive sequences at four places, and how well the classes are told apart."""

    model: RecurrentClassifier
    scale: LocalityScale
    seed: int
    steps: Container[int]
    name: str = field(default="keyword", init=False)

    def __call__(self, step: int) -> Mapping[str, float]:
        """Means over fresh sequences."""
        ids, classes, places = self.scale.task.batch(self.scale.sequences, self.seed, LOOKED_AT + step)
        odds = self.model.word_logits(ids)
        # Attention is uniform, so that the answer is the mean over places (Eq. 8).
        logits = odds.mean(1, keepdim=True)
        kept = (classes == 1) & (places < self.scale.length - 2)
        odds, places = odds[kept], places[kept, None]
        seen = {
            "keyword": odds.gather(1, places),
            "after": odds.gather(1, places + 1),
            "mean": odds,
            "last": odds[:, -1],
        }
        return {
            "accuracy": float((self.model.predicted(logits) == classes).float().mean()),
            "loss": float(self.model.loss(logits, classes)),
            **{name: float(values.mean()) for name, values in seen.items()},
        }


def _trained(scale: LocalityScale, seed: int, checkpoint: Path) -> Rows:
    task = scale.task
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = RecurrentClassifier(
            task.vocabulary, width=scale.hidden, hidden=scale.hidden, bidirectional=False, attention="uniform"
        )

        def measure(step: int) -> Measurement:
            ids, classes, _ = task.batch(scale.batch, seed, step)
            logits = model(ids)
            return Measurement(model.loss(logits, classes), float((model.predicted(logits) == classes).float().mean()))

        log = train(
            model,
            measure,
            constant(RATE),
            scale.steps,
            {
                "task": "keyword",
                "seed": seed,
                "steps": scale.steps,
                "batch": scale.batch,
                "hidden": scale.hidden,
                "sequences": [scale.length, scale.words],
            },
            checkpoint,
            optimizer=adam,
            longest_gradient=math.inf,
            probes=(KeywordLogits(model, scale, seed, scale.looks),),
        )
    return [{"seed": seed, **row} for row in log if row.pop("probe", None)]
