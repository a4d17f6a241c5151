"""The training of one attention classifier that can be watched while it learns, by the authors' recipe.

`sweep` trains many runs at once and shows nothing until they are done; here every term can be seen as it drives the
scores of words (Sun & Lu 2020, sections 4.1 and 4.2).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Adagrad, Optimizer

from .batches import TextBatches
from .data.packed import ClassifiedTexts, PackedTexts
from .models.attention_classifier import AttentionClassifier
from .probes import Probe
from .probes.score_terms import NAMES, penalty_value
from .train import LogRow, Measurement, Rate, train

CURVES = {name: name for name in NAMES} | {"polarity": "polarity score", "attention": "attention score"}
"""What a probe sees of words, and what it is called in a table of curves."""


def decayed(rate: float, decay: float) -> Rate:
    """The authors' rate on real data: it falls with the number of updates."""
    return lambda step: rate / (1 + step * decay)


def adagrad(model: nn.Module) -> Optimizer:
    """The authors' optimizer on real data; the loop sets the rate."""
    return Adagrad(model.parameters())


def train_watched(
    data: ClassifiedTexts,
    make: Callable[[], AttentionClassifier],
    checkpoint: Path,
    *,
    epochs: int,
    rate: Rate = decayed(0.02, 0.001),  # noqa: B008 - a function that never changes
    batch: int = 100,
    seed: int = 0,
    penalty: int | float = 0.0,
    probes: Callable[[AttentionClassifier], Sequence[Probe]] = lambda _model: (),
) -> tuple[AttentionClassifier, list[LogRow]]:
    """The model that `make` makes, trained on all epochs, and its log with what the probes saw.

    `penalty` is c of c |V·W|. The same seed makes the same model; a checkpoint is gone on with.
    """
    per_epoch = -(-len(data.train) // batch)
    steps = epochs * per_epoch
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make()
        log = train(
            model,
            _measuring(model, data.train, batch, seed, penalty),
            rate,
            steps,
            recipe={
                "task": "polarity",
                "data": data.name,
                "texts": len(data.train),
                "seed": seed,
                "steps": steps,
                "batch": batch,
                "penalty": penalty,
                "scaling": model.settings.scaling,
            },
            checkpoint=checkpoint,
            optimizer=adagrad,
            longest_gradient=float("inf"),
            probes=probes(model),
        )
    return model.eval(), log


def curves(log: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What probes saw, as rows of step, quantity, name and value, ready for `attnscope.views.learning`.

    >>> curves([{"step": 5, "probe": "score_terms", "A_positive": 0.5, "V·W": 2.0}])[0]
    {'step': 5, 'quantity': 'A', 'name': 'positive words', 'group': 'positive', 'value': 0.5}
    """
    rows = []
    for row in log:
        for seen, value in row.items() if "probe" in row else ():
            term, _, kind = seen.partition("_")
            if term in CURVES and kind:
                told = {"quantity": CURVES[term], "name": f"{kind} words", "group": kind}
            elif seen in {"V·W", "|V|", "|W|"}:
                told = {"quantity": seen, "name": "", "group": ""}
            elif "-" in seen:
                told = {"quantity": "dot products", "name": seen, "group": ""}
            else:
                continue
            rows.append({"step": row["step"], **told, "value": value})
    return rows


def _measuring(
    model: AttentionClassifier, texts: PackedTexts, batch: int, seed: int, penalty: float
) -> Callable[[int], Measurement]:
    batches = TextBatches(texts, batch, seed)

    def measure(step: int) -> Measurement:
        ids, real, classes = batches[step]
        logits = model(ids, real)
        right = float((model.predicted(logits) == classes).float().mean())
        added = penalty_value(model.output.weight @ model.context, penalty, "absolute")
        return Measurement(model.loss(logits, classes) + added, right)

    return measure
