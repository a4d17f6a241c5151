"""The stages of the experiment, each kept in a folder of its own: a model for each seed, and what its words get."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...attribution.layerwise_tracing import traced
from ...capture import InstrumentedModel
from ...evaluation import LexiconStudy, lexicon
from ...evaluation.lexicons import Lexicon
from ...lab.models import SentimentTransformer
from ...lab.sst5 import accuracy, train_on_trees
from ...lab.story_training import StoryModel, mean_concordance, spoken, train_on_stories
from ...progress import items_done
from ..evenness import evenness
from .data import Sentences, Stories
from .judges import GRADIENT, OF_CLASS, TRACING, Run
from .scales import Scale

METHODS = (TRACING, GRADIENT, OF_CLASS, "rollout", "flow", "raw")


def sentence_run(
    folder: Path, scale: Scale, sentences: Sentences, seed: int, vectors: str | None, settings: Mapping[str, Any]
) -> tuple[SentimentTransformer, Run]:
    """The model of a seed for sentences, trained now or before, and what was measured on it.

    The probabilities of softmax always sum to one: their sum has no gradient, and that of the predicted class is left.
    """
    place = folder / "models" / f"seed-{seed}"
    train_on_trees(
        place,
        lambda: sentences.splits,
        sentences.name,
        vectors=vectors,
        seed=seed,
        resume=place.exists(),
        epochs=scale.epochs,
        patience=scale.patience,
        sentences_per_step=scale.sentences_per_step,
        settings=settings,
    )
    model = SentimentTransformer.load(place)
    summed = model.settings.probabilities == "sigmoid"
    methods = [name for name in METHODS if summed or name != GRADIENT]
    test = sentences.splits["test"]
    texts = [list(tree.words) for tree in test]
    read = model.instrumented()
    study = _study(folder / "studies" / f"seed-{seed}", read, texts, sentences.lexicon, methods, sentences.tags)
    return model, Run(seed, accuracy(model, test), study, evenness_by_layer(read, texts))


def story_run(
    folder: Path, scale: Scale, stories: Stories, words: Lexicon, seed: int, vectors: str | None
) -> tuple[SentimentTransformer, Run]:
    """The model of a seed for stories, trained now or before, and what was measured on it.

    Words are scored in the windows of the test stories. Which are very positive or negative, the lexicon says.
    """
    place = folder / "models" / f"stories-seed-{seed}"
    train_on_stories(
        place,
        stories.splits,
        stories.name,
        vectors=vectors,
        seed=seed,
        resume=place.exists(),
        epochs=scale.story_epochs,
        patience=scale.story_patience,
        stories_per_step=scale.stories_per_step,
        settings=scale.settings,
    )
    model = SentimentTransformer.load(place)
    test = stories.splits["test"]
    texts, read = spoken(test), StoryModel(model)
    methods = [name for name in METHODS if name != OF_CLASS]
    study = _study(folder / "studies" / f"stories-seed-{seed}", read, texts, words, methods, None)
    return model, Run(seed, mean_concordance(model, test), study, evenness_by_layer(read, texts))


def _study(
    place: Path,
    model: InstrumentedModel,
    texts: Sequence[list[str]],
    words: Lexicon,
    methods: Sequence[str],
    tags: Mapping[str, str] | None,
) -> LexiconStudy:
    """The scores of the words of these texts, held against the raters."""
    with items_done(f"Words, {place.name}") as watch:
        return lexicon(model, texts, words, methods, tags=tags, out=place, resume=place.exists(), watch=watch)


def evenness_by_layer(model: InstrumentedModel, texts: Sequence[list[str]]) -> pd.DataFrame:
    """How evenly the traced attention lies over the tokens at each layer: entropy as a share of the largest.

    The mean over heads and texts of two words or more; the local attention itself stands above all layers.
    """
    found = []
    for record in model.records([text for text in texts if len(text) > 1]):
        held = traced(record.weights.double(), record.readout.double())
        shares = np.concatenate([held.numpy(), record.readout.double().expand(1, held.shape[1], -1).numpy()])
        found.append(evenness(shares).mean(1))
    mean = np.stack(found).mean(0)
    layers = [*range(1, len(mean)), 0]
    return pd.DataFrame({"layer": layers, "evenness": mean})
