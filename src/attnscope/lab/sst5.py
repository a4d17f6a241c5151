"""The recipe of the sentiment model for five classes: trained on the sentences of SST, after Wu, Nguyen & Ong 2020.

Theirs are batches of 500 and 200 epochs on a GPU, and their code leaves dropout off after the first validation. Here
batches are smaller, so that a CPU needs fewer epochs, and dropout stays on.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from .batches import Batches
from .data.sst_trees import SentimentTree, tree_splits
from .folder import finish, unfinished_training
from .models.sentiment import SentimentTransformer
from .sentiment_training import Lesson, card, fingerprint, knowing, trained_on
from .train import LogRow, Measurement

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
    unfinished = unfinished_training(out, resume, seed)
    if unfinished is None:
        return out
    splits = splits_of()
    size = sentences_per_step or SENTENCES_PER_STEP
    model, log = trained(
        splits["train"],
        splits["dev"],
        unfinished / "checkpoint.safetensors",
        lambda: untrained(splits, vectors, **(settings or {})),
        seed,
        steps,
        epochs=epochs,
        sentences_per_step=size,
        patience=patience,
    )
    told = card(
        model,
        log,
        answers="for five classes",
        learned_from=f"By `attnscope train sst5` on {len(splits['train'])} sentences ({source})",
        unit="sentences",
        seed=seed,
        size=size,
        dev=len(splits["dev"]),
        test=len(splits["test"]),
        validation="{:.2%} of them right",
        result=f"{accuracy(model, splits['test']):.2%} are right",
    )
    finish(out, log, told, model.save)
    return out


def untrained(
    splits: Mapping[str, Sequence[SentimentTree]], vectors: str | Path | None, **settings: Any
) -> SentimentTransformer:
    """A model that knows the words of these sentences."""
    words = {split: [word for tree in trees for word in tree.words] for split, trees in splits.items()}
    return knowing(words, vectors, **settings)


def trained(
    training: Sequence[SentimentTree],
    validation: Sequence[SentimentTree],
    checkpoint: Path,
    make: Callable[[], SentimentTransformer],
    seed: int = 0,
    steps: int | None = None,
    *,
    epochs: int = EPOCHS,
    sentences_per_step: int | None = None,
    patience: int = PATIENCE,
) -> tuple[SentimentTransformer, list[LogRow]]:
    """The model that `make` makes, trained on these sentences and best on the validation sentences, and its log.

    `steps` updates at most, or else `epochs` epochs. The same seed makes the same model; a checkpoint is gone on with.
    """
    lesson = Lesson(
        task="sst5",
        unit="sentences",
        lengths=[len(tree.words) for tree in training],
        fingerprint=fingerprint(f"{' '.join(tree.words)}\t{tree.label}\n" for tree in [*training, *validation]),
        measuring=lambda model, batches: _measuring(model, training, batches),
        figure=lambda model: accuracy(model, validation),
    )
    size = sentences_per_step or SENTENCES_PER_STEP
    return trained_on(lesson, make, checkpoint, seed, steps=steps, epochs=epochs, size=size, patience=patience)


def answers(model: SentimentTransformer, sentences: Sequence[Sequence[str]]) -> list[int]:
    """The class that the model gives to each sentence, in their order."""
    order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
    found: dict[int, int] = {}
    for start in range(0, len(order), SENTENCES_AT_ONCE):
        places = order[start : start + SENTENCES_AT_ONCE]
        with torch.no_grad():
            chosen = model(**model.batch([sentences[place] for place in places])).argmax(-1).tolist()
        found.update(zip(places, chosen, strict=True))
    return [found[place] for place in range(len(sentences))]


def accuracy(model: SentimentTransformer, trees: Sequence[SentimentTree]) -> float:
    """The share of sentences that get the right one of the five classes."""
    said = answers(model, [tree.words for tree in trees])
    return sum(answer == tree.label for answer, tree in zip(said, trees, strict=True)) / len(trees)


def _measuring(
    model: SentimentTransformer, trees: Sequence[SentimentTree], batches: Batches
) -> Callable[[int], Measurement]:
    def measure(step: int) -> Measurement:
        batch = [trees[place] for place in batches[step]]
        targets = torch.tensor([tree.label for tree in batch])
        logits = model(**model.batch([tree.words for tree in batch]))
        right = (logits.argmax(-1) == targets).float().mean().item()
        return Measurement(model.loss(logits, targets), right)

    return measure
