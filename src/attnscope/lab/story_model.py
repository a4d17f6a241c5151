"""StoryModel: a sentiment model read window by window, each with the gradient of its whole story."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..capture import ModuleModel
from ..record import AttentionRecord, Target, Text
from .data.story import Story
from .models.sentiment import SentimentTransformer
from .story_series import summed_gradients


class SpokenWords(list[str]):
    """The words of a window, as a text that knows in which story it stands and where."""

    def __init__(self, story: Story, place: int) -> None:
        super().__init__(story.windows[place].tokens)
        self.story, self.place = story, place


def spoken(stories: Iterable[Story]) -> list[SpokenWords]:
    """The windows in which something is said, in their order."""
    return [
        SpokenWords(story, place)
        for story in stories
        for place, window in enumerate(story.windows)
        if not window.silent
    ]


class StoryModel(ModuleModel):
    """A model of stories as methods and studies want one: it reads `spoken` windows and gives a record of each.

    Gradients are those of the valences of all windows of the story, added up, whatever target is asked for.
    """

    def __init__(self, model: SentimentTransformer) -> None:
        read = model.instrumented()
        super().__init__(read.reader, read.tokenize, read.blank_ids, read.longest, read.name)
        # the windows of a story come one after another, and all need the same gradient
        self._gradients = lru_cache(maxsize=2)(lambda story: summed_gradients(model, story))

    def record(self, text: Text, **options: Any) -> AttentionRecord:
        """What the model does in one window."""
        return next(iter(self.records([text], 1, **options)))

    def records(
        self, texts: Iterable[Text], batch_size: int = 16, *, truncate: bool = False, **options: Any
    ) -> Iterator[AttentionRecord]:
        """What the model does in each window; options as in `ModuleModel.record`."""
        windows = list(texts)
        wanted = options.pop("gradients", False)
        for name in ("target", "quantity"):
            options.pop(name, None)
        records = super().records(windows, batch_size, truncate=truncate, **options)
        return self._with_gradients(windows, records) if wanted else records

    def _with_gradients(self, windows: Sequence[Any], records: Iterator[AttentionRecord]) -> Iterator[AttentionRecord]:
        for window, record in zip(windows, records, strict=True):
            vectors, gradients = self._gradients(window.story)
            yield replace(
                record,
                embeddings=vectors[window.place, : len(record.tokens)].clone(),
                embedding_gradients=gradients[window.place, : len(record.tokens)].clone(),
                target=Target("sum", None, "logit"),
            )
