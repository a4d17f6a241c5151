"""The lesson of the sentiment model, whatever it learns from, and the recipe for the five classes of SST.

Wu, Nguyen & Ong 2020, section 3: Adam at a constant rate of 1e-4, and in their code an L2 penalty of 1e-4; batches of
500 and 200 epochs on a GPU, and their code leaves dropout off after the first validation. Here batches are smaller, so
that a CPU needs fewer epochs, and dropout stays on.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from .batches import Batches
from .data.sst_trees import SentimentTree, tree_splits
from .lesson import CODE, Lesson, best_look, card, fingerprint, learn_into, measure_answers, share_right
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


def model_that_knows(
    words: Mapping[str, Sequence[str]], vectors: str | Path | None, **settings: Any
) -> SentimentTransformer:
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


# The recipe for five classes, learned from the sentences of SST.


EPOCHS, SENTENCES_PER_STEP = 30, 50
PATIENCE = 5
"""How many epochs in a row may bring nothing better on validation sentences."""
SENTENCES_AT_ONCE = 128


def train_sst5(
    out: Path,
    seed: int = 0,
    resume: bool = False,
    steps: int | None = None,
    data: str | Path = "sst",
    vectors: str | Path | None = None,
    place: str | Path | None = None,
) -> Path:
    """Train a `SentimentTransformer` for five classes into the folder `out` and return it: model, log and card.

    `data` is the data set "sst" or a folder with train.txt, dev.txt and test.txt like it. `vectors` is a GloVe file,
    "glove-50" for the package of 50 dimensions, or "scratch" to learn them; by default the package if it is there.
    Data sets are looked for in `place` before $ATTNSCOPE_DATA. Until the end a subfolder `unfinished` holds the state
    from which `resume` continues to the very same weights.
    """
    return train_on_trees(
        out, lambda: tree_splits(data, place), Path(data).name, vectors=vectors, seed=seed, resume=resume, steps=steps
    )


def train_on_trees(
    out: Path,
    splits_of: Callable[[], Mapping[str, Sequence[SentimentTree]]],
    source: str,
    *,
    vectors: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    steps: int | None = None,
    epochs: int = EPOCHS,
    sentences_per_step: int | None = None,
    patience: int = PATIENCE,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Train on "train", validate on "dev" and test on "test" for the card, which names the `source` of the trees.

    They are read only where there is something left to train. `settings` are those of the model.
    """
    pace = Pace(seed, steps, epochs, sentences_per_step or SENTENCES_PER_STEP, patience)

    def begin() -> Lesson[SentimentTransformer]:
        splits = splits_of()
        return sst5_lesson(splits, source, pace, make_model(splits, vectors, **(settings or {})))

    return learn_into(out, begin, seed, resume)


def make_model(
    splits: Mapping[str, Sequence[SentimentTree]], vectors: str | Path | None, **settings: Any
) -> SentimentTransformer:
    """A model that knows the words of these sentences."""
    words = {split: [word for tree in trees for word in tree.words] for split, trees in splits.items()}
    return model_that_knows(words, vectors, **settings)


def sst5_lesson(
    splits: Mapping[str, Sequence[SentimentTree]], source: str, pace: Pace, model: SentimentTransformer
) -> Lesson[SentimentTransformer]:
    """The right one of five classes for each sentence of "train"; the figure is the share that is right of "dev"."""
    training, validation, testing = (splits[split] for split in ("train", "dev", "test"))
    subject = Subject(
        task="sst5",
        unit="sentences",
        answers="for five classes",
        learned_from=f"By `attnscope train sst5` on {len(training)} sentences ({source})",
        lengths=[len(tree.words) for tree in training],
        content=[f"{' '.join(tree.words)}\t{tree.label}\n" for tree in [*training, *validation]],
        held_out=len(validation),
        tested=len(testing),
        validation="{:.2%} of them right",
    )

    def measure_batch(places: Sequence[int]) -> Measurement:
        batch = [training[place] for place in places]
        logits = model(**model.batch([tree.words for tree in batch]))
        return measure_answers(logits, torch.tensor([tree.label for tree in batch]), model.loss)

    return sentiment_lesson(
        subject,
        pace,
        model,
        measure_batch,
        figure=lambda: accuracy(model, validation),
        result=lambda: f"{accuracy(model, testing):.2%} are right",
    )


def accuracy(model: SentimentTransformer, trees: Sequence[SentimentTree]) -> float:
    """The share of sentences that get the right one of the five classes."""
    return share_right(
        trees,
        lambda tree: len(tree.words),
        lambda batch: model(**model.batch([tree.words for tree in batch])),
        lambda tree: tree.label,
        SENTENCES_AT_ONCE,
    )
