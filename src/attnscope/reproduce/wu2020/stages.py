"""The stages of the experiment, each kept in a folder of its own: a model for each seed, and what its words get."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from ...attribution.layerwise_tracing import traced
from ...evaluation import LexiconStudy, lexicon
from ...lab.models import SentimentTransformer
from ...lab.sst5 import accuracy, train_on_trees
from ...progress import items_done
from ..evenness import evenness
from .data import Sentences
from .scales import Scale

METHODS = ("layerwise_tracing", "gradient_of_sum", "gradient_of_prediction", "rollout", "flow", "raw")


def model_of(folder: Path, scale: Scale, sentences: Sentences, vectors: str | None, seed: int) -> SentimentTransformer:
    """The model of a seed: trained now, or found in the folder from before."""
    place = folder / "models" / f"seed-{seed}"
    train_on_trees(
        place,
        lambda: sentences.splits,
        sentences.name,
        vectors=vectors,
        seed=seed,
        resume=place.exists(),
        epochs=scale.epochs,
        sentences_per_step=scale.sentences_per_step,
        settings=scale.settings,
    )
    return SentimentTransformer.load(place)


def study_of(folder: Path, model: SentimentTransformer, sentences: Sentences, seed: int) -> LexiconStudy:
    """The scores of the words of all test sentences, held against the raters."""
    place = folder / "studies" / f"seed-{seed}"
    texts = [list(tree.words) for tree in sentences.splits["test"]]
    with items_done(f"Words, seed {seed}") as watch:
        return lexicon(
            model.instrumented(),
            texts,
            sentences.lexicon,
            METHODS,
            tags=sentences.tags,
            out=place,
            resume=place.exists(),
            watch=watch,
        )


def right_of(model: SentimentTransformer, sentences: Sentences) -> float:
    """The share of test sentences that get the right one of five classes."""
    return accuracy(model, sentences.splits["test"])


def evenness_by_layer(
    model: SentimentTransformer, sentences: Sentences, watch: Callable[[int, int], None] | None = None
) -> pd.DataFrame:
    """How evenly the traced attention lies over the tokens at each layer: entropy as a share of the largest.

    The mean over heads and test sentences of two words or more; the local attention itself stands above all layers.
    """
    texts = [list(tree.words) for tree in sentences.splits["test"] if len(tree.words) > 1]
    found = []
    for number, record in enumerate(model.instrumented().records(texts)):
        if watch is not None:
            watch(number, len(texts))
        held = traced(record.weights.double(), record.readout.double())
        shares = np.concatenate([held.numpy(), record.readout.double().expand(1, held.shape[1], -1).numpy()])
        found.append(evenness(shares).mean(1))
    mean = np.stack(found).mean(0)
    layers = [*range(1, len(mean)), 0]
    return pd.DataFrame({"layer": layers, "evenness": mean})
