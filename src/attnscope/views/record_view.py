"""What the views of a record have in common: tokens, weights within a budget, and what is chosen when they open."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import torch

from ..errors import BadInput
from ..record import AttentionRecord, VectorRecord
from .choices import pick_one, pick_several
from .page import safe_json
from .printing import Plot
from .sides import title_of, token_texts
from .tables import tidy_table, token_column
from .view import View
from .weights import LONG_BYTES, Form, form_for, largest_of_rows, row_blocks, weight_blobs

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
FEW_BYTES = 32_000_000
"""Weights of so many bytes are computed of a record of vectors, and are shown as those of any record."""
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
    left_out: Sequence[int] = (),
) -> View:
    """A view that is drawn from a record's weights, between its tokens (`sides_of`).

    `opening` is what it opens with beside or in place of what `CHOSEN` says, `more` what its script needs beside the
    weights, `left_out` the layers that had no room and are not in the record.
    """
    form = form_within(record, sides, size_budget, keys_per_query)
    described, blobs = weight_blobs(record, form)
    described["left_out"] = sorted({*described["left_out"], *left_out})
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
        table=lambda: kept_frame(record, form) if isinstance(record, VectorRecord) else weights_frame(record),
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


def with_few_weights(record: AttentionRecord) -> AttentionRecord:
    """The record, and one of vectors with its weights where they are few."""
    return record.full() if isinstance(record, VectorRecord) and record.weight_bytes <= FEW_BYTES else record


def form_within(
    record: AttentionRecord, sides: Mapping[str, Any], size_budget: int | None, keys_per_query: int | None
) -> Form:
    """How the weights travel; beside those of a long text the text itself takes room."""
    if isinstance(record, VectorRecord):
        size_budget = (LONG_BYTES if size_budget is None else size_budget) - len(safe_json(sides))
    return form_for(record, size_budget, keys_per_query)


def layers_with_room(
    record: AttentionRecord, sides: Mapping[str, Any], size_budget: int | None, keys_per_query: int | None
) -> AttentionRecord:
    """The record of the layers that a page has room for: all, or of a long text some."""
    form = form_within(record, sides, size_budget, keys_per_query)
    if form.layers == ():
        size = len(safe_json(sides)) + Form("uint8", 1, (0,)).size(record)
        raise BadInput(
            f"One key of each of these {record.shape[2]:,} queries takes {size:,} bytes in one layer, which is more"
            " than this page may: give a larger size_budget."
        )
    return record if form.layers is None else record.select(list(form.layers))


def kept_frame(record: VectorRecord, form: Form) -> pd.DataFrame:
    """The largest weights of each row, those that the page holds, as `weights_frame` has all of them."""
    parts = []
    texts = {"query": token_texts(record.query_tokens), "key": token_texts(record.key_tokens)}
    for place in range(len(record.layers)) if form.layers is None else form.layers:
        for rows, weights in row_blocks(record, place):
            largest, keys = largest_of_rows(weights, form.top_keys or 1)
            heads, queries, _ = torch.meshgrid(
                torch.tensor(record.heads), torch.tensor(rows), torch.arange(keys.shape[2]), indexing="ij"
            )
            columns = {"head": heads, "query": queries, "key": keys, "weight": largest}
            part = pd.DataFrame({name: values.flatten().numpy() for name, values in columns.items()})
            part.insert(0, "layer", record.layers[place])
            parts.append(part[part["weight"] > 0])
    found = pd.concat(parts, ignore_index=True)
    for name, side in texts.items():
        found.insert(found.columns.get_loc("weight"), f"{name}_token", token_column(side).take(found[name]))
    return found


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
