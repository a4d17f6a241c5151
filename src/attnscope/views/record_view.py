"""What the views of a record have in common: tokens, weights within a budget, and what is chosen when they open."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BadInput
from ..record import AttentionRecord
from .printing import Plot
from .sides import shown, sides_of
from .tables import token_column
from .view import View
from .weights import form_for, weight_blobs

if TYPE_CHECKING:
    import pandas as pd

CHOSEN: Mapping[str, Any] = {
    "words": False,
    "special": True,
    "threshold": 0.0,
    "root": False,
    "between": "all",
    "queries": [],
    "keys": [],
}
"""What every view of a record can choose, as it opens."""
Draw = Callable[[AttentionRecord, Mapping[str, Any], Mapping[str, Any], int | float | None], Plot]
"""Makes the figure of a record, its sides, a state and a width."""


def record_view(
    name: str,
    record: AttentionRecord,
    *,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    sentence_b_start: int | None = None,
    size_budget: int | None = None,
    keys_per_query: int | None = None,
    draw: Draw | None = None,
    more: Mapping[str, Any] | None = None,
) -> View:
    """A view that is drawn from a record's weights; `more` is what its script needs beside them."""
    form = form_for(record, size_budget, keys_per_query)
    described, blobs = weight_blobs(record, form)
    sides = sides_of(record, sentence_b_start)
    payload = {**sides, "weights": described, **(more or {})}
    state = {
        **CHOSEN,
        "layer": known(layer, record.layers, "layer"),
        "heads": None if heads is None else [known(number, record.heads, "head") for number in heads],
    }
    return View(
        name,
        payload,
        state,
        blobs,
        table=lambda: weights_frame(record),
        draw=None if draw is None else lambda selected, width: draw(record, sides, selected, width),
    )


def known(number: int | None, numbers: Sequence[int], what: str) -> int:
    """A layer or head by its number, counted from the end if negative; the first if none is asked for."""
    if number is None:
        return numbers[0]
    wanted = numbers[number] if -len(numbers) <= number < 0 else number
    if wanted not in numbers:
        raise BadInput(f"There is no {what} {number} in this record; it has {_in_words(numbers)}.")
    return wanted


def position(number: int, count: int, what: str) -> int:
    """A token by its position among so many, counted from the end if negative."""
    if not -count <= number < count:
        raise BadInput(f"There is no {what} {number}: this text has {count} tokens, counted from 0.")
    return number % count


def weights_frame(record: AttentionRecord) -> "pd.DataFrame":
    """Every weight as a row: layer, head, query, key, both tokens, weight."""
    import pandas as pd

    layers, heads, queries, keys = record.weights.shape
    places = np.indices((layers, heads, queries, keys)).reshape(4, -1)
    return pd.DataFrame(
        {
            "layer": np.array(record.layers)[places[0]],
            "head": np.array(record.heads)[places[1]],
            "query": places[2],
            "key": places[3],
            "query_token": token_column(shown(record.query_tokens), places[2]),
            "key_token": token_column(shown(record.key_tokens), places[3]),
            "weight": record.weights.numpy().reshape(-1),
        }
    )


def _in_words(numbers: Sequence[int]) -> str:
    whole = list(numbers) == list(range(numbers[0], numbers[-1] + 1))
    return f"{numbers[0]} to {numbers[-1]}" if whole and len(numbers) > 1 else ", ".join(map(str, numbers))
