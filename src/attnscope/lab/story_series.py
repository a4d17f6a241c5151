"""What a sentiment model makes of stories: the valence of each window, and what the words have to do with it."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..capture.evaluating import evaluated
from ..errors import BadInput
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


def summed_gradients(
    model: SentimentTransformer, story: Story
) -> tuple[Float[Tensor, "window token vector"], Float[Tensor, "window token vector"]]:
    """The word vectors of every window, and the gradient at them of the valences of all windows added up.

    That is the paper's baseline. Attention stays within a window and the gradient does not: a window touches all that
    follow it.
    """
    with torch.enable_grad(), evaluated(model, model):
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
