"""The neuron view: how a query and a key become a weight, dimension by dimension."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord
from ..record.schema import checked
from .choices import pick_one, position
from .neuron_figure import neuron_figure
from .record_view import weights_frame
from .sides import readout_places, sides_of, title_of
from .view import View
from .weights import PAGE_BYTES, WORST, deflate


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
        query: The position of the token that attends, from either end; by default where the model reads its answer, or
            in a long text, of which a part is in sight, the token of its strongest pair that can be seen together.
        include_layers: The layers to put into the view; all by default.
        include_heads: The heads to put into the view; all by default.
        size_budget: Bytes that the saved page may take; a view that takes more is refused.
    """
    record = record.select(include_layers, include_heads)
    described, blobs = vector_blobs(record)
    size = int(sum(map(len, blobs.values())) * WORST) + PAGE_BYTES
    if size_budget is not None and size > size_budget:
        raise BadInput(
            f"These vectors take {size:,} bytes and size_budget is {size_budget:,}: give a larger one, or fewer"
            " layers and heads with include_layers= and include_heads=."
        )
    chosen_layer, chosen_head = pick_one(layer, record.layers, "layer"), pick_one(head, record.heads, "head")
    asking = None if query is None else position(query, len(record.query_tokens), "query")
    sides = sides_of(record)
    weights = record.weights[record.layers.index(chosen_layer), record.heads.index(chosen_head)]
    asking, pinned = _opening_pair(weights, sides["keys"], _readout(record), asking)
    state = {
        "layer": chosen_layer,
        "head": chosen_head,
        "query": asking,
        "keys": pinned,
        "order": "natural",
        "special": True,
        "threshold": 0.0,
        "root": False,
    }
    return View(
        "neuron",
        {**sides, "vectors": described},
        state,
        blobs,
        table=lambda: logits_frame(record),
        draw=partial(neuron_figure, record, sides),
        choices={
            "layer": record.layers,
            "head": record.heads,
            "query": range(len(record.query_tokens)),
            "keys": range(len(record.key_tokens)),
            "order": ("natural", "contribution"),
        },
        title=title_of("neuron", sides["keys"], record),
    )


def logits_frame(record: AttentionRecord) -> pd.DataFrame:
    """Every weight as a row with the logit it comes from: layer, head, query, key, both tokens, logit, weight."""
    frame: pd.DataFrame = weights_frame(record)
    frame.insert(frame.columns.get_loc("weight"), "logit", record.logits().numpy().reshape(-1))
    return frame


def _readout(record: AttentionRecord) -> int:
    """The first token of the text among those the answer is read from most."""
    most = readout_places(record)
    return next((place for place in most if not record.query_special[place]), most[0])


LONG, TOGETHER = 160, 16
"""Tokens beyond which rows scroll, as in neuron.js, and how many rows apart a pair may be to be seen at once."""


def _opening_pair(
    weights: Float[Tensor, "query key"], side: Mapping[str, Any], readout: int, asked: int | None
) -> tuple[int, list[int]]:
    """The query to open with and the keys to pin: of a long text a strong pair whose rows are in sight together.

    Special tokens, sinks and the token itself are no such keys: a head rests there that has nothing to do.
    """
    default = readout if asked is None else asked
    if max(weights.shape) <= LONG:
        return default, []
    queries, keys = (torch.arange(count) for count in weights.shape)
    apart = (queries.unsqueeze(-1) - keys).abs()
    loud = weights.masked_fill(apart == 0, 0.0)
    loud[:, [*side["special"], *side["sinks"]]] = 0.0
    near = loud.masked_fill(apart > TOGETHER, 0.0)
    strongest = int(loud[default].argmax())
    if asked is None and near[default, strongest] <= 0:
        default = int(near.amax(-1).argmax())
    key = int(near[default].argmax())
    return default, [key] if near[default, key] > 0 else []


# A record's queries and keys for a page: 16-bit floats by layer, and how far logits made of them are off.


LARGEST = 32768.0
"""Vectors with larger entries are divided by a power of two, which costs no digit, to fit a 16-bit float."""


def vector_blobs(record: AttentionRecord) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a script must know of the vectors, and the vectors: one blob for each layer, one for each distinct bias.

    Grouped queries share their keys: those travel once, and `key_heads` names the ones of each head.
    """
    if record.queries is None or record.keys is None or record.scaling is None:
        raise BadInput(
            "This record holds no queries and keys, which the neuron view shows: take it with"
            " model.record(text, queries_and_keys=True)."
        )
    key_heads, kept = _distinct_parts(record.keys.transpose(0, 1))
    units = [_unit(queries, keys) for queries, keys in zip(record.queries, record.keys, strict=True)]
    blobs = {}
    errors: dict[str, list[float]] = {"logits": [], "weights": []}
    for place, unit in enumerate(units):
        queries, keys = ((vectors[place] / unit).to(torch.float16) for vectors in (record.queries, record.keys))
        blobs[f"layer{place}"] = deflate(queries.numpy(), keys[kept].numpy())
        off = _errors(record, place, queries.float() * unit, keys.float() * unit)
        for name, error in zip(errors, off, strict=True):
            errors[name].append(error)
    biases, bias_heads = _biases(record, blobs)
    described = {
        "shape": list(record.queries.shape[1:]),
        "key_count": record.keys.shape[2],
        "key_heads": key_heads,
        "units": units,
        "scaling": list(record.scaling),
        "softcap": record.softcap,
        "biases": biases,
        "bias_heads": bias_heads,
        "errors": errors,
        "layers": list(record.layers),
        "heads": list(record.heads),
    }
    return described, blobs


def _biases(record: AttentionRecord, blobs: dict[str, bytes]) -> tuple[list[int | None], int]:
    """For each layer the number of its bias, None where nothing is added, and the heads of each; fills the blobs."""
    if record.score_bias is None:
        return [None] * len(record.layers), 1
    halves = record.score_bias.to(torch.float16)
    numbers, distinct = _distinct_parts(halves)
    added = {number: halves[place] for number, place in enumerate(distinct) if bool(halves[place].any())}
    blobs |= {f"bias{number}": deflate(bias.numpy()) for number, bias in added.items()}
    return [number if number in added else None for number in numbers], halves.shape[1]


def _errors(
    record: AttentionRecord,
    place: int,
    queries: Float[Tensor, "head query head_width"],
    keys: Float[Tensor, "head key head_width"],
) -> tuple[float, float]:
    """The largest difference of logits and of weights to the record's, in one layer, rounded up to two digits."""
    layer = record.select(place)
    bias = None if layer.score_bias is None else layer.score_bias.to(torch.float16).float()
    logits = replace(layer, queries=queries.unsqueeze(0), keys=keys.unsqueeze(0), score_bias=bias).logits()
    seen = torch.isfinite(layer.logits())
    off = float((logits - layer.logits())[seen].abs().max()) if bool(seen.any()) else 0.0
    weights = logits.softmax(-1).nan_to_num(0.0)  # a query that sees nothing has no softmax
    return _rounded_up(off), _rounded_up(float((weights - layer.weights).abs().max()))


def _distinct_parts(parts: Float[Tensor, "part ..."]) -> tuple[list[int], list[int]]:
    """Equal parts once: for each part its place among those kept, and the parts kept."""
    first = [
        next((other for other in range(place) if torch.equal(parts[other], part)), place)
        for place, part in enumerate(parts)
    ]
    distinct = list(dict.fromkeys(first))
    return [distinct.index(place) for place in first], distinct


def _unit(queries: Float[Tensor, "head query width"], keys: Float[Tensor, "head key width"]) -> float:
    """What the entries of a layer are counted in: one, but for entries beyond 16-bit floats."""
    largest = max(float(queries.abs().max()), float(keys.abs().max()), 1.0)
    return 2.0 ** max(0, math.ceil(math.log2(largest / LARGEST)))


def _rounded_up(error: float) -> float:
    """Two digits, never less than it is.

    >>> _rounded_up(0.001132), _rounded_up(0.0)
    (0.0012, 0.0)
    """
    if error == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(error)) - 1)
    return float(np.format_float_positional(math.ceil(error / step) * step, precision=2, fractional=False))
