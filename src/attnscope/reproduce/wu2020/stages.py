"""The stages of the experiment, each kept in a folder of its own: a model for each seed, and what its words get."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...attribution.layerwise_tracing import trace_down
from ...capture import InstrumentedModel
from ...corpora import CORPORA, dataset_file
from ...engine import engine
from ...evaluation import LexiconStudy, lexicon
from ...evaluation.lexicons import Lexicon
from ...lab.cooccurrence import train_vectors, treebank_words, write_vectors
from ...lab.data.labelled import read_data_set
from ...lab.models import SentimentTransformer
from ...lab.models.sentiment import Settings
from ...lab.sentiment_training import SST5, accuracy, train_sentiment
from ...progress import items_done
from ...syntax.lines import numbered_lines
from ..evenness import evenness
from ..experiment import Attempt
from .claims import GRADIENT, OF_CLASS, TRACING, Evidence, SeedRun
from .data import SEND, Sentences, sentences_of, stories_of
from .paper import Options, Scale
from .stories import STORIES, StoryModel, mean_concordance

METHODS = (TRACING, GRADIENT, OF_CLASS, "rollout", "flow", "raw")
LEXICON, SCRATCH, TRAINED = "warriner", "scratch", "trained-300"
VECTOR_TEXTS = ("imdb", "wikitext2")
"""What vectors of the paper's width are made of, since GloVe's of 300 dimensions cannot be had everywhere."""


def prepare(attempt: Attempt[Scale, Options]) -> dict[str, Any]:
    """Read the sentences, the stories and the raters; the recipe says which they are."""
    options = attempt.options
    read = sentences_of(
        toy=attempt.scale.toy, corpus=options.corpus, lexicon=options.lexicon or LEXICON, data=options.data
    )
    stories = stories_of(read, options.send, toy=attempt.scale.toy)
    engine(options.engine)  # which refuses a wrong name
    Settings(**_settings(attempt))  # so that a wrong one is refused before anything is written
    attempt.results |= {"sentences read": read, "stories read": stories}
    return {
        "scale": attempt.scale_name,
        "corpus": read.name,
        "stories": None if stories is None else stories.name,
        "vectors": options.vectors,
        "lexicon": read.lexicon.name,
        "probabilities": options.probabilities,
    }


def is_toy(attempt: Attempt[Scale, Options]) -> bool:
    """Whether all that is read is made up."""
    return bool(attempt.scale.toy and attempt.options.corpus is None and attempt.options.send is None)


def _settings(attempt: Attempt[Scale, Options]) -> dict[str, Any]:
    return {**attempt.scale.settings, "probabilities": attempt.options.probabilities}


def find_vectors(attempt: Attempt[Scale, Options]) -> str | None:
    """What words are read as: what was chosen, which is made first where it is to be made here."""
    if is_toy(attempt):
        return SCRATCH
    chosen: str | None = attempt.options.vectors
    if chosen != TRAINED:
        return chosen
    path = attempt.folder / "vectors" / f"{'-'.join(VECTOR_TEXTS)}-300.txt.gz"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        write_vectors(path, train_vectors(_vector_texts(attempt.options.data), 300))
    return str(path)


def _vector_texts(data: Path | None) -> Iterator[list[str]]:
    """The words of all film reviews and articles that are here, labelled or not."""
    for split in CORPORA["imdb"].files:
        yield from (treebank_words(review.text.replace("<br />", " ")) for review in read_data_set("imdb", split, data))
    for split in CORPORA["wikitext2"].files:
        yield from (line.lower().split() for _, line in numbered_lines(dataset_file("wikitext2", split, data)))


def run_sentences(attempt: Attempt[Scale, Options]) -> list[tuple[SentimentTransformer, SeedRun]]:
    """The model of each seed for sentences, trained now or before, and what was measured on it."""
    scale, sentences = attempt.scale, attempt["sentences read"]
    train = partial(
        _train_seed, attempt.folder, scale, sentences.splits, sentences.name, attempt["vectors"], _settings(attempt)
    )
    for _ in engine(attempt.options.engine)(partial(partial, train), enumerate(scale.seeds)):
        pass  # each has its own folder
    return [measure_sentence_seed(attempt, seed) for seed in scale.seeds]


def _place(folder: Path, seed: int) -> Path:
    return folder / "models" / f"seed-{seed}"


def _train_seed(
    folder: Path,
    scale: Scale,
    splits: Mapping[str, Any],
    source: str,
    vectors: str | None,
    settings: Mapping[str, Any],
    seed: int,
) -> None:
    """One model for sentences, trained into its folder, or as far as it got there."""
    place = _place(folder, seed)
    train_sentiment(
        place,
        replace(SST5, epochs=scale.epochs, patience=scale.patience, size=scale.sentences_per_step),
        lambda: splits,
        source,
        vectors=vectors,
        seed=seed,
        resume=place.exists(),
        settings=settings,
    )


def measure_sentence_seed(attempt: Attempt[Scale, Options], seed: int) -> tuple[SentimentTransformer, SeedRun]:
    """The probabilities of softmax always sum to one: their sum has no gradient, and only one class has."""
    folder = attempt.folder
    sentences: Sentences = attempt["sentences read"]
    model = SentimentTransformer.load(_place(folder, seed))
    summed = model.settings.probabilities == "sigmoid"
    methods = [name for name in METHODS if summed or name != GRADIENT]
    test = sentences.splits["test"]
    texts = [list(tree.words) for tree in test]
    read = model.instrumented()
    study = _study(folder / "studies" / f"seed-{seed}", read, texts, sentences.lexicon, methods, sentences.tags)
    return model, SeedRun(seed, accuracy(model, test), study, evenness_by_layer(read, texts), len(test))


def run_stories(attempt: Attempt[Scale, Options]) -> list[tuple[SentimentTransformer, SeedRun]]:
    """The same for stories, where there are any: words are scored in the windows of the test stories."""
    return [] if attempt["stories read"] is None else [run_story_seed(attempt, seed) for seed in attempt.scale.seeds]


def run_story_seed(attempt: Attempt[Scale, Options], seed: int) -> tuple[SentimentTransformer, SeedRun]:
    """Which words are very positive or negative, the lexicon says."""
    scale, folder, stories = attempt.scale, attempt.folder, attempt["stories read"]
    place = folder / "models" / f"stories-seed-{seed}"
    train_sentiment(
        place,
        replace(STORIES, epochs=scale.story_epochs, patience=scale.story_patience, size=scale.stories_per_step),
        lambda: stories.splits,
        stories.name,
        vectors=attempt["vectors"],
        seed=seed,
        resume=place.exists(),
        settings=scale.settings,
    )
    model = SentimentTransformer.load(place)
    test = stories.splits["test"]
    read = StoryModel(model, test)
    texts = read.windows
    methods = [name for name in METHODS if name != OF_CLASS]
    words = attempt["sentences read"].lexicon
    study = _study(folder / "studies" / f"stories-seed-{seed}", read, texts, words, methods, None)
    return model, SeedRun(seed, mean_concordance(model, test), study, evenness_by_layer(read, texts), len(test))


def evidence_of(attempt: Attempt[Scale, Options]) -> Evidence:
    """What was measured on all models."""
    stories = attempt["stories read"]
    return Evidence(
        tuple(run for _, run in attempt["sentences"]),
        tuple(run for _, run in attempt["stories"]),
        SEND if stories is None else stories.name,
    )


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
    """How evenly the traced attention is spread over the tokens at each layer: entropy as a share of the largest.

    The mean over heads and texts of two words or more; the local attention itself stands above all layers.
    """
    found = []
    for record in model.records([text for text in texts if len(text) > 1]):
        held = trace_down(record.weights.double(), record.readout.double())
        shares = np.concatenate([held.numpy(), record.readout.double().expand(1, held.shape[1], -1).numpy()])
        found.append(evenness(shares).mean(1))
    mean = np.stack(found).mean(0)
    layers = [*range(1, len(mean)), 0]
    return pd.DataFrame({"layer": layers, "evenness": mean})
