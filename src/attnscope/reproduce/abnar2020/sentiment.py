"""Table 3, a stage of its own: rollout and flow against input gradients in a sentiment classifier, fine-tuned here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from ...attribution import flow, gradient, raw, rollout
from ...capture import load
from ...engine import Store
from ...errors import BadInput
from ...evaluation.per_text import position_scores, random_scores
from ...lab import train_classifier
from ...lab.data.examples_file import sha256_of
from ...lab.data.labelled import Labelled, labelled_splits
from ...lab.models.word_model import WEIGHTS
from ...progress import items_done, working
from ...record import AttentionRecord
from ..experiment import Attempt
from .paper import Options, Scale
from .scoring import PART, RANKS, TOKENS, Cell, Correlations, State, correlations, scores_of, shares

Item = TypeVar("Item")
SOURCES = ("maximum", "cls")
"""Whose attention a token gets: the most that any token gives it, as the authors' code has it, or that of [CLS]."""
MOST_TOKENS = 64
"""Longer sentences are passed over: the maximum over sources needs the flow between all pairs of tokens."""
SHIPPED_MODEL = "demo"


@dataclass(frozen=True, eq=False)
class Sentiment:
    """Table 3 and what it was measured on, or twice the sentence that says what is missing."""

    correlations: Correlations | str
    about: str


def run_sentiment(attempt: Attempt[Scale, Options]) -> Sentiment:
    """Fine-tune the classifier and see how its sentences correlate.

    An encoder that the user names must be there; where the paper's own is not, the table is left out. At a scale
    without an encoder the shipped model stands in, and reads the test sentences of the agreement models.
    """
    scale, options = attempt.scale, attempt.options
    encoder, place = options.encoder or scale.encoder, None
    try:
        if encoder is not None:  # fine-tuned now, or found there from before
            place = attempt.folder / "models" / f"classifier-{Path(encoder).name}"
            train_classifier(place, resume=place.exists(), model=encoder, place=options.data)
    except BadInput as missing:
        if options.encoder is not None:
            raise
        reason = f"Not measured: {missing} (--encoder names what is fine-tuned.)"
        return Sentiment(reason, reason)
    with working("Loading the classifier"):
        model = load(SHIPPED_MODEL if place is None else str(place))
    if place is None:
        testing = attempt["examples"].testing
        items = spread_evenly([Labelled(" ".join(one.words), one.number) for one in testing], scale.reviews)
        weights, name, about = SHIPPED_MODEL, SHIPPED_MODEL, "the shipped model in place of a sentiment classifier"
    else:
        items = reviews(scale.reviews, model, options.data)
        weights, name, about = sha256_of(place / WEIGHTS), place.name, f"{Path(str(encoder)).name}, fine-tuned on SST"
    with items_done("Sentences of Table 3") as watch:
        found, right = sentiment_correlations(model, weights, items, attempt.folder / "scores" / name, watch)
    return Sentiment(found, f"{about}; {len(items):,} sentences, {right:.1%} of them classified rightly")


def sentiment_correlations(
    model: Any, weights: str, items: Sequence[Labelled], folder: Path, watch: Callable[[int, int], None]
) -> tuple[Correlations, float]:
    """What each sentence gives for each cell of Table 3, and the share of sentences that the classifier gets right.

    Parts of them are kept in `folder`; `weights` tells this classifier from others.
    """
    store = Store(folder, "classifier", {"weights": weights})
    states = list(chain.from_iterable(store.in_parts(items, PART, partial(_correlate_part, model), vars, watch)))
    values = np.stack([state["values"].numpy() for state in states])
    right = sum(state["right"] for state in states) / len(states)
    return Correlations(None, classifier_cells(states[0]["layers"]), values), right


def classifier_cells(layers: int) -> tuple[Cell, ...]:
    """Every cell of Table 3: source, method, layer, ranks, tokens."""
    return tuple(
        (source, method, layer, ranks, tokens)
        for source in SOURCES
        for tokens in TOKENS
        for ranks in RANKS
        for method, layer in scores_of(layers)
    )


def _correlate_part(model: Any, items: Sequence[Labelled], start: int) -> list[State]:
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
        # what each token gets at each layer, as shares of all
        got = [shares(one[:, 0] if source == "cls" else one.amax(1)) for one in maps]
        rows = torch.cat([*got, baselines]).numpy()
        for tokens in (np.ones(count, dtype=bool), words):
            yield from correlations(rows[:, tokens], reference[:, tokens]).ravel().tolist()


def reviews(count: int, model: Any, data: str | Path | None) -> list[Labelled]:
    """So many test sentences of the sentiment treebank, spread evenly over those that are short enough."""
    items = labelled_splits("sst", data)["test"]
    return spread_evenly([item for item in items if len(model.tokens(item.text)) <= MOST_TOKENS], count)


def spread_evenly(items: Sequence[Item], count: int) -> list[Item]:
    """So many of the items, spread as evenly as can be; all where there are no more.

    >>> spread_evenly(["a", "b", "c", "d"], 2)
    ['b', 'd']
    """
    whole = len(items)
    return [item for place, item in enumerate(items) if (place + 1) * count // whole > place * count // whole]
