"""The scores that a state selects: words or tokens, with or without special ones, for a layer and a query."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float64
from scipy.stats import rankdata
from torch import Tensor

from ..attribution.agreement import rank_agreement
from .scores_maps import Taken
from .scores_methods import Method
from .tables import token_column
from .units import Unit, holding, shown_units, units_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Row:
    """What one method says of the units that are shown."""

    name: str
    scores: Float64[np.ndarray, " unit"]
    is_own: bool
    """Whether these are the method's own scores of the read-out, whatever was asked for."""
    signed: bool
    largest: float
    """Where the scale of this row ends."""
    agreement: float
    """Spearman's rank correlation with the reference; NaN where there is none."""
    hidden: float
    """The share of all scores, without their signs, that hidden tokens take."""
    pinned: float
    """The sum over the tokens that are pinned."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The units that are shown and a row for each method."""

    units: tuple[Unit, ...]
    rows: tuple[Row, ...]
    reference: str
    queries: tuple[Unit, ...]
    """The queries that are asked for; none for the read-out."""
    pinned: tuple[Unit, ...]
    """The units that are pinned, shown or not."""


def selected_rows(
    methods: Sequence[Method],
    taken: Mapping[str, Taken],
    sides: Mapping[str, Any],
    layers: Sequence[int],
    state: Mapping[str, Any],
) -> Rows:
    """The rows of a state; the same as the screen draws."""
    units, shown = shown_units(sides["keys"], state)
    layer = list(layers).index(state["layer"]) if state.get("layer") in layers else None
    queries = [position for position in state.get("queries") or () if position not in sides["queries"]["masked"]]
    asked = layer is not None or bool(queries)
    names = [method.name for method in methods]
    wanted = [name for name in names if name in (state.get("methods") or names)] or names
    held = [place for place, unit in enumerate(units) if unit.holds(state.get("keys") or ())]
    found = {}
    for method in methods:
        scores = taken[method.name].row(layer, queries)
        found[method.name] = (method.own if scores is None else scores, asked and scores is None)
    grouped = {name: _summed(scores, units) for name, (scores, _) in found.items()}
    reference = str(state["reference"]) if state.get("reference") in names else names[0]
    share_scale = state.get("scale") == "shared"
    chosen = [method for method in methods if method.name in wanted]
    ends = {method.name: _end(grouped[method.name][shown]) for method in chosen}
    together = max((ends[method.name] for method in chosen if method.is_shares), default=0.0)
    rows = []
    for method in chosen:
        summed, is_own = grouped[method.name], found[method.name][1]
        # what is of another query has no order to agree on
        same_query = not queries or is_own == found[reference][1]
        mass = np.abs(summed).sum()
        rows.append(
            Row(
                name=method.name,
                scores=summed[shown],
                is_own=is_own,
                signed=bool((method.own < 0).any()) or taken[method.name].is_signed,
                largest=together if share_scale and method.is_shares else ends[method.name],
                agreement=_agreement(summed[shown], grouped[reference][shown]) if same_query else math.nan,
                hidden=float(1 - np.abs(summed[shown]).sum() / mass) if mass > 0 else 0.0,
                pinned=float(summed[held].sum()),
            )
        )
    return Rows(
        units=tuple(units[place] for place in shown),
        rows=tuple(rows),
        reference=reference,
        queries=holding(units_of(sides["queries"], words=bool(state.get("words"))), queries),
        pinned=holding(units, state.get("keys") or ()),
    )


def scores_frame(
    methods: Sequence[Method], taken: Mapping[str, Taken], texts: Sequence[str], layers: Sequence[int]
) -> "pd.DataFrame":
    """Every score of the view as a row: method, layer, query, position, token, score, rank.

    No layer and no query is what the method says by itself; no query is the read-out. Rank 1 is the highest score.
    """
    import pandas as pd

    parts = []
    for method in methods:
        found = taken[method.name]
        parts.append(_part(method.name, method.own[None, None].numpy(), [None], [None], texts))
        if found.by_layer is not None:
            parts.append(_part(method.name, found.by_layer[:, None].numpy(), layers, [None], texts))
        if found.whole is not None:
            parts.append(_part(method.name, found.whole.numpy(), layers, range(found.whole.shape[1]), texts))
    return pd.concat(parts, ignore_index=True)


def _part(
    name: str,
    scores: Float64[np.ndarray, "layer query key"],
    layers: Sequence[int | None],
    queries: Sequence[int | None],
    texts: Sequence[str],
) -> "pd.DataFrame":
    import pandas as pd

    layer, query, position = np.indices(scores.shape).reshape(3, -1)
    return pd.DataFrame(
        {
            "method": name,
            "layer": pd.array(layers, dtype="Int64")[layer],
            "query": pd.array(list(queries), dtype="Int64")[query],
            "position": position,
            "token": token_column(texts, position),
            "score": scores.reshape(-1),
            "rank": rankdata(-scores, method="min", axis=-1, nan_policy="omit").reshape(-1),
        }
    )


def _summed(scores: Float64[Tensor, " key"], units: Sequence[Unit]) -> Float64[np.ndarray, " unit"]:
    return torch.stack([scores[list(unit.places)].sum() for unit in units]).numpy()


def _end(scores: Float64[np.ndarray, " unit"]) -> float:
    return float(np.nan_to_num(np.abs(scores)).max())


def _agreement(scores: Float64[np.ndarray, " unit"], reference: Float64[np.ndarray, " unit"]) -> float:
    finite = np.isfinite(scores).all() and np.isfinite(reference).all()
    return rank_agreement(scores, reference) if finite else math.nan
