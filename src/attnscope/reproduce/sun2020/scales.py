"""How much is run at each scale."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadInput
from ...lab.data import CLASSIFIED, ClassifiedTexts, PackedTexts, toy_polarity

SCALINGS = (0.001, 1.0, 10.0, 20.0, 50.0, 100.0, 10000.0)
"""The values of λ in Table 2."""
VARIANTS = ("dot", "dot_affine", "additive", "dot_lstm")
"""DP, DP-A, AD and DP-L, the cheapest to train first."""
L2 = 1e-4
"""On everything but the embeddings of DP-A, AD and DP-L; the paper has one and does not say how strong."""
PENALTIES = (1e-4, 1e-3, 1e-2)
"""Strengths c of the penalty on |V·W|; the first is what stands in the authors' notebook, switched off."""


@dataclass(frozen=True)
class Scale:
    """The data sets with their seeds, and how long each model is trained."""

    toy: bool
    """Whether the data are made up, in place of SST."""
    seeds: Mapping[str, tuple[int, ...]]
    """By data set, as Table 2 has them."""
    epochs: Mapping[str, int]
    """At most, by variant."""
    patience: Mapping[str, int | None]
    """A run ends after so many epochs without a better accuracy on dev."""
    width: int
    longest: int | None
    """Of longer texts only so many words are read."""
    made_up: Mapping[str, Any]
    """The sentences of the synthetic study."""
    made_up_epochs: int
    skew_epochs: int
    """Of the part that varies the share of positive sentences, which has twenty runs."""

    def training(self, variant: str) -> dict[str, Any]:
        """What `sweep` is told about a variant."""
        return {"epochs": self.epochs[variant], "patience": self.patience[variant], "width": self.width}


def _all(number: int | None) -> dict[str, Any]:
    return dict.fromkeys(VARIANTS, number)


THREE = (1, 2, 3)
REAL = {"sst": THREE, "20news1": THREE, "20news2": THREE, "imdb": (1,)}
SCALES = {
    "smoke": Scale(
        True, {"sst": (1,)}, _all(6), _all(None), 16, None, {"texts": 240, "polar": 10, "neutral": 40}, 20, 10
    ),
    "cpu": Scale(
        False,
        REAL,
        {"dot": 40, "dot_affine": 40, "additive": 20, "dot_lstm": 8},
        {"dot": 10, "dot_affine": 10, "additive": 4, "dot_lstm": 3},
        100,
        400,
        {},
        500,
        100,
    ),
    "paper": Scale(False, {**REAL, "imdb": THREE}, _all(40), _all(None), 100, None, {}, 500, 500),
}


def scale_named(name: str) -> Scale:
    """The scale, if there is one of that name."""
    if name not in SCALES:
        raise BadInput(f"There is no scale {name!r}: choose {', '.join(SCALES)}.")
    return SCALES[name]


# The data sets of a scale: SST, IMDB and two of 20 Newsgroups, or made-up sentences in place of SST.


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
