"""Table 3: rollout and flow against input gradients in a sentiment classifier that is fine-tuned here."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from ...attribution import flow, gradient, raw, rollout
from ...engine import Store
from ...evaluation.erasure import position_scores, random_scores
from ...lab.sentiment import Labelled, labelled_splits
from ...record import AttentionRecord
from .scoring import PART, RANKS, State, correlations, shares
from .tables import TOKENS, Cell, Correlations, scores_of

Item = TypeVar("Item")
SOURCES = ("maximum", "cls")
"""Whose attention a token gets: the most that any token gives it, as the authors' code has it, or that of [CLS]."""
MOST_TOKENS = 64
"""Longer sentences are passed over: the maximum over sources needs the flow between all pairs of tokens."""


def sentiment_correlations(
    model: Any, weights: str, items: Sequence[Labelled], folder: Path, watch: Callable[[int, int], None]
) -> tuple[Correlations, float]:
    """What each sentence gives for each cell of Table 3, and the share of sentences that the classifier gets right.

    Parts of them are kept in `folder`; `weights` tells this classifier from others.
    """
    store = Store(folder, "classifier", {"weights": weights})
    states = list(chain.from_iterable(store.in_parts(items, PART, partial(_correlated, model), vars, watch)))
    values = np.stack([state["values"].numpy() for state in states])
    right = sum(state["right"] for state in states) / len(states)
    return Correlations(None, cells_of(states[0]["layers"]), values), right


def cells_of(layers: int) -> tuple[Cell, ...]:
    """Every cell of Table 3: source, method, layer, ranks, tokens."""
    return tuple(
        (source, method, layer, ranks, tokens)
        for source in SOURCES
        for tokens in TOKENS
        for ranks in RANKS
        for method, layer in scores_of(layers)
    )


def _correlated(model: Any, items: Sequence[Labelled], start: int) -> list[State]:
    """The cells of some sentences. The length of a gradient of p(one) - p(other) is the same for both classes."""
    records = model.records([item.text for item in items], gradients=True, quantity="difference")
    return [
        {
            "layers": len(record.layers),
            "right": record.prediction[0][0] == item.label,
            "values": torch.tensor(list(_cells(record, start + place)), dtype=torch.float64),
        }
        for place, (item, record) in enumerate(zip(items, records, strict=True))
    ]


def _cells(record: AttentionRecord, number: int) -> Iterator[float]:
    count = len(record.tokens)
    maps = (raw(record).map.double(), rollout(record).map.double(), flow(record).map)
    baselines = torch.stack([random_scores(count, 0, number), position_scores(record.readout, count)])
    reference = gradient(record).scores.double()[None].numpy()
    words = ~np.array(record.special)
    for source in SOURCES:
        rows = torch.cat([*(_rows(one, source) for one in maps), baselines]).numpy()
        for kept in (np.ones(count, dtype=bool), words):
            yield from correlations(rows[:, kept], reference[:, kept]).ravel().tolist()


def _rows(maps: Float64[Tensor, "layer token token"], source: str) -> Float64[Tensor, "layer token"]:
    """What each token gets at each layer, as shares of all."""
    return shares(maps[:, 0] if source == "cls" else maps.amax(1))


def reviews(count: int, model: Any, data: str | Path | None) -> list[Labelled]:
    """So many test sentences of the sentiment treebank, spread evenly over those that are short enough."""
    items = labelled_splits("sst", data)["test"]
    return evenly([item for item in items if len(model.tokens(item.text)) <= MOST_TOKENS], count)


def evenly(items: Sequence[Item], count: int) -> list[Item]:
    """So many of the items, spread as evenly as can be; all where there are no more.

    >>> evenly(["a", "b", "c", "d"], 2)
    ['b', 'd']
    """
    whole = len(items)
    return [item for place, item in enumerate(items) if (place + 1) * count // whole > place * count // whole]
