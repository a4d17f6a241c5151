"""The data sets of a scale: SST, IMDB and two of 20 Newsgroups, or made-up sentences in place of SST."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ...lab.data import CLASSIFIED, ClassifiedTexts, PackedTexts, toy_polarity
from .scales import Scale


def data_set(name: str, scale: Scale, place: str | Path | None) -> ClassifiedTexts:
    """The data set of that name; at a scale for trials it is made up."""
    if scale.toy:
        return replace(toy_polarity(), name=name)
    found = CLASSIFIED[name](place)
    if scale.longest is None:
        return found
    train, dev, test = (shortened(part, scale.longest) for part in (found.train, found.dev, found.test))
    return replace(found, train=train, dev=dev, test=test)


def shortened(texts: PackedTexts, longest: int) -> PackedTexts:
    """The first words of each text, no more than so many.

    >>> shortened(PackedTexts.of([[5, 6, 7], [8]], [1, 0]), 2).tokens.tolist()
    [5, 6, 8]
    """
    places = np.arange(len(texts.tokens)) - np.repeat(texts.starts[:-1], texts.lengths)
    starts = np.concatenate([[0], np.cumsum(np.minimum(texts.lengths, longest))])
    return PackedTexts(texts.tokens[places < longest], starts, texts.labels)
