"""The training of one recurrent classifier, with what it thinks of every word kept at the paper's steps.

Snell et al. 2021, A.8: Adam at a constant 0.001, 32 texts to a step, mean cross-entropy, no dropout; looked at after 0,
10, 50, 100, 150, 200 and 250 steps and then every 250.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from ..errors import BadInput
from .batches import TextBatches
from .data.packed import PackedTexts
from .models.recurrent_classifier import RecurrentClassifier
from .probes import Probe
from .probes.saliency import read_with_saliency
from .snapshots import Snapshot
from .train import LogRow, Measurement, adam, constant, train

RATE, BATCH = 1e-3, 32
FIRST_LOOKS, EVERY = (0, 10, 50, 100, 150, 200), 250
QUANTITIES = ("attention", "lexical", "saliency")
TOGETHER = 64
"""Texts that are looked at at once."""
SECONDS_BETWEEN_CHECKPOINTS = 120.0  # the optimizer's moments of large vocabularies are hundreds of megabytes


def checkpoints(steps: int) -> tuple[int, ...]:
    """The steps at which the paper looks, the last step included.

    >>> checkpoints(600)
    (0, 10, 50, 100, 150, 200, 250, 500, 600)
    """
    return tuple(sorted({step for step in (*FIRST_LOOKS, *range(EVERY, steps, EVERY)) if step < steps} | {steps}))


def only_attention_learns(model: RecurrentClassifier) -> RecurrentClassifier:
    """The model with all weights frozen but those of its attention, in place (A.6)."""
    for name, weights in model.named_parameters():
        weights.requires_grad_(name.startswith("attention"))
    return model


def train_recurrent(
    model: RecurrentClassifier,
    texts: PackedTexts,
    checkpoint: str | Path,
    *,
    seed: int = 0,
    steps: int,
    batch: int = BATCH,
    probes: Sequence[Probe] = (),
    said: Mapping[str, Any] | None = None,
) -> list[LogRow]:
    """Train in place on texts in an order that depends on the seed alone, and return the log.

    Of a training that was stopped, it goes on from the checkpoint. `said` is what else tells this training from others,
    in JSON terms, such as the name of the data set.
    """
    if (texts.labels >= len(model.classes)).any() or (texts.labels < 0).any():
        raise BadInput(f"Classes are numbers from 0: for {' and '.join(model.classes)} give 0 and 1.")
    recipe = {
        "task": "recurrent classifier",
        "texts": texts.fingerprint,
        "model": asdict(model.settings),
        "seed": seed,
        "steps": steps,
        "batch": batch,
        **(said or {}),
    }
    with torch.random.fork_rng(devices=[]):
        log = train(
            model,
            _measuring(model, texts, batch, seed),
            constant(RATE),
            steps,
            recipe,
            Path(checkpoint),
            SECONDS_BETWEEN_CHECKPOINTS,
            optimizer=adam,
            longest_gradient=math.inf,
            probes=probes,
        )
    model.eval()
    return log


def _measuring(model: RecurrentClassifier, texts: PackedTexts, batch: int, seed: int) -> Callable[[int], Measurement]:
    batches = TextBatches(texts, batch, seed)

    def measure(step: int) -> Measurement:
        ids, real, classes = batches[step]
        logits = model(ids, real)
        right = float((model.predicted(logits) == classes).float().mean())
        return Measurement(model.loss(logits, classes), right)

    return measure


def look_at(model: RecurrentClassifier, texts: PackedTexts, quantities: Sequence[str], step: int) -> Snapshot:
    """Quantities of every position of these texts, with accuracy and mean loss.

    They are "attention", α; "lexical", the logit of β for the right class; and "saliency", Δ, which takes a backward
    pass.
    """
    if unknown := [name for name in quantities if name not in QUANTITIES]:
        raise BadInput(f"There is no quantity {unknown[0]!r}: choose of {', '.join(QUANTITIES)}.")
    # texts of like length together, so that little is computed for padding
    order = np.argsort(texts.lengths, kind="stable")
    width = int(texts.lengths.max())
    values = {name: torch.zeros(len(texts), width) for name in quantities}
    logits = torch.zeros(len(texts), 1)
    labels = torch.from_numpy(texts.labels)
    for start in range(0, len(order), TOGETHER):
        numbers = order[start : start + TOGETHER]
        found, told = _looked_at(model, texts, numbers, with_saliency="saliency" in quantities)
        chosen = torch.from_numpy(numbers)
        logits[chosen] = told
        for name, table in values.items():
            table[chosen, : found[name].shape[1]] = found[name]
    real = torch.arange(width) < torch.from_numpy(texts.lengths)[:, None]
    right = float((model.predicted(logits) == labels).double().mean())
    return Snapshot(step, {"accuracy": right, "loss": float(model.loss(logits, labels))}, values, real)


def _looked_at(
    model: RecurrentClassifier, texts: PackedTexts, numbers: Int64[np.ndarray, " text"], *, with_saliency: bool
) -> tuple[dict[str, Float[Tensor, "text token"]], Float[Tensor, "text 1"]]:
    ids, real = (torch.from_numpy(table) for table in texts.padded(numbers))
    labels = torch.from_numpy(texts.labels[numbers])
    found: dict[str, Float[Tensor, "text token"]] = {}
    if with_saliency:
        reading, found["saliency"] = read_with_saliency(model, ids, real, labels)
    else:
        reading = model.read(model.embeddings(ids), real)
    found["attention"] = reading.weights
    found["lexical"] = (2 * labels - 1)[:, None] * model.output(reading.states).squeeze(-1)
    return found, reading.logits
