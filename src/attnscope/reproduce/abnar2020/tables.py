"""Tables 1 and 2, and what stands beside them: each figure is a mean over sentences, with its spread and interval."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from jaxtyping import Float64

from ...attribution.agreement import rounded
from ...evaluation.tables import interval, means, resampled_means
from ..evenness import evenness
from .scoring import BASELINES, METHODS, RANKS, REFERENCES, Scored, correlations

TOKENS = ("all", "words")
"""All tokens, as the authors rank them; and the words alone, without [CLS] and the verb's place."""
KEYS = ["reference", "method", "layer", "ranks", "tokens"]

Cell = tuple[str, str, int, str, str]
"""Reference, method, layer from 1 (0 for a baseline, which has none), ranks and tokens."""


@dataclass(frozen=True, eq=False)
class Correlations:
    """What every sentence gives one model for every cell of a table; `seed` is None where there is but one model."""

    seed: int | None
    cells: tuple[Cell, ...]
    values: Float64[np.ndarray, "sentence cell"]
    """NaN where a sentence ranks nothing."""

    @property
    def name(self) -> str:
        """The model in words."""
        return "the classifier" if self.seed is None else f"seed {self.seed}"

    @cached_property
    def _place(self) -> dict[Cell, int]:
        return {cell: place for place, cell in enumerate(self.cells)}

    def mean(self, cell: Cell) -> float:
        """The mean over the sentences that have it; NaN where none has."""
        return float(means(self.values[:, [self._place[cell]]])[0])

    def difference(self, one: Cell, other: Cell) -> tuple[float, float, float]:
        """How much higher one is than the other where a sentence has both: the mean, and its 95% interval.

        The interval is that of the mean when sentences are drawn again.
        """
        apart = self.values[:, [self._place[one]]] - self.values[:, [self._place[other]]]
        low, high = interval(resampled_means(apart, seed=0))
        return float(means(apart)[0]), float(low[0]), float(high[0])

    def table(self) -> pd.DataFrame:
        """One row for each cell: mean, population SD over sentences, interval of the mean, sentences that have it."""
        low, high = interval(resampled_means(self.values, seed=0))
        rows = pd.DataFrame(list(self.cells), columns=KEYS)
        spread = np.array([np.nan if np.isnan(column).all() else np.nanstd(column) for column in self.values.T])
        there = (~np.isnan(self.values)).sum(0)
        return rows.assign(seed=self.seed, mean=means(self.values), sd=spread, low=low, high=high, sentences=there)[
            ["seed", *KEYS, "mean", "sd", "low", "high", "sentences"]
        ]


def scores_of(layers: int) -> list[tuple[str, int]]:
    """The rows that are ranked: every method at every layer, from 1, and the baselines, which have none."""
    return [(method, layer + 1) for method in METHODS for layer in range(layers)] + [(name, 0) for name in BASELINES]


def cells_of(layers: int) -> tuple[Cell, ...]:
    """Every cell, in the order of what `correlations` gives."""
    return tuple(
        (reference, method, layer, ranks, tokens)
        for tokens in TOKENS
        for ranks in RANKS
        for reference in REFERENCES
        for method, layer in scores_of(layers)
    )


def correlated(seed: int, sentences: Sequence[Scored]) -> Correlations:
    """All cells of all sentences."""
    layers = sentences[0].methods.shape[1]
    values = np.array([list(_of_sentence(sentence)) for sentence in sentences])
    return Correlations(seed, cells_of(layers), values)


def _of_sentence(sentence: Scored) -> Iterator[float]:
    scores = np.concatenate([sentence.methods.flatten(0, 1).numpy(), sentence.baselines.numpy()])
    references = sentence.references.numpy()
    for kept in (slice(None), slice(1, -1)):
        yield from correlations(scores[:, kept], references[:, kept]).ravel().tolist()


def saturation_table(scores: Mapping[int, Sequence[Scored]]) -> pd.DataFrame:
    """The share of the flows from [CLS] that are just their trivial cut, and of tokens tied with another, by layer."""
    rows = []
    for seed, sentences in scores.items():
        saturated = np.stack([sentence.saturated.numpy() for sentence in sentences])
        low, high = interval(resampled_means(saturated, seed=0))
        tied = np.stack([_tied(sentence.methods[METHODS.index("flow")].numpy()) for sentence in sentences])
        rows += [
            {"seed": seed, "layer": layer + 1, "saturated": share, "low": below, "high": above, "tied": ties}
            for layer, (share, below, above, ties) in enumerate(
                zip(saturated.mean(0), low, high, tied.mean(0), strict=True)
            )
        ]
    return pd.DataFrame(rows)


def _tied(flows: Float64[np.ndarray, "layer token"]) -> Float64[np.ndarray, " layer"]:
    """The share of tokens whose flow another token has too."""
    shares = []
    for row in flows:
        _, place, count = np.unique(rounded(row), return_inverse=True, return_counts=True)
        shares.append((count[place] > 1).mean())
    return np.array(shares)


def evenness_table(scores: Mapping[int, Sequence[Scored]]) -> pd.DataFrame:
    """How evenly each method spreads over the tokens, by layer: its entropy as a share of the largest."""
    rows = []
    for seed, sentences in scores.items():
        values = np.stack([evenness(sentence.methods.numpy()).ravel() for sentence in sentences])
        low, high = interval(resampled_means(values, seed=0))
        names = [(method, layer + 1) for method in METHODS for layer in range(sentences[0].methods.shape[1])]
        rows += [
            {"seed": seed, "method": method, "layer": layer, "evenness": mean, "low": below, "high": above}
            for (method, layer), mean, below, above in zip(names, means(values), low, high, strict=True)
        ]
    return pd.DataFrame(rows)
