"""The recipe of the sentiment model for five classes: trained on the sentences of SST, after Wu, Nguyen & Ong 2020.

Theirs are batches of 500 and 200 epochs on a GPU, and their code leaves dropout off after the first validation. Here
batches are smaller, so that a CPU needs fewer epochs, and dropout stays on.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from .data.sst_trees import SentimentTree, tree_splits
from .lesson import Lesson, answers, learn_into, measure_answers
from .models.sentiment import SentimentTransformer
from .sentiment_training import Pace, Subject, knowing, sentiment_lesson
from .train import Measurement

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
    `place` is where data sets lie, before $ATTNSCOPE_DATA. Until the end a subfolder `unfinished` holds the checkpoint,
    from which `resume` goes on to the very same weights.
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
    return knowing(words, vectors, **settings)


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
    found = answers(
        trees,
        lambda tree: len(tree.words),
        lambda batch: model(**model.batch([tree.words for tree in batch])),
        SENTENCES_AT_ONCE,
    )
    return sum(answer == tree.label for answer, tree in zip(found, trees, strict=True)) / len(trees)
