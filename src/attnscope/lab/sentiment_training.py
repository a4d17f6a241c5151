"""The training of the sentiment model, whatever it learns from: Adam at a constant rate, best by a held-out figure.

Wu, Nguyen & Ong 2020, section 3: a learning rate of 1e-4, and in their code an L2 penalty of 1e-4.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Adam, Optimizer

from .batches import Batches
from .models.sentiment import SPECIAL, SentimentTransformer
from .train import EarlyStopping, LogRow, Measurement, constant, train
from .vocabulary import Vocabulary
from .word_vectors import word_vectors

RATE = 1e-4
SEEN = 2
"""How often a word must stand in training to get a vector learned from scratch; rarer ones train the unknown word."""
CHECKPOINT_SECONDS = 30.0

_CARD = """\
# A sentiment model {answers}

{layers} layers of {heads} heads, width {width}, {parameters:,} trained parameters, after Wu, Nguyen & Ong 2020: words
as vectors, no positions, and a local attention that reads the answer. {source}

```python
from attnscope.lab.models import SentimentTransformer

model = SentimentTransformer.load("path/to/this/folder").instrumented()
record = model.record("a lovely film")
```

## Training

{learned_from}, seed {seed}: Adam, a learning rate of {rate}, weight decay 1e-4, {size} {unit} to a step. It was trained
for {steps} steps and looked at after every epoch on {dev} validation {unit}; the weights are those of step {step}, with
{validation}.

On {test} test {unit}, used for nothing else: **{result}**.
"""


@dataclass(frozen=True)
class Lesson:
    """What is learned: its examples, how wrong the model is on some of them, and how good on held-out ones."""

    task: str
    unit: str
    """What the examples are called."""
    lengths: Sequence[int]
    """How long each example is, so that those of like length run together."""
    fingerprint: str
    measuring: Callable[[SentimentTransformer, Batches], Callable[[int], Measurement]]
    figure: Callable[[SentimentTransformer], float]


def trained_on(
    lesson: Lesson,
    make: Callable[[], SentimentTransformer],
    checkpoint: Path,
    seed: int,
    *,
    steps: int | None,
    epochs: int,
    size: int,
    patience: int,
) -> tuple[SentimentTransformer, list[LogRow]]:
    """The model that `make` makes, trained by this lesson with its best weights, and its log.

    `steps` updates at most, or else `epochs` epochs. The same seed makes the same model; a checkpoint is gone on with.
    """
    batches = Batches(list(lesson.lengths), size, seed)
    planned = epochs * len(batches) if steps is None else steps
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make()
        log = train(
            model,
            lesson.measuring(model, batches),
            constant(RATE),
            planned,
            recipe={
                "task": lesson.task,
                "seed": seed,
                "steps": planned,
                f"{lesson.unit}_per_step": size,
                "examples": lesson.fingerprint,
                "settings": asdict(model.settings),
                "words": len(model.vocabulary),
            },
            checkpoint=checkpoint,
            seconds_between_checkpoints=CHECKPOINT_SECONDS,
            optimizer=adam,
            longest_gradient=math.inf,
            stopping=EarlyStopping(lambda: lesson.figure(model), len(batches), patience),
        )
    return model.eval(), log


def knowing(words: Mapping[str, Sequence[str]], vectors: str | Path | None, **settings: Any) -> SentimentTransformer:
    """A model with the vectors of all words of the data, or with vectors to be learned of what training often has.

    `words` are those of each part of the data. Vectors that are given are not trained, so those of test words tell
    nothing about the test.
    """
    found = word_vectors(vectors, {word for part in words.values() for word in part})
    if found is not None:
        return SentimentTransformer.reading(found, **settings)
    counted = Counter(word.lower() for word in words["train"] if word not in SPECIAL.values())
    often = sorted(word for word, count in counted.items() if count >= SEEN)
    return SentimentTransformer.learning(Vocabulary(often, special=SPECIAL), **settings)


def adam(model: nn.Module) -> Optimizer:
    """Adam with an L2 penalty of 1e-4, as the authors have it; word vectors that are given stay as they are."""
    learned = [weights for weights in model.parameters() if weights.requires_grad]
    return Adam(learned, weight_decay=1e-4, fused=True)


def fingerprint(examples: Iterable[str]) -> str:
    """What tells these examples from others, in their order."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(example.encode())
    return digest.hexdigest()


def card(model: SentimentTransformer, log: Sequence[LogRow], **said: object) -> str:
    """The card of a trained model; `said` is what its task tells, `validation` a format of the best figure."""
    # the first of equal figures is the one whose weights were kept
    best = max((row for row in log if "validation" in row), key=lambda row: float(row["validation"]))
    validation = str(said.pop("validation")).format(best["validation"])
    return _CARD.format(
        **asdict(model.settings),
        **said,
        parameters=sum(weights.numel() for weights in model.parameters() if weights.requires_grad),
        rate=RATE,
        steps=log[-1]["step"],
        step=best["step"],
        validation=validation,
    )
