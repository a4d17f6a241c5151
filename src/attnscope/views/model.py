"""The model view: every layer and head at once as a small picture of its map, sorted by a statistic, one enlarged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import BadInput
from ..record import AttentionRecord
from ..record.schema import checked
from .choices import known
from .head_statistics import POSITIONS, TITLES, HeadStatistics, head_statistics
from .model_figure import model_figure
from .record_view import record_view
from .sides import shown, sides_of
from .thumbnails import maps_of, thumbnail_blobs
from .view import View
from .weights import WORST, OnDemand, packed

if TYPE_CHECKING:
    import pandas as pd

LONG = 40
"""Tokens beyond which the maps open on a square-root scale."""


@checked
def model(
    record: AttentionRecord,
    layer: int | None = None,
    head: int | None = None,
    *,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    sentence_b_start: int | None = None,
    size_budget: int | None = None,
    keys_per_query: int | None = None,
) -> View:
    """All heads of a model on one text: layers down, heads across, each a picture of its attention map.

    A pixel is a weight, or in a long text the largest weight of a block of tokens. Layers and heads can be sorted by
    what each head does on this text; a click shows the head with its tokens, in place.

    Args:
        record: What to show; `AttentionRecord.from_weights` makes one of any weights.
        layer: The layer of a head to open with, enlarged; by default all heads are shown.
        head: That head.
        include_layers: The layers to put into the view; all by default.
        include_heads: The heads to put into the view; all by default.
        sentence_b_start: The first token of the second sentence of a pair, where the record does not tell.
        size_budget: Bytes that the saved page may take; where all weights are more, the largest of each row stay for
            the enlarged heads. The pictures are of all weights in any case.
        keys_per_query: How many of the largest weights of each row stay, whatever the budget.
    """
    if (layer is None) != (head is None):
        raise BadInput("A head is opened by its layer and its head: give both, or neither to see all heads.")
    chosen = record.select(include_layers, include_heads)
    sides = sides_of(chosen, sentence_b_start)
    statistics = head_statistics(chosen)
    described, blobs = thumbnail_blobs(chosen, sides)
    taken = int(sum(map(len, blobs.values())) * WORST) + 1
    view = record_view(
        "model",
        chosen,
        layer=layer,
        heads=None if head is None else [head],
        sentence_b_start=sentence_b_start,
        size_budget=None if size_budget is None else size_budget - taken,
        keys_per_query=keys_per_query,
        draw=model_figure,
        more={"maps": described, **_written(statistics)},
    )
    state = {
        "head": known(head, chosen.heads, "head"),
        "enlarged": head is not None,
        "statistic": "entropy",
        # weights of a long text are small: on a linear scale its maps would be all but blank
        "root": len(chosen.key_tokens) > LONG,
        "sort_layers": None,
        "sort_heads": None,
    }
    return replace(
        view,
        state={**view.state, **state},
        blobs=OnDemand({}) | blobs | view.blobs,
        table=lambda: heads_frame(chosen, statistics, sides),
        choices={**view.choices, "head": chosen.heads, "statistic": list(statistics.figures)},
    )


def heads_frame(record: AttentionRecord, statistics: HeadStatistics, sides: Mapping[str, Any]) -> "pd.DataFrame":
    """Every head as a row: its statistics, its role on this text, and its strongest pair of tokens."""
    import pandas as pd

    maps = maps_of(record, sides, words=False, special=True)
    query_tokens, key_tokens = (shown(tokens) for tokens in (record.query_tokens, record.key_tokens))
    rows = []
    for place, layer in enumerate(record.layers):
        for number, head in enumerate(record.heads):
            query, key = maps.pair[place, number].tolist()
            rows.append(
                {
                    "layer": layer,
                    "head": head,
                    **{name: float(values[place, number]) for name, values in statistics.figures.items()},
                    "role": statistics.roles[place][number],
                    "role_share": float(statistics.shares[place, number]),
                    "query": query,
                    "key": key,
                    "query_token": query_tokens[query] if query >= 0 else "",
                    "key_token": key_tokens[key] if key >= 0 else "",
                    "weight": float(maps.weight[place, number]),
                }
            )
    return pd.DataFrame(rows)


def _written(statistics: HeadStatistics) -> dict[str, Any]:
    """The figures and roles as a script takes them."""
    names = list(dict.fromkeys(role for row in statistics.roles for role in row))
    return {
        "statistics": [
            {
                "name": name,
                "title": TITLES[name][0],
                "unit": TITLES[name][1],
                "meaning": TITLES[name][2],
                "values": packed(values.numpy()),
            }
            for name, values in statistics.figures.items()
        ],
        "roles": {
            "names": names,
            "places": [[names.index(role) for role in row] for row in statistics.roles],
            "shares": packed(statistics.shares.numpy()),
            "chances": [statistics.chances.get(role) for role in names],
            "counted": [role in POSITIONS.values() for role in names],
        },
    }
