"""The scores that a state selects: words or tokens, with or without special ones, for a layer and a query."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ..attribution.comparing import rank_agreement
from ..errors import BadInput
from .scales import Scale
from .scores_methods import ELEMENTS, Method, has_whole_map
from .sides import Unit, shown_units, units_holding, units_of
from .tables import tidy_table, token_column
from .weights import PAGE_BYTES, WORST, deflate

# What of the methods' maps a page of scores takes along: whole, the read-out's rows, or nothing, and why.


FIRST = ("raw", "rollout")
"""Methods whose maps are taken first where not all have room."""
MAP_BYTES = 16_000_000
"""Bytes of a page that maps take at most where no budget is given: those of raw and rollout, 12 layers, 512 tokens."""


def with_maps(methods: Sequence[Method], size_budget: int | None) -> list[Method]:
    """The methods with the maps that fit: those of raw and rollout first, each of the others where room is left.

    `size_budget` is in bytes of the saved page; without one, maps take at most 16 MB.
    """
    left = MAP_BYTES if size_budget is None else size_budget - PAGE_BYTES
    keys = len(methods[0].own)
    left -= int(len(methods) * keys * 8 * WORST)
    if left < 0:
        raise BadInput(
            f"A page with these scores does not fit into {size_budget:,} bytes: the scores and what draws them take"
            f" {PAGE_BYTES + int(len(methods) * keys * 8 * WORST):,}."
        )
    made = {}
    for method in methods:
        size = _size(method.scores.size[0], keys)
        rows = _readout_rows(method) if method.has_map and size <= left else None
        left -= 0 if rows is None else size
        made[method.name] = replace(method, by_layer=rows)
    for method in sorted(made.values(), key=lambda method: method.scores.method not in FIRST):
        layers, queries = method.scores.size
        size = _size(layers * queries, keys)
        without = _why_not(method, size, left)
        left -= 0 if without else size
        whole = None if without else method.scores.map.detach().double()
        made[method.name] = replace(method, map=whole, without=without)
    return list(made.values())


def _readout_rows(method: Method) -> Float64[Tensor, "layer key"] | None:
    """What the read-out gets at every layer, if that is known and does not take too long."""
    layers, queries = method.scores.size
    if not method.sources or layers * queries * len(method.own) > ELEMENTS or not method.is_quick(len(method.sources)):
        return None
    if len(method.sources) > 1 and not has_whole_map(method.scores):
        return None
    return torch.stack([method.of_readout(layer) for layer in range(layers)])


def _why_not(method: Method, size: int, left: int) -> str:
    """Why the map of a method stays out, or nothing where it does not."""
    if not method.has_map:
        return f"{method.name} scores tokens for the read-out only"
    if not method.is_quick(method.scores.size[1]):
        return f"the map of {method.name} would take long to compute for {len(method.own)} tokens and is left out"
    if size > left:
        return f"the map of {method.name} would take {size / 1e6:.1f} MB and is left out (size_budget)"
    if not has_whole_map(method.scores):
        return f"the map of {method.name} comes row by row from a record of vectors and is left out"
    return ""


def _size(rows: int, keys: int) -> int:
    """The bytes of a page that rows of 16-bit floats take at most, each with its largest."""
    return int(rows * (4 + 2 * keys) * WORST) + 1


def _halves(rows: Float64[Tensor, "row key"]) -> tuple[Float[np.ndarray, " row"], Float[np.ndarray, "row key"]]:
    """The largest size in each row, and the row over it as 16-bit floats: three digits, however small the scores."""
    largest = rows.abs().nan_to_num(0.0).amax(-1)
    over = rows / largest.masked_fill(largest == 0, 1.0).unsqueeze(-1)
    return largest.to(torch.float32).numpy(), over.to(torch.float16).numpy()


@dataclass(frozen=True, eq=False)
class Row:
    """What one method says of the units that are shown."""

    name: str
    scores: Float64[np.ndarray, " unit"]
    is_own: bool
    """Whether these are the method's own scores of the read-out, whatever was asked for."""
    signed: bool
    scale: Scale
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


@dataclass(frozen=True, eq=False)
class ScoresScene:
    """What the page and the printed figure both draw: the methods with their maps, the tokens, and the layers."""

    methods: Sequence[Method]
    sides: Mapping[str, Any]
    layers: Sequence[int]

    def describe(self, trust: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
        """What a script must know of each method, with how far it can be trusted."""
        return [
            {
                "name": method.name,
                "signed": method.is_signed,
                "shares": method.is_shares,
                "rows": method.by_layer is not None,
                "map": method.map is not None,
                "without": method.without,
                "warnings": [warning for warning in (method.scores.noise, *method.scores.warnings) if warning],
                "trust": trust.get(method.name) or trust.get(method.scores.method),
            }
            for method in self.methods
        ]

    def blobs(self) -> dict[str, bytes]:
        """The arrays: `own` (64-bit, each method), `rows` of a method's place, and `map` of its place and a layer's."""
        blobs = {"own": deflate(torch.stack([method.own for method in self.methods]).numpy())}
        for place, method in enumerate(self.methods):
            if method.by_layer is not None:
                blobs[f"rows{place}"] = deflate(*_halves(method.by_layer))
            for layer, rows in enumerate(method.map if method.map is not None else ()):
                blobs[f"map{place}_{layer}"] = deflate(*_halves(rows))
        return blobs

    def rows(self, state: Mapping[str, Any]) -> Rows:
        """The rows of a state; the same as the screen draws."""
        units, shown = shown_units(self.sides["keys"], state)
        layer = list(self.layers).index(state["layer"]) if state.get("layer") in self.layers else None
        queries = [place for place in state.get("queries") or () if place not in self.sides["queries"]["masked"]]
        names = [method.name for method in self.methods]
        chosen = [method for method in self.methods if method.name in (state.get("methods") or names)] or self.methods
        pinned = state.get("keys") or ()
        answers = {method.name: method.row(layer, queries) for method in self.methods}
        # whether a method gives its own scores of the read-out although something else is asked for
        own = {name: (layer is not None or bool(queries)) and answer is None for name, answer in answers.items()}
        sums = {
            method.name: _sum_units(method.own if (answer := answers[method.name]) is None else answer, units)
            for method in self.methods
        }
        reference = str(state["reference"]) if state.get("reference") in names else names[0]
        quiet = [units[place].quiet for place in shown]
        scales = {method.name: Scale.of(sums[method.name][shown], quiet) for method in chosen}
        shared = Scale(0.0, max((scales[method.name].end for method in chosen if method.is_shares), default=0.0))
        rows = []
        for method in chosen:
            summed, is_own = sums[method.name], own[method.name]
            # what is of another query has no order to agree on
            same_query = not queries or is_own == own[reference]
            mass = np.abs(summed).sum()
            rows.append(
                Row(
                    name=method.name,
                    scores=summed[shown],
                    is_own=is_own,
                    signed=method.is_signed,
                    scale=shared if state.get("scale") == "shared" and method.is_shares else scales[method.name],
                    agreement=_agreement(summed[shown], sums[reference][shown]) if same_query else math.nan,
                    hidden=float(1 - np.abs(summed[shown]).sum() / mass) if mass > 0 else 0.0,
                    pinned=float(sum(score for score, unit in zip(summed, units, strict=True) if unit.holds(pinned))),
                )
            )
        return Rows(
            units=tuple(units[place] for place in shown),
            rows=tuple(rows),
            reference=reference,
            queries=units_holding(units_of(self.sides["queries"], words=bool(state.get("words"))), queries),
            pinned=units_holding(units, pinned),
        )

    def to_frame(self) -> pd.DataFrame:
        """Every score of the view as a row: method, layer, query, position, token, score, rank.

        No layer and no query is what the method says by itself; no query is the read-out. Rank 1 is the highest score.
        """
        parts = []
        for method in self.methods:
            parts.append(self._part(method.name, method.own[None, None], [None], [None]))
            if method.by_layer is not None:
                parts.append(self._part(method.name, method.by_layer[:, None], self.layers, [None]))
            if method.map is not None:
                parts.append(self._part(method.name, method.map, self.layers, range(method.map.shape[1])))
        return pd.concat(parts, ignore_index=True)

    def _part(
        self,
        name: str,
        scores: Float64[Tensor, "layer query key"],
        layers: Sequence[int | None],
        queries: Sequence[int | None],
    ) -> pd.DataFrame:
        from scipy.stats import rankdata  # it takes a second to import

        texts = self.sides["keys"]["texts"]
        return tidy_table(
            {
                "method": (0, [name]),
                "layer": (1, pd.array(layers, dtype="Int64")),
                "query": (2, pd.array(list(queries), dtype="Int64")),
                "position": (3, range(len(texts))),
                "token": (3, token_column(texts)),
            },
            score=scores[None].numpy(),
            rank=rankdata(-scores.numpy(), method="min", axis=-1, nan_policy="omit")[None],
        )


def _sum_units(scores: Float64[Tensor, " key"], units: Sequence[Unit]) -> Float64[np.ndarray, " unit"]:
    return torch.stack([scores[list(unit.places)].sum() for unit in units]).numpy()


def _agreement(scores: Float64[np.ndarray, " unit"], reference: Float64[np.ndarray, " unit"]) -> float:
    finite = np.isfinite(scores).all() and np.isfinite(reference).all()
    return rank_agreement(scores, reference) if finite else math.nan
