"""What the paper names as next steps, run here: pretrained vectors, and a frozen contextual encoder."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from ...lab.data import ClassifiedTexts
from ..document import Block, Figure, Heading, Paragraph
from .contextual import contextual_finding, contextual_words
from .drawing import score_distributions
from .pretrained import pretrained_finding, pretrained_runs
from .scales import Scale
from .summaries import comparisons

SCORES = ("polarity", "attention", "local_polarity", "local_attention")


def next_steps(
    folder: Path,
    data: ClassifiedTexts,
    seeds: Sequence[int],
    scale: Scale,
    vectors: str | Path | None,
    encoder: str | None,
) -> tuple[list[Block], dict[str, pd.DataFrame]]:
    """What is told of both steps, as far as there are vectors and an encoder, and the tables behind it."""
    blocks: list[Block] = []
    tables: dict[str, pd.DataFrame] = {}
    rare = pretrained_runs(folder / "pretrained", data, seeds, scale, vectors)
    if rare is not None:
        blocks += [Heading("Pretrained vectors: do rare words gain from polar neighbours?", 2)]
        blocks += [Paragraph(pretrained_finding(rare))]
        tables["pretrained"] = rare
    if encoder is not None:
        words = contextual_words(folder / "contextual", data, seeds, scale, encoder)
        blocks += _contextual(words)
        tables["contextual"] = comparisons(words.assign(data=data.name))
    return [Heading("Beyond the paper"), *blocks] if blocks else [], tables


def _contextual(words: pd.DataFrame) -> Iterator[Block]:
    yield Heading("A frozen contextual encoder", 2)
    yield Paragraph(contextual_finding(words))
    first = words[words["seed"] == words["seed"].min()]
    panels = {score.replace("_", " "): (first, score) for score in SCORES}
    caption = "Scores by kind of word on a frozen encoder: of the word alone, and (local) in training texts."
    yield Figure("contextual", score_distributions(panels, caption), "The first seed.")
