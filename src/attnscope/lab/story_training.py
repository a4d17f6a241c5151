"""The recipe of the sentiment model for stories: squared error of each window's valence, best by concordance.

Wu, Nguyen & Ong 2020 train on batches of 25 transcripts of SEND and keep what has the best mean concordance on those
for validation.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from .batches import Batches
from .concordance import concordance_of_stories
from .data.story import Story
from .folder import finish, unfinished_training
from .models.sentiment import SentimentTransformer
from .sentiment_training import Lesson, card, fingerprint, knowing, trained_on
from .story_series import predicted_series, valences
from .train import LogRow, Measurement

EPOCHS, STORIES_PER_STEP, PATIENCE = 60, 25, 10


def train_on_stories(
    out: Path,
    splits: Mapping[str, Sequence[Story]],
    source: str,
    *,
    vectors: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    steps: int | None = None,
    epochs: int = EPOCHS,
    stories_per_step: int = STORIES_PER_STEP,
    patience: int = PATIENCE,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Train on "train", validate on "dev" and test on "test" for the card, which names the `source` of the stories."""
    unfinished = unfinished_training(out, resume, seed)
    if unfinished is None:
        return out
    model, log = trained_on_stories(
        splits["train"],
        splits["dev"],
        unfinished / "checkpoint.safetensors",
        lambda: untrained(splits, vectors, **(settings or {})),
        seed,
        steps,
        epochs=epochs,
        stories_per_step=stories_per_step,
        patience=patience,
    )
    told = card(
        model,
        log,
        answers="for the valence of stories over time",
        learned_from=f"On {len(splits['train'])} stories ({source})",
        unit="stories",
        seed=seed,
        size=stories_per_step,
        dev=len(splits["dev"]),
        test=len(splits["test"]),
        validation="a mean concordance of {:.3f}",
        result=f"a mean concordance of {mean_concordance(model, splits['test']):.3f}",
    )
    finish(out, log, told, model.save)
    return out


def untrained(
    splits: Mapping[str, Sequence[Story]], vectors: str | Path | None, **settings: Any
) -> SentimentTransformer:
    """A model that knows the words of these stories."""
    words = {
        split: [word for story in stories for window in story.windows for word in window.read]
        for split, stories in splits.items()
    }
    return knowing(words, vectors, answer="series", **settings)


def trained_on_stories(
    training: Sequence[Story],
    validation: Sequence[Story],
    checkpoint: Path,
    make: Callable[[], SentimentTransformer],
    seed: int = 0,
    steps: int | None = None,
    *,
    epochs: int = EPOCHS,
    stories_per_step: int = STORIES_PER_STEP,
    patience: int = PATIENCE,
) -> tuple[SentimentTransformer, list[LogRow]]:
    """The model that `make` makes, trained on these stories and best on the validation stories, and its log.

    `steps` updates at most, or else `epochs` epochs. The same seed makes the same model; a checkpoint is gone on with.
    What the log has as accuracy is here the concordance of all windows of a step.
    """
    lesson = Lesson(
        task="stories",
        unit="stories",
        lengths=[len(story.windows) for story in training],
        fingerprint=fingerprint(
            repr((story.name, [window.read for window in story.windows], story.valences))
            for story in [*training, *validation]
        ),
        measuring=lambda model, batches: _measuring(model, training, batches),
        figure=lambda model: mean_concordance(model, validation),
    )
    size = stories_per_step
    return trained_on(lesson, make, checkpoint, seed, steps=steps, epochs=epochs, size=size, patience=patience)


def mean_concordance(model: SentimentTransformer, stories: Sequence[Story]) -> float:
    """The mean over stories of how well predicted and rated valences agree: the paper's figure."""
    return concordance_of_stories(predicted_series(model, stories), [story.valences for story in stories]).mean


def _measuring(model: SentimentTransformer, stories: Sequence[Story], batches: Batches) -> Callable[[int], Measurement]:
    def measure(step: int) -> Measurement:
        batch = [stories[place] for place in batches[step]]
        found, real = valences(model, batch)
        said, meant = found[real], torch.tensor([valence for story in batch for valence in story.valences])
        together = concordance_of_stories([said.tolist()], [meant.tolist()]).overall
        return Measurement((said - meant).square().mean(), together)

    return measure
