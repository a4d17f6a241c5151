"""What a sentiment model makes of stories: the valence of each window, and a record of each that can be traced."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..capture.evaluating import evaluated
from ..errors import BadInput
from ..record import AttentionRecord, Target
from .data.story import Story
from .models.sentiment import SentimentTransformer
from .models.sentiment_layers import SeriesDecoder


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


def story_records(model: SentimentTransformer, story: Story) -> list[AttentionRecord]:
    """A record of each window in which something is said, with the gradient of the paper's baseline.

    Attention stays within a window. The gradient does not: it is that of the valences of all windows added up, and a
    window touches all that follow it.
    """
    spoken = [place for place, window in enumerate(story.windows) if not window.silent]
    records = list(model.instrumented().records([list(story.windows[place].tokens) for place in spoken]))
    with torch.enable_grad(), evaluated(model, model):
        batch = _batch(model, [story])
        vectors = model.words(batch["input_ids"]).detach().requires_grad_()
        (gradients,) = torch.autograd.grad(_series(model, [story], vectors, batch["attention_mask"]).sum(), vectors)
    return [
        replace(
            record,
            embeddings=vectors[place, : len(record.tokens)].detach().clone(),
            embedding_gradients=gradients[place, : len(record.tokens)].clone(),
            target=Target("sum", None, "logit"),
        )
        for place, record in zip(spoken, records, strict=True)
    ]


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
