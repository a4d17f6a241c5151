"""The recipe of the sentiment model for stories: squared error of each window's valence, best by concordance.

Wu, Nguyen & Ong 2020 train on batches of 25 transcripts of SEND and keep what has the best mean concordance on those
for validation.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from .batches import Batches
from .concordance import concordance_of_stories
from .data.story import Story
from .models.sentiment import SentimentTransformer
from .rates import constant
from .sst5 import RATE, adam
from .stopping import EarlyStopping
from .story_series import predicted_series, valences
from .train import LogRow, Measurement, train

EPOCHS, STORIES_PER_STEP, PATIENCE = 30, 25, 5


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
    batches = Batches([len(story.windows) for story in training], stories_per_step, seed)
    planned = epochs * len(batches) if steps is None else steps
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make()
        log = train(
            model,
            _measuring(model, training, batches),
            constant(RATE),
            planned,
            recipe={
                "task": "stories",
                "seed": seed,
                "steps": planned,
                "stories_per_step": stories_per_step,
                "examples": _fingerprint([*training, *validation]),
                "settings": asdict(model.settings),
                "words": len(model.vocabulary),
            },
            checkpoint=checkpoint,
            optimizer=adam,
            longest_gradient=math.inf,
            stopping=EarlyStopping(lambda: mean_concordance(model, validation), len(batches), patience),
        )
    return model.eval(), log


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


def _fingerprint(stories: Sequence[Story]) -> str:
    """What tells these stories from others, in their order."""
    digest = hashlib.sha256()
    for story in stories:
        digest.update(repr((story.name, [window.read for window in story.windows], story.valences)).encode())
    return digest.hexdigest()
