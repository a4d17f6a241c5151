"""A table of our own: how often the word that decides, the verb's subject, is the highest of all words."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float64

from ...attribution.agreement import rounded
from .scoring import METHODS, REFERENCES, Scored

MANY = 4
"""Sentences with so many attractors or more are one group."""


def subjects_found(scores: Mapping[int, Sequence[Scored]]) -> pd.DataFrame:
    """By seed, attractors, method and layer: the share of sentences whose subject is highest.

    [CLS] and the verb's place are left out. Words that share the highest score are each it with the same probability.
    Beside the methods stand blank-out and the gradient, which say how often the model itself goes by the subject;
    `chance`, one word drawn; `first` and `last`, the first and the last word. Sentences whose subject nobody knows are
    left out.
    """
    rows = []
    for seed, sentences in scores.items():
        known = [sentence for sentence in sentences if sentence.subject > 0]
        for attractors in [None, *range(MANY + 1)]:
            some = [one for one in known if attractors is None or min(one.attractors, MANY) == attractors]
            if not some:
                continue
            hits = [dict(_hits(sentence)) for sentence in some]
            named = "all" if attractors is None else f"{attractors}{' or more' if attractors == MANY else ''}"
            for method, layer in hits[0]:
                values = np.array([of_sentence[method, layer] for of_sentence in hits])
                mean, error = values.mean(), values.std() / np.sqrt(len(values))
                rows.append(
                    {"seed": seed, "attractors": named, "method": method, "layer": layer, "found": mean,
                     "error": error, "sentences": len(values)}
                )  # fmt: skip
    return pd.DataFrame(rows)


def _hits(sentence: Scored) -> Iterator[tuple[tuple[str, int], float]]:
    """How likely the subject is the highest word, by method and layer (0 where there is no layer)."""
    subject, words = sentence.subject - 1, sentence.methods.shape[-1] - 2
    for method, layers in zip(METHODS, sentence.methods.numpy(), strict=True):
        for layer, row in enumerate(layers):
            yield (method, layer + 1), share_of_top(row[1:-1], subject)
    for reference, row in zip(REFERENCES[:2], sentence.references.numpy(), strict=False):
        yield (reference, 0), share_of_top(row[1:-1], subject)
    yield ("chance", 0), 1 / words
    yield ("first", 0), float(subject == 0)
    yield ("last", 0), float(subject == words - 1)


def share_of_top(scores: Float64[np.ndarray, " word"], place: int) -> float:
    """How likely a word is the highest when ties are broken at random.

    >>> share_of_top(np.array([0.5, 0.5, 0.1]), 0), share_of_top(np.array([0.5, 0.5, 0.1]), 2)
    (0.5, 0.0)
    """
    values = rounded(scores)
    highest = values == values.max()
    return float(highest[place] / highest.sum())
