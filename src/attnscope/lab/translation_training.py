"""The trainings of translation (Snell et al. 2021, A.8): the recurrent model, and its bag-of-words proxy."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from .batches import Batches
from .data.translation import TranslatedPart, TranslatedTexts, pair_batch
from .decoding import in_order_of_length
from .models.bag_of_words import WIDTH, BagOfWords
from .models.seq2seq import Seq2Seq
from .probes import Probe
from .train import EarlyStopping, LogRow, Measurement, adam, constant, train
from .translation_looks import token_accuracy

RATE = 1e-3
BATCH, BAG_BATCH, BAG_EPOCHS = 16, 64, 30
"""The authors'."""
TOGETHER = 256
SECONDS = 120.0
"""Between checkpoints, which are large: weights, the best weights, and Adam's two moments."""


def train_translation(
    model: Seq2Seq,
    texts: TranslatedTexts,
    checkpoint: Path,
    *,
    seed: int,
    steps: int,
    batch: int = BATCH,
    dev: TranslatedPart | None = None,
    every: int = 1_000,
    probes: Sequence[Probe] = (),
    said: Mapping[str, Any] | None = None,
) -> list[LogRow]:
    """Train in place by Adam at 1e-3; at the end the model has the weights with the best token accuracy on `dev`.

    Batches have sentences of like length. It is looked at every so many steps; `said` is what else tells this training
    from others, in JSON terms.
    """
    train_part = texts.train
    batches = Batches(_lengths(train_part), batch, seed)

    def measure(step: int) -> Measurement:
        pairs = pair_batch(texts.vocabulary, train_part, batches[step])
        logits = model(pairs.source, pairs.target_in, pairs.real)
        return Measurement(model.loss(logits, pairs.target_out), model.accuracy(logits.detach(), pairs.target_out))

    looked_at = texts.dev if dev is None else dev
    recipe = {"task": "translation", "data": texts.name, "pairs": train_part.fingerprint, "seed": seed, "steps": steps}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        log = train(
            model,
            measure,
            constant(RATE),
            steps,
            {**recipe, "batch": batch, **(said or {})},
            checkpoint,
            SECONDS,
            optimizer=adam,
            longest_gradient=math.inf,
            # patience without end: it never stops, and only keeps the best weights
            stopping=EarlyStopping(lambda: token_accuracy(model, looked_at), every=every, patience=steps + 1),
            probes=probes,
        )
    model.eval()
    return log


def train_translation_bag(
    texts: TranslatedTexts,
    checkpoint: Path,
    *,
    seed: int = 0,
    epochs: int = BAG_EPOCHS,
    batch: int = BAG_BATCH,
    width: int = WIDTH,
) -> BagOfWords:
    """The proxy of Eq. 5 with the weights of the epoch that is best on `dev`, by Adam on the summed loss.

    The authors' loss counts padding and bos too; here neither is counted.
    """
    train_part, words = texts.train, len(texts.vocabulary)
    batches = Batches(_lengths(train_part), batch, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BagOfWords(words, words, width)

        def measure(step: int) -> Measurement:
            pairs = pair_batch(texts.vocabulary, train_part, batches[step])
            logits = model(pairs.source, pairs.real)
            right = (logits.argmax(-1, keepdim=True) == pairs.target_out)[pairs.words].float().mean()
            return Measurement(model.word_loss(logits, pairs.target_out, pairs.words), float(right))

        train(
            model,
            measure,
            constant(RATE),
            epochs * len(batches),
            {
                "task": "bag of words for translation",
                "data": texts.name,
                "pairs": texts.train.fingerprint,
                "seed": seed,
                "width": width,
                "batch": batch,
            },
            checkpoint,
            optimizer=adam,
            longest_gradient=math.inf,
            stopping=EarlyStopping(lambda: -_mean_loss(model, texts), every=len(batches), patience=epochs + 1),
        )
    return model.eval()


def _lengths(part: TranslatedPart) -> list[int]:
    return [len(source) + len(target) for source, target in zip(part.sources, part.targets, strict=True)]


@torch.no_grad()
def _mean_loss(model: BagOfWords, texts: TranslatedTexts) -> float:
    """The proxy's loss for each word of dev."""
    total, words = 0.0, 0
    for numbers in in_order_of_length(_lengths(texts.dev), TOGETHER):
        pairs = pair_batch(texts.vocabulary, texts.dev, numbers)
        total += float(model.word_loss(model(pairs.source, pairs.real), pairs.target_out, pairs.words))
        words += int(pairs.words.sum())
    return total / words
