"""The neuron view: how a query and a key become a weight, dimension by dimension."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from ..errors import BadInput
from ..record import AttentionRecord
from ..record.schema import checked
from .choices import check_count, check_record, known, position
from .neuron_vectors import vector_blobs
from .packing import WORST
from .record_view import weights_frame
from .sides import sides_of, title_of
from .view import View
from .weights import PAGE_BYTES

if TYPE_CHECKING:
    import pandas as pd


@checked
def neuron(
    record: AttentionRecord,
    layer: int | None = None,
    head: int | None = None,
    query: int | None = None,
    *,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    size_budget: int | None = None,
) -> View:
    """The query vector, the key vectors and their products by dimension, the sums, the logits and the softmax.

    Args:
        record: Taken with `model.record(text, queries_and_keys=True)`; any model whose vectors can be read.
        layer: The layer to open with, by its number or from the end; the first by default.
        head: The head to open with; the first by default.
        query: The position of the token that attends, from either end; by default where the model reads its answer.
        include_layers: The layers to put into the view; all by default.
        include_heads: The heads to put into the view; all by default.
        size_budget: Bytes that the saved page may take; a view that takes more is refused.
    """
    check_record(record, "neuron")
    check_count(size_budget, "size_budget")
    record = record.select(include_layers, include_heads)
    described, blobs = vector_blobs(record)
    size = int(sum(map(len, blobs.values())) * WORST) + PAGE_BYTES
    if size_budget is not None and size > size_budget:
        raise BadInput(
            f"These vectors take {size:,} bytes and size_budget is {size_budget:,}: give a larger one, or fewer"
            " layers and heads with include_layers= and include_heads=."
        )
    state = {
        "layer": known(layer, record.layers, "layer"),
        "head": known(head, record.heads, "head"),
        "query": _readout(record) if query is None else position(query, len(record.query_tokens), "query"),
        "keys": [],
        "order": "natural",
        "special": True,
        "threshold": 0.0,
        "root": False,
    }
    sides = sides_of(record)
    return View(
        "neuron",
        {**sides, "vectors": described},
        state,
        blobs,
        table=lambda: logits_frame(record),
        choices={
            "layer": record.layers,
            "head": record.heads,
            "query": range(len(record.query_tokens)),
            "keys": range(len(record.key_tokens)),
            "order": ("natural", "contribution"),
        },
        title=title_of("neuron", sides["keys"], record),
    )


def logits_frame(record: AttentionRecord) -> "pd.DataFrame":
    """Every weight as a row with the logit it comes from: layer, head, query, key, both tokens, logit, weight."""
    frame: pd.DataFrame = weights_frame(record)
    frame.insert(frame.columns.get_loc("weight"), "logit", record.logits().numpy().reshape(-1))
    return frame


def _readout(record: AttentionRecord) -> int:
    """The first token of the text among those the answer is read from most."""
    most = torch.isclose(record.readout, record.readout.max()).nonzero().flatten().tolist()
    return int(next((place for place in most if not record.query_special[place]), most[0]))
