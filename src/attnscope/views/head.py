"""The head view: tokens left and right, a line for each weight, head by head and layer by layer."""

from collections.abc import Sequence

from ..record import AttentionRecord
from ..record.schema import checked
from .head_figure import head_figure
from .record_view import record_view
from .view import View


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

    Args:
        record: What to show; `AttentionRecord.from_weights` makes one of any weights.
        layer: The layer to open with, by its number or from the end; the first by default.
        heads: The heads to open with; all by default.
        include_layers: The layers to put into the view; all by default.
        include_heads: The heads to put into the view; all by default.
        sentence_b_start: The first token of the second sentence of a pair, where the record does not tell.
        size_budget: Bytes that the saved page may take: the more, the more exact; where all weights do not fit, the
            largest of each row stay and the rest is one mass.
        keys_per_query: How many of the largest weights of each row stay, whatever the budget.
    """
    return record_view(
        "head",
        record.select(include_layers, include_heads),
        layer=layer,
        heads=heads,
        sentence_b_start=sentence_b_start,
        size_budget=size_budget,
        keys_per_query=keys_per_query,
        draw=head_figure,
    )
