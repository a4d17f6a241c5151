"""The training of the proxy on texts in two classes (Snell et al. 2021): Adam, summed loss, best validation loss."""

import math
from pathlib import Path

import torch

from .batches import TextBatches
from .data.packed import ClassifiedTexts, PackedTexts
from .models.bag_of_words import WIDTH, BagOfWords
from .polarity import padded_batches
from .train import EarlyStopping, Measurement, adam, constant, train

BATCH, EPOCHS = 64, 60
RATE, SLOW_RATE = 1.5e-4, 5e-5
"""The authors', and the one they take for IMDB, Yelp and Amazon."""
TOGETHER = 512


def train_bag(
    data: ClassifiedTexts,
    checkpoint: Path,
    *,
    seed: int = 0,
    epochs: int = EPOCHS,
    rate: float = RATE,
    width: int = WIDTH,
    batch: int = BATCH,
) -> BagOfWords:
    """The proxy of a data set, with the weights of the epoch that is best on `dev`."""
    batches = TextBatches(data.train, batch, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BagOfWords(len(data.vocabulary), 1, width)

        def measure(step: int) -> Measurement:
            ids, real, classes = batches[step]
            logits = model(ids, real)
            right = float(((logits.squeeze(-1) > 0) == classes.bool()).float().mean())
            return Measurement(model.class_loss(logits, classes), right)

        train(
            model,
            measure,
            constant(rate),
            epochs * len(batches),
            {
                "task": "bag of words",
                "data": data.name,
                "texts": data.train.fingerprint,
                "seed": seed,
                "width": width,
                "batch": batch,
                "rate": rate,
            },
            checkpoint,
            optimizer=adam,
            longest_gradient=math.inf,
            # patience of all epochs: it never stops, and only keeps the best weights
            stopping=EarlyStopping(lambda: -mean_loss(model, data.dev), every=len(batches), patience=epochs),
        )
    return model.eval()


@torch.no_grad()
def mean_loss(model: BagOfWords, texts: PackedTexts) -> float:
    """The loss for each text."""
    labels = torch.from_numpy(texts.labels)
    logits = torch.cat([model(ids, real) for ids, real in padded_batches(texts, TOGETHER)])
    return float(model.class_loss(logits, labels)) / len(texts)
