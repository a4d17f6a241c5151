"""How every model of the paper learns: by Adam at one rate, in runs that are each kept in a file of their own."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ...engine import Store
from ...engine import engine as engine_named
from ...errors import BadInput
from ...lab.batches import Batches, TextBatches, in_order_of_length
from ...lab.data import ClassifiedTexts, PackedTexts
from ...lab.models import BagOfWords, RecurrentClassifier, Seq2Seq
from ...lab.models.bag_of_words import WIDTH
from ...lab.polarity import padded_batches
from ...lab.probes import Probe
from ...lab.train import EarlyStopping, LogRow, Measurement, adam, constant, train
from ...progress import items_done
from .sentence_pairs import TranslatedPart, TranslatedTexts, pair_batch
from .snapshots import token_accuracy

# Independent runs: each is done once, kept, and continued after a kill.


Rows = list[dict[str, Any]]
Run = TypeVar("Run")
Model = TypeVar("Model")
STAGE = "stage"


def stage_store(folder: Path, scale: Any) -> Store:
    """Where the runs of a stage are kept, if what is there was trained at the same scale."""
    return Store(folder, STAGE, asdict(scale))


def all_runs(title: str, make_worker: Callable[[], Callable[[Run], Rows]], runs: Sequence[Run], engine: str) -> Rows:
    """The rows of all runs in their order, however the engine spreads them.

    `make_worker` is called once in each process that does runs. Where nothing is to be read there, it is
    `partial(partial, do_run, …)`, which gives `partial(do_run, …)`.
    """
    done: dict[int, Rows] = {}
    with items_done(title) as watch:
        for number, rows in engine_named(engine)(make_worker, enumerate(runs)):
            done[number] = rows
            watch(len(done), len(runs))
    return [row for number in range(len(runs)) for row in done[number]]


# One training: the batch of a step depends on the seed and the step alone, gradients are taken as they are.


RATE = 1e-3
LOOKED_AT = 1_000_000
"""Sequences that a model is looked at with are drawn as for steps from here on, which no training reaches."""
SECONDS_BETWEEN_CHECKPOINTS = 120.0  # the optimizer's moments of large vocabularies are hundreds of megabytes


def with_seed(seed: int, make: Callable[[], Model]) -> Model:
    """What `make` gives by the random numbers of this seed; torch's generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def learn(
    model: nn.Module,
    measure: Callable[[int], Measurement],
    checkpoint: str | Path,
    *,
    seed: int,
    steps: int,
    recipe: Mapping[str, Any],
    rate: float = RATE,
    stopping: EarlyStopping | None = None,
    probes: Sequence[Probe] = (),
) -> list[LogRow]:
    """Train in place, or go on from the checkpoint of a training that was stopped, and return the log.

    `recipe` is what tells this training from others beside the seed, which is that of dropout too.
    """
    log: list[LogRow] = with_seed(
        seed,
        lambda: train(
            model,
            measure,
            constant(rate),
            steps,
            {**recipe, "seed": seed},
            Path(checkpoint),
            SECONDS_BETWEEN_CHECKPOINTS,
            optimizer=adam,
            longest_gradient=math.inf,
            stopping=stopping,
            probes=probes,
        ),
    )
    model.eval()
    return log


def best_weights(figure: Callable[[], float], every: int) -> EarlyStopping:
    """Let a training end with the weights of the best figure: it is patient without end, so that it never stops."""
    return EarlyStopping(figure, every=every, patience=sys.maxsize)


def rows_of_probes(log: Sequence[LogRow]) -> Rows:
    """What the one probe of a training saw."""
    return [{name: value for name, value in row.items() if name != "probe"} for row in log if "probe" in row]


# Classifiers of texts (A.8): 32 texts to a step, mean cross-entropy, no dropout; and the proxy, by the summed loss.


BATCH, BAG_BATCH, BAG_EPOCHS = 32, 64, 60
BAG_RATE, SLOW_BAG_RATE = 1.5e-4, 5e-5
"""The authors', and the one they take for IMDB, Yelp and Amazon."""
TEXTS_TOGETHER = 512
FIRST_LOOKS, EVERY = (0, 10, 50, 100, 150, 200), 250


def checkpoints(steps: int) -> tuple[int, ...]:
    """The steps at which the paper looks, the last step included.

    >>> checkpoints(600)
    (0, 10, 50, 100, 150, 200, 250, 500, 600)
    """
    return tuple(sorted({step for step in (*FIRST_LOOKS, *range(EVERY, steps, EVERY)) if step < steps} | {steps}))


def train_recurrent(
    model: RecurrentClassifier,
    texts: PackedTexts,
    checkpoint: str | Path,
    *,
    seed: int = 0,
    steps: int,
    batch: int = BATCH,
    probes: Sequence[Probe] = (),
    details: Mapping[str, Any] | None = None,
) -> list[LogRow]:
    """Train in place on texts in an order that depends on the seed alone, and return the log.

    `details` are what else tells this training from others, in JSON terms, such as the name of the data set.
    """
    if (texts.labels >= len(model.classes)).any() or (texts.labels < 0).any():
        raise BadInput(f"Classes are numbers from 0: for {' and '.join(model.classes)} give 0 and 1.")
    recipe = {
        "task": "recurrent classifier",
        "texts": texts.fingerprint,
        "model": asdict(model.settings),
        "steps": steps,
        "batch": batch,
        **(details or {}),
    }
    measure = _measure_classes(model, TextBatches(texts, batch, seed), model.loss)
    return learn(model, measure, checkpoint, seed=seed, steps=steps, recipe=recipe, probes=probes)


def train_bag(
    data: ClassifiedTexts,
    checkpoint: Path,
    *,
    seed: int = 0,
    epochs: int = BAG_EPOCHS,
    rate: float = BAG_RATE,
    width: int = WIDTH,
    batch: int = BAG_BATCH,
) -> BagOfWords:
    """The proxy of a data set, with the weights of the epoch that is best on `dev`."""
    batches = TextBatches(data.train, batch, seed)
    model = with_seed(seed, lambda: BagOfWords(len(data.vocabulary), 1, width))
    learn(
        model,
        _measure_classes(model, batches, model.class_loss),
        checkpoint,
        seed=seed,
        steps=epochs * len(batches),
        recipe={
            "task": "bag of words",
            "data": data.name,
            "texts": data.train.fingerprint,
            "width": width,
            "batch": batch,
            "rate": rate,
        },
        rate=rate,
        stopping=best_weights(lambda: -mean_loss(model, data.dev), every=len(batches)),
    )
    return model


def _measure_classes(
    model: nn.Module,
    batches: TextBatches,
    loss: Callable[[Float[Tensor, "text 1"], Int[Tensor, " text"]], Float[Tensor, ""]],
) -> Callable[[int], Measurement]:
    def measure(step: int) -> Measurement:
        ids, real, classes = batches[step]
        logits = model(ids, real)
        right = (logits.squeeze(-1) > 0) == classes.bool()
        return Measurement(loss(logits, classes), float(right.float().mean()))

    return measure


@torch.no_grad()
def mean_loss(model: BagOfWords, texts: PackedTexts) -> float:
    """The loss for each text."""
    labels = torch.from_numpy(texts.labels)
    logits = torch.cat([model(ids, real) for ids, real in padded_batches(texts, TEXTS_TOGETHER)])
    return float(model.class_loss(logits, labels)) / len(texts)


# Translation (A.8): the recurrent model on pairs of like length, and its bag-of-words proxy.


PAIRS, BAG_PAIRS, PAIR_EPOCHS = 16, 64, 30
"""In a batch, in one of the proxy, and how often the proxy sees all: the authors'."""
PAIRS_TOGETHER = 256


def train_translation(
    model: Seq2Seq,
    texts: TranslatedTexts,
    checkpoint: Path,
    *,
    seed: int,
    steps: int,
    batch: int = PAIRS,
    dev: TranslatedPart | None = None,
    every: int = 1_000,
    probes: Sequence[Probe] = (),
    details: Mapping[str, Any] | None = None,
) -> list[LogRow]:
    """Train in place; at the end the model has the weights with the best token accuracy on `dev`.

    It is looked at every so many steps; `details` are what else tells this training from others, in JSON terms.
    """
    batches = Batches(_lengths(texts.train), batch, seed)

    def measure(step: int) -> Measurement:
        pairs = pair_batch(texts.vocabulary, texts.train, batches[step])
        logits = model(pairs.source, pairs.target_in, pairs.real)
        return Measurement(model.loss(logits, pairs.target_out), model.accuracy(logits.detach(), pairs.target_out))

    held_out = texts.dev if dev is None else dev
    recipe = {"task": "translation", "data": texts.name, "pairs": texts.train.fingerprint, "steps": steps}
    return learn(
        model,
        measure,
        checkpoint,
        seed=seed,
        steps=steps,
        recipe={**recipe, "batch": batch, **(details or {})},
        stopping=best_weights(lambda: token_accuracy(model, held_out), every),
        probes=probes,
    )


def train_translation_bag(
    texts: TranslatedTexts,
    checkpoint: Path,
    *,
    seed: int = 0,
    epochs: int = PAIR_EPOCHS,
    batch: int = BAG_PAIRS,
    width: int = WIDTH,
) -> BagOfWords:
    """The proxy of Eq. 5 with the weights of the epoch that is best on `dev`, by the summed loss.

    The authors' loss counts padding and bos too; here neither is counted.
    """
    words, batches = len(texts.vocabulary), Batches(_lengths(texts.train), batch, seed)
    model = with_seed(seed, lambda: BagOfWords(words, words, width))

    def measure(step: int) -> Measurement:
        pairs = pair_batch(texts.vocabulary, texts.train, batches[step])
        logits = model(pairs.source, pairs.real)
        right = (logits.argmax(-1, keepdim=True) == pairs.target_out)[pairs.words].float().mean()
        return Measurement(model.word_loss(logits, pairs.target_out, pairs.words), float(right))

    recipe = {"task": "bag of words for translation", "data": texts.name, "pairs": texts.train.fingerprint}
    learn(
        model,
        measure,
        checkpoint,
        seed=seed,
        steps=epochs * len(batches),
        recipe={**recipe, "width": width, "batch": batch},
        stopping=best_weights(lambda: -_mean_word_loss(model, texts), every=len(batches)),
    )
    return model


def _lengths(part: TranslatedPart) -> list[int]:
    return [len(source) + len(target) for source, target in zip(part.sources, part.targets, strict=True)]


@torch.no_grad()
def _mean_word_loss(model: BagOfWords, texts: TranslatedTexts) -> float:
    """The proxy's loss for each word of dev."""
    total, words = 0.0, 0
    for numbers in in_order_of_length(_lengths(texts.dev), PAIRS_TOGETHER):
        pairs = pair_batch(texts.vocabulary, texts.dev, numbers)
        total += float(model.word_loss(model(pairs.source, pairs.real), pairs.target_out, pairs.words))
        words += int(pairs.words.sum())
    return total / words
