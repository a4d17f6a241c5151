"""The head view: tokens left and right, a line for each weight, head by head and layer by layer."""

from collections.abc import Sequence

import torch

from ..record import AttentionRecord
from ..record.schema import checked
from .choices import known
from .head_figure import head_figure
from .record_view import record_view
from .sides import sinks_of
from .view import View

LINES = 4
"""Lines for each token with which the view opens: enough to see patterns, few enough to follow one."""
STEP, LARGEST = 0.005, 0.5
"""The steps and the end of the slider of the threshold."""


@checked
def head(
    record: AttentionRecord,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    *,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    sentence_b_start: int | None = None,
    size_budget: int | None = None,
    keys_per_query: int | None = None,
) -> View:
    """Where each token attends: a line from every query to every key, as opaque as the weight.

    It opens with the strongest lines, some for each token: the threshold is chosen from the weights. Lines of special
    tokens and sinks are faded until one of these tokens is looked at.

    Args:
        record: What to show; `AttentionRecord.from_weights` makes one of any weights.
        layer: The layer to show, by its number or from the end; without `include_layers` the page holds this one only.
            By default the page holds all and opens with the first.
        heads: The heads to open with; all by default.
        include_layers: The layers to put into the view; all by default, or `layer` alone.
        include_heads: The heads to put into the view; all by default.
        sentence_b_start: The first token of the second sentence of a pair, where the record does not tell.
        size_budget: Bytes that the saved page may take: the more, the more exact; where all weights do not fit, the
            largest of each row stay and the rest is one mass.
        keys_per_query: How many of the largest weights of each row stay, whatever the budget.
    """
    if layer is not None and include_layers is None:
        include_layers = [record.layers.index(known(layer, record.layers, "layer"))]
        layer = None
    shown = record.select(include_layers, include_heads)
    return record_view(
        "head",
        shown,
        layer=layer,
        heads=heads,
        sentence_b_start=sentence_b_start,
        size_budget=size_budget,
        keys_per_query=keys_per_query,
        draw=head_figure,
        opening={"threshold": opening_threshold(shown, layer)},
    )


def opening_threshold(record: AttentionRecord, layer: int | None) -> float:
    """The weight from which on a layer has about `LINES` lines for each token, special tokens and sinks aside."""
    place = record.layers.index(known(layer, record.layers, "layer"))
    quiet = {*sinks_of(record), *(position for position, special in enumerate(record.key_special) if special)}
    keys = [position for position in range(len(record.key_tokens)) if position not in quiet]
    weights = record.weights[place][..., keys].flatten()
    wanted = LINES * len(record.query_tokens)
    if wanted >= len(weights):
        return 0.0
    least = float(torch.topk(weights, wanted).values[-1])
    return round(min(int(least / STEP) * STEP, LARGEST), 3)
