"""The lesson of the sentiment model, whatever it learns from, and the recipe for the five classes of SST.

Wu, Nguyen & Ong 2020, section 3: Adam at a constant rate of 1e-4, and in their code an L2 penalty of 1e-4; batches of
500 and 200 epochs on a GPU, and their code leaves dropout off after the first validation. Here batches are smaller, so
that a CPU needs fewer epochs, and dropout stays on.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

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
SENTENCES_AT_ONCE = 128
Example = TypeVar("Example")
Splits = Mapping[str, Sequence[Example]]
"""Examples to train on ("train"), to validate on ("dev") and to test on ("test")."""

_ABOUT = """\
{layers} layers of {heads} heads, width {width}, {parameters:,} trained parameters, after Wu, Nguyen & Ong 2020: words
as vectors, no positions, and a local attention that reads the answer. {source}"""
_TRAINING = """\
{learned_from}, seed {seed}: Adam, a learning rate of {rate}, weight decay 1e-4, {size} {unit} to a step. It was trained
for {steps} steps and looked at after every epoch on {dev} validation {unit}; the weights are those of step {step}, with
{validation}."""


@dataclass(frozen=True)
class Subject(Generic[Example]):
    """What the sentiment model learns: examples of one kind, how they are read, judged and described, and how long."""

    task: str
    unit: str
    """What examples are called."""
    answers: str
    """What the model is for, in the title of its card."""
    learned_from: str
    """A format of the number of training examples and of their source."""
    words: Callable[[Example], Sequence[str]]
    length: Callable[[Example], int]
    """Examples of like length run together."""
    content: Callable[[Example], str]
    """What tells an example from others."""
    measure: Callable[[SentimentTransformer, Sequence[Example]], Measurement]
    figure: Callable[[SentimentTransformer, Sequence[Example]], float]
    """How good the model is on held-out examples, the higher the better."""
    validation: str
    """A format of the figure on validation examples."""
    result: str
    """A format of the figure on test examples."""
    epochs: int
    size: int
    """How many examples make a step."""
    patience: int
    """How many epochs in a row may bring nothing better on validation examples."""
    settings: Mapping[str, Any]
    """Those of the model that the subject decides."""


def train_sentiment(
    out: Path,
    subject: Subject[Any],
    splits_of: Callable[[], Splits[Any]],
    source: str,
    *,
    vectors: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    steps: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Train a model into the folder `out`, whose card names the `source` of the examples.

    They are read only where there is something left to train. `settings` are those of the model; without `steps`, the
    epochs of the subject are trained.
    """

    def begin() -> Lesson[SentimentTransformer]:
        splits = splits_of()
        model = make_model(subject, splits, vectors, **(settings or {}))
        return sentiment_lesson(subject, splits, source, model, seed=seed, steps=steps)

    return learn_into(out, begin, seed, resume)


def make_model(
    subject: Subject[Example], splits: Splits[Example], vectors: str | Path | None, **settings: Any
) -> SentimentTransformer:
    """A model with the vectors of all words of the data, or with vectors to be learned of what training often has.

    Vectors that are given are not trained, so those of test words tell nothing about the test.
    """
    settings = {**settings, **subject.settings}
    words = {split: [word for one in examples for word in subject.words(one)] for split, examples in splits.items()}
    found = word_vectors(vectors, {word for part in words.values() for word in part})
    if found is not None:
        return SentimentTransformer.reading(found, **settings)
    counted = Counter(word.lower() for word in words["train"] if word not in SPECIAL.values())
    often = sorted(word for word, count in counted.items() if count >= SEEN)
    return SentimentTransformer.learning(Vocabulary(often, special=SPECIAL), **settings)


def sentiment_lesson(
    subject: Subject[Example],
    splits: Splits[Example],
    source: str,
    model: SentimentTransformer,
    *,
    seed: int = 0,
    steps: int | None = None,
) -> Lesson[SentimentTransformer]:
    """Learn from "train", stop by the figure on "dev", and tell that on "test" in the card."""
    training, validation, testing = (splits[split] for split in ("train", "dev", "test"))
    batches = Batches([subject.length(example) for example in training], subject.size, seed)

    def describe(log: Sequence[LogRow]) -> str:
        best = best_look(log)
        return card(
            f"A sentiment model {subject.answers}",
            _ABOUT.format(
                **asdict(model.settings),
                parameters=sum(weights.numel() for weights in model.parameters() if weights.requires_grad),
            ),
            code=CODE.format(text="a lovely film"),
            training=_TRAINING.format(
                learned_from=subject.learned_from.format(len(training), source),
                seed=seed,
                rate=RATE,
                size=subject.size,
                unit=subject.unit,
                steps=log[-1]["step"],
                dev=len(validation),
                step=best["step"],
                validation=subject.validation.format(best["validation"]),
            ),
            accuracy=f"On {len(testing)} test {subject.unit}, used for nothing else:"
            f" **{subject.result.format(subject.figure(model, testing))}**.",
        )

    return Lesson(
        task=subject.task,
        model=model,
        measure=lambda step: subject.measure(model, [training[place] for place in batches[step]]),
        steps=subject.epochs * len(batches) if steps is None else steps,
        rate=constant(RATE),
        recipe={
            f"{subject.unit}_per_step": subject.size,
            "examples": fingerprint(subject.content(example) for example in [*training, *validation]),
            "settings": asdict(model.settings),
            "words": len(model.vocabulary),
        },
        card=describe,
        save=model.save,
        optimizer=partial(adam, penalty=1e-4),
        longest_gradient=math.inf,
        stopping=EarlyStopping(lambda: subject.figure(model, validation), len(batches), subject.patience),
    )


# The subject of five classes, learned from the sentences of SST.


def _measure(model: SentimentTransformer, batch: Sequence[SentimentTree]) -> Measurement:
    logits = model(**model.batch([tree.words for tree in batch]))
    return measure_answers(logits, torch.tensor([tree.label for tree in batch]), model.loss)


def accuracy(model: SentimentTransformer, trees: Sequence[SentimentTree]) -> float:
    """The share of sentences that get the right one of the five classes."""
    return share_right(
        trees,
        lambda tree: len(tree.words),
        lambda batch: model(**model.batch([tree.words for tree in batch])),
        lambda tree: tree.label,
        SENTENCES_AT_ONCE,
    )


SST5: Subject[SentimentTree] = Subject(
    task="sst5",
    unit="sentences",
    answers="for five classes",
    learned_from="By `attnscope train sst5` on {} sentences ({})",
    words=lambda tree: tree.words,
    length=lambda tree: len(tree.words),
    content=lambda tree: f"{' '.join(tree.words)}\t{tree.label}\n",
    measure=_measure,
    figure=accuracy,
    validation="{:.2%} of them right",
    result="{:.2%} are right",
    epochs=30,
    size=50,
    patience=5,
    settings={},
)


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
    splits = partial(tree_splits, data, place)
    return train_sentiment(out, SST5, splits, Path(data).name, vectors=vectors, seed=seed, resume=resume, steps=steps)
