"""What layer-wise tracing has gathered, by layer, head and token, as the tracing view and its figure take it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..attribution import layerwise_tracing
from ..errors import BadInput
from ..record import AttentionRecord, TokenScores
from .sides import Unit, side_of, sides_of
from .tables import token_column

if TYPE_CHECKING:
    import pandas as pd

FAINTEST_LINE = 0.01
"""Lines that hand on less of a head's attention are not drawn: each head has at most a hundred a layer."""


@dataclass(frozen=True)
class Lines:
    """What tokens hand on to tokens below, layer by layer: alpha x A of the layer above (wu2020, Fig. 3)."""

    places: Int[Tensor, "line 4"]
    """Layer, head, the token that hands on, the token that gets it."""
    values: Float[Tensor, " line"]
    left_out: float
    """The share of the attention of a layer that runs along lines too faint to draw."""


@dataclass(frozen=True)
class Trace:
    """What each head holds on each token at each layer, and the tokens."""

    values: Float[Tensor, "layer head token"]
    readout: Float[Tensor, " token"] | None
    """Where tracing begins, if it is known."""
    lines: Lines | None
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    side: Mapping[str, Any]
    warnings: tuple[str, ...]


def trace_of(given: TokenScores | AttentionRecord) -> Trace:
    """The trace of a record, with its lines, or what scores of layer-wise tracing hold of it."""
    if isinstance(given, AttentionRecord):
        scores = layerwise_tracing(given)
        held = torch.cat([scores.per_head[1:], given.readout.expand(1, len(given.heads), -1)])
        lines = _lines(held, given.weights)
        side = sides_of(given)["keys"]
        return Trace(scores.per_head, given.readout, lines, given.layers, given.heads, side, scores.warnings)
    if given.method != "layerwise_tracing":
        raise BadInput(
            f"The tracing view shows layer-wise tracing, and these are scores of {given.method}: give a record, or what"
            " attnscope.layerwise_tracing(record) returns."
        )
    if given.compute_per_head is None:
        raise BadInput(
            "These scores have been merged or cut and no longer tell heads apart: give what"
            " attnscope.layerwise_tracing(record) returns; the view itself can show words and hide special tokens."
        )
    side = {**side_of(given.tokens, given.word_ids, given.special, None), "sinks": []}
    layers, heads = given.per_head.shape[:2]
    return Trace(given.per_head, None, None, tuple(range(layers)), tuple(range(heads)), side, given.warnings)


def trace_frame(trace: Trace) -> "pd.DataFrame":
    """Every dot as a row: layer, head, position, token, value."""
    import pandas as pd

    places = np.indices(trace.values.shape).reshape(3, -1)
    return pd.DataFrame(
        {
            "layer": np.array(trace.layers)[places[0]],
            "head": np.array(trace.heads)[places[1]],
            "position": places[2],
            "token": token_column(trace.side["texts"], places[2]),
            "value": trace.values.numpy().reshape(-1),
        }
    )


def of_units(values: Float[Tensor, "*axes token"], units: Sequence[Unit]) -> Float[Tensor, "*axes unit"]:
    """The values of words: the sums of their tokens."""
    return torch.stack([values[..., list(unit.places)].sum(-1) for unit in units], dim=-1)


def _lines(held: Float[Tensor, "layer head token"], weights: Float[Tensor, "layer head token token"]) -> Lines:
    handed = held.unsqueeze(-1) * weights
    places = (handed >= FAINTEST_LINE).nonzero()
    values = handed[places.unbind(1)]
    mass = float(handed.sum())
    # where no token attends to anything, nothing is handed on and nothing is left out
    return Lines(places, values, max(1 - float(values.sum()) / mass, 0.0) if mass > 0 else 0.0)
