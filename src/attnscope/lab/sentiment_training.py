"""The lesson of the sentiment model, whatever it learns from: Adam at a constant rate, best by a held-out figure.

Wu, Nguyen & Ong 2020, section 3: a learning rate of 1e-4, and in their code an L2 penalty of 1e-4.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .batches import Batches
from .lesson import CODE, Lesson, best_look, card, fingerprint
from .models.sentiment import SPECIAL, SentimentTransformer
from .train import EarlyStopping, LogRow, Measurement, adam, constant
from .vocabulary import Vocabulary
from .word_vectors import word_vectors

RATE = 1e-4
SEEN = 2
"""How often a word must stand in training to get a vector learned from scratch; rarer ones train the unknown word."""

_ABOUT = """\
{layers} layers of {heads} heads, width {width}, {parameters:,} trained parameters, after Wu, Nguyen & Ong 2020: words
as vectors, no positions, and a local attention that reads the answer. {source}"""
_TRAINING = """\
{learned_from}, seed {seed}: Adam, a learning rate of {rate}, weight decay 1e-4, {size} {unit} to a step. It was trained
for {steps} steps and looked at after every epoch on {dev} validation {unit}; the weights are those of step {step}, with
{validation}."""


@dataclass(frozen=True)
class Pace:
    """How long is learned: `steps` updates at most, or else `epochs` epochs, of so many examples to a step."""

    seed: int
    steps: int | None
    epochs: int
    size: int
    patience: int
    """How many epochs in a row may bring nothing better on validation examples."""


@dataclass(frozen=True)
class Subject:
    """What the sentiment model learns: the examples of its task, how they are called, and how they are told of."""

    task: str
    unit: str
    answers: str
    """What the model is for, in the title of its card."""
    learned_from: str
    lengths: Sequence[int]
    """How long each training example is, so that those of like length run together."""
    content: Iterable[str]
    """What tells the training and validation examples from others."""
    held_out: int
    """How many validation examples there are."""
    tested: int
    validation: str
    """A format of the best figure on validation examples."""


def sentiment_lesson(
    subject: Subject,
    pace: Pace,
    model: SentimentTransformer,
    measure_batch: Callable[[Sequence[int]], Measurement],
    figure: Callable[[], float],
    result: Callable[[], str],
) -> Lesson[SentimentTransformer]:
    """`measure_batch` is given the places of some training examples, `figure` looks at the validation examples.

    `result` tells how well the trained model does on test examples.
    """
    batches = Batches(list(subject.lengths), pace.size, pace.seed)
    steps = pace.epochs * len(batches) if pace.steps is None else pace.steps
    return Lesson(
        task=subject.task,
        model=model,
        measure=lambda step: measure_batch(batches[step]),
        steps=steps,
        rate=constant(RATE),
        recipe={
            f"{subject.unit}_per_step": pace.size,
            "examples": fingerprint(subject.content),
            "settings": asdict(model.settings),
            "words": len(model.vocabulary),
        },
        card=lambda log: _card(subject, pace, model, log, result()),
        save=model.save,
        optimizer=partial(adam, penalty=1e-4),
        longest_gradient=math.inf,
        stopping=EarlyStopping(figure, len(batches), pace.patience),
    )


def _card(subject: Subject, pace: Pace, model: SentimentTransformer, log: Sequence[LogRow], result: str) -> str:
    best = best_look(log)
    return card(
        f"A sentiment model {subject.answers}",
        _ABOUT.format(
            **asdict(model.settings),
            parameters=sum(weights.numel() for weights in model.parameters() if weights.requires_grad),
        ),
        code=CODE.format(text="a lovely film"),
        training=_TRAINING.format(
            learned_from=subject.learned_from,
            seed=pace.seed,
            rate=RATE,
            size=pace.size,
            unit=subject.unit,
            steps=log[-1]["step"],
            dev=subject.held_out,
            step=best["step"],
            validation=subject.validation.format(best["validation"]),
        ),
        accuracy=f"On {subject.tested} test {subject.unit}, used for nothing else: **{result}**.",
    )


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
