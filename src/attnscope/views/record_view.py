"""What the views of a record have in common: tokens, weights within a budget, and what is chosen when they open."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from ..record import AttentionRecord
from .choices import pick_one, pick_several
from .printing import Plot
from .sides import title_of, token_texts
from .tables import tidy_table, token_column
from .view import View
from .weights import form_for, weight_blobs

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
BETWEEN = ("all", "00", "01", "10", "11")
"""From which sentence of a pair to which attention is shown."""


def record_view(
    name: str,
    record: AttentionRecord,
    sides: Mapping[str, Any],
    *,
    layer: int | None,
    heads: Sequence[int] | None,
    size_budget: int | None,
    keys_per_query: int | None,
    draw: Callable[[Mapping[str, Any], int | float | None], Plot],
    opening: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
) -> View:
    """A view that is drawn from a record's weights, between its tokens (`sides_of`).

    `opening` is what it opens with beside or in place of what `CHOSEN` says, `more` what its script needs beside the
    weights.
    """
    form = form_for(record, size_budget, keys_per_query)
    described, blobs = weight_blobs(record, form)
    payload = {**sides, "weights": described, **(more or {})}
    state = {
        **CHOSEN,
        "layer": pick_one(layer, record.layers, "layer"),
        "heads": None if heads is None else pick_several(heads, record.heads, "heads"),
        **opening,
    }
    return View(
        name,
        payload,
        state,
        blobs,
        table=lambda: weights_frame(record),
        draw=draw,
        choices={
            "layer": record.layers,
            "heads": (None, *record.heads),
            "queries": range(len(record.query_tokens)),
            "keys": range(len(record.key_tokens)),
            "between": BETWEEN if sides["queries"]["sentences"] else BETWEEN[:1],
        },
        title=title_of(name, sides["keys"], record),
    )


def weights_frame(record: AttentionRecord) -> pd.DataFrame:
    """Every weight as a row: layer, head, query, key, both tokens, weight."""
    return tidy_table(
        {
            "layer": (0, record.layers),
            "head": (1, record.heads),
            "query": (2, range(len(record.query_tokens))),
            "key": (3, range(len(record.key_tokens))),
            "query_token": (2, token_column(token_texts(record.query_tokens))),
            "key_token": (3, token_column(token_texts(record.key_tokens))),
        },
        weight=record.weights.numpy(),
    )
