"""The recipe of the sentiment model for stories: squared error of each window's valence, best by concordance.

Wu, Nguyen & Ong 2020 train on batches of 25 transcripts of SEND and keep what has the best mean concordance on those
for validation.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ...capture import InstrumentedModel
from ...capture.watching import in_evaluation
from ...errors import BadInput
from ...lab.data.story import Story
from ...lab.models.sentiment import SentimentTransformer, SeriesDecoder
from ...lab.sentiment_training import Subject
from ...lab.train import Measurement
from ...record import AttentionRecord, Target, Text


def _measure(model: SentimentTransformer, batch: Sequence[Story]) -> Measurement:
    """What the log has as accuracy is here the concordance of all windows of a step."""
    found, real = valences(model, batch)
    predicted, rated = found[real], torch.tensor([valence for story in batch for valence in story.valences])
    together = concordance_of_stories([predicted.tolist()], [rated.tolist()]).overall
    return Measurement((predicted - rated).square().mean(), together)


def mean_concordance(model: SentimentTransformer, stories: Sequence[Story]) -> float:
    """The mean over stories of how well predicted and rated valences agree: the paper's figure."""
    return concordance_of_stories(predicted_series(model, stories), [story.valences for story in stories]).mean


STORIES: Subject[Story] = Subject(
    task="stories",
    unit="stories",
    answers="for the valence of stories over time",
    learned_from="On {} stories ({})",
    words=lambda story: [word for window in story.windows for word in window.read],
    length=lambda story: len(story.windows),
    content=lambda story: repr((story.name, [window.read for window in story.windows], story.valences)),
    measure=_measure,
    figure=mean_concordance,
    validation="a mean concordance of {:.3f}",
    result="a mean concordance of {:.3f}",
    epochs=60,
    size=25,
    patience=10,
    settings={"answer": "series"},
)
"""The valence of each window of a story, learned with `attnscope.lab.sentiment_training`."""


# Concordance: whether two series agree in value, and not only in shape (Lin 1989).


def concordance(predicted: Sequence[int | float], rated: Sequence[int | float]) -> float:
    """The concordance correlation coefficient of two series, from -1 to 1.

    Wu, Nguyen & Ong 2020, Eq. 15: 2 Corr(X, Y) σ_X σ_Y / (σ_X² + σ_Y² + (μ_X - μ_Y)²), with the variance of a
    population. Two series that never change and are the same have none: the value is then not a number.

    >>> round(concordance([1, 2, 3], [2, 3, 4]), 3)
    0.571
    """
    x, y = np.asarray(predicted, dtype=float), np.asarray(rated, dtype=float)
    if x.shape != y.shape or x.ndim != 1 or len(x) == 0:
        raise BadInput(f"Two series of the same length have a concordance, not {x.shape} and {y.shape} values.")
    together = float(((x - x.mean()) * (y - y.mean())).mean())
    apart = float(x.var() + y.var() + (x.mean() - y.mean()) ** 2)
    return 2 * together / apart if apart > 0 else float("nan")


@dataclass(frozen=True)
class Concordance:
    """The concordance of each story, their mean and spread, and that of all windows of all stories as one series."""

    each: tuple[float, ...]
    mean: float
    deviation: float
    overall: float


def concordance_of_stories(
    predicted: Sequence[Sequence[int | float]], rated: Sequence[Sequence[int | float]]
) -> Concordance:
    """How well predicted series agree with rated ones, story by story; the paper's figure is the mean over stories."""
    if len(predicted) != len(rated) or not predicted:
        raise BadInput(
            f"{len(predicted)} predicted and {len(rated)} rated stories: give as many of both, at least one."
        )
    each = tuple(concordance(said, meant) for said, meant in zip(predicted, rated, strict=True))
    known = np.array([value for value in each if not np.isnan(value)])
    mean, deviation = (float(known.mean()), float(known.std())) if len(known) else (float("nan"), float("nan"))
    overall = concordance(
        [value for said in predicted for value in said], [value for meant in rated for value in meant]
    )
    return Concordance(each, mean, deviation, overall)


# What a sentiment model makes of stories: the valence of each window, and what the words have to do with it.


def valences(
    model: SentimentTransformer, stories: Sequence[Story]
) -> tuple[Float[Tensor, "story window"], Bool[Tensor, "story window"]]:
    """The valence that the model gives to each window of each story, and the mask that is true where a window is."""
    batch = _batch(model, stories)
    found = _series(model, stories, model.words(batch["input_ids"]), batch["attention_mask"])
    lengths = torch.tensor([len(story.windows) for story in stories])
    return found, torch.arange(found.shape[1]) < lengths.unsqueeze(1)


def predicted_series(model: SentimentTransformer, stories: Sequence[Story]) -> list[list[float]]:
    """The valence of each window, story by story, as numbers."""
    with torch.no_grad():
        return [valences(model, [story])[0][0].tolist() for story in stories]


def summed_gradients(
    model: SentimentTransformer, story: Story
) -> tuple[Float[Tensor, "window token vector"], Float[Tensor, "window token vector"]]:
    """The word vectors of every window, and the gradient at them of the valences of all windows added up.

    That is the paper's baseline. Attention stays within a window and the gradient does not: a window touches all that
    follow it.
    """
    with torch.enable_grad(), in_evaluation(model, model):
        batch = _batch(model, [story])
        vectors = model.words(batch["input_ids"]).detach().requires_grad_()
        (gradients,) = torch.autograd.grad(_series(model, [story], vectors, batch["attention_mask"]).sum(), vectors)
    return vectors.detach(), gradients


def _batch(model: SentimentTransformer, stories: Sequence[Story]) -> dict[str, Tensor]:
    """All windows of all stories, one to a row."""
    return model.batch([window.read for story in stories for window in story.windows])


def _series(
    model: SentimentTransformer,
    stories: Sequence[Story],
    vectors: Float[Tensor, "row token vector"],
    real: Bool[Tensor, "row token"],
) -> Float[Tensor, "story window"]:
    """The valences from the vectors of all windows; behind the end of a story they mean nothing."""
    if not isinstance(model.decoder, SeriesDecoder):
        raise BadInput("This model tells classes, not valences over time: make it with SentimentTransformer.for_send.")
    contexts = model.contexts(vectors, real).split([len(story.windows) for story in stories])
    return model.decoder.series(nn.utils.rnn.pad_sequence(list(contexts), batch_first=True))


# StoryModel: a sentiment model read window by window, each with the gradient of its whole story.


class StoryModel(InstrumentedModel):
    """A model of stories as methods and studies want one: it reads the `windows` of stories and gives a record of each.

    Gradients are those of the valences of all windows of the story, added up, whatever target is asked for. A window is
    known by the very list that it stands in, because two windows may have the same words.
    """

    def __init__(self, model: SentimentTransformer, stories: Iterable[Story]) -> None:
        super().__init__(model.instrumented().reader)
        found = [
            (list(window.tokens), story, place)
            for story in stories
            for place, window in enumerate(story.windows)
            if not window.silent
        ]
        self.windows = [words for words, _, _ in found]
        """The words of each window in which something is said, in their order: what this model reads."""
        self._places = {id(words): (story, place) for words, story, place in found}
        # the windows of a story come one after another, and all need the same gradient
        self._gradients = lru_cache(maxsize=2)(lambda story: summed_gradients(model, story))

    def record(self, text: Any = None, **options: Any) -> Any:
        """What the model does in one window."""
        return next(iter(self.records([text], 1, **options)))

    def records(
        self, texts: Iterable[Text], batch_size: int = 16, *, truncate: bool = False, **options: Any
    ) -> Iterator[AttentionRecord]:
        """What the model does in each window; options as in `InstrumentedModel.record`."""
        windows = list(texts)
        wanted = options.pop("gradients", False)
        for name in ("target", "quantity"):
            options.pop(name, None)
        records = super().records(windows, batch_size, truncate=truncate, **options)
        return self._with_gradients(windows, records) if wanted else records

    def _with_gradients(self, windows: Sequence[Any], records: Iterator[AttentionRecord]) -> Iterator[AttentionRecord]:
        for window, record in zip(windows, records, strict=True):
            if id(window) not in self._places:
                raise BadInput("A gradient of a story is known for its own windows only: read those of `windows`.")
            story, place = self._places[id(window)]
            vectors, gradients = self._gradients(story)
            yield replace(
                record,
                embeddings=vectors[place, : len(record.tokens)].clone(),
                embedding_gradients=gradients[place, : len(record.tokens)].clone(),
                target=Target("sum", None, "logit"),
            )
