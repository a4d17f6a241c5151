"""What of the methods' maps a page of scores takes along: whole, the read-out's rows, or nothing, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ..errors import BadInput
from .packing import WORST, deflated
from .scores_methods import ELEMENTS, Method
from .weights import PAGE_BYTES

FIRST = ("raw", "rollout")
"""Methods whose maps are taken first where not all have room."""
MAP_BYTES = 16_000_000
"""Bytes of a page that maps take at most where no budget is given: those of raw and rollout, 12 layers, 512 tokens."""


@dataclass(frozen=True, eq=False)
class Taken:
    """What is taken of one method beside its own scores."""

    by_layer: Float64[Tensor, "layer key"] | None = None
    """What the read-out gets at each layer."""
    whole: Float64[Tensor, "layer query key"] | None = None
    without: str = ""
    """Why there is no row for another query, in words."""

    @property
    def is_signed(self) -> bool:
        """Whether any of it is below zero."""
        return any(bool((part < 0).any()) for part in (self.by_layer, self.whole) if part is not None)

    def row(self, layer: int | None, queries: Sequence[int]) -> Float64[Tensor, " key"] | None:
        """The scores for a layer by its place (the last if none) and the mean over queries, or for the read-out.

        None where they are not here, and where nothing but the method's own scores is asked for.
        """
        if queries:
            return None if self.whole is None else self.whole[-1 if layer is None else layer, list(queries)].mean(0)
        return None if layer is None or self.by_layer is None else self.by_layer[layer]


def taken_of(methods: Sequence[Method], size_budget: int | None) -> dict[str, Taken]:
    """The maps that fit, by the name of their method: raw and rollout first, each of the others where room is left.

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
    by_layer = {}
    for method in methods:
        size = _size(method.scores.size[0], keys)
        if method.has_map and size <= left and (rows := _readout_rows(method)) is not None:
            by_layer[method.name] = rows
            left -= size
    taken = {}
    for method in sorted(methods, key=lambda method: method.scores.method not in FIRST):
        layers, queries = method.scores.size
        size = _size(layers * queries, keys)
        without = _why_not(method, size, left)
        if not without:
            left -= size
        whole = None if without else method.scores.map.detach().double()
        taken[method.name] = Taken(by_layer.get(method.name), whole, without)
    return {method.name: taken[method.name] for method in methods}


def map_blobs(methods: Sequence[Method], taken: Mapping[str, Taken]) -> dict[str, bytes]:
    """The arrays: `own` (64-bit, each method), `rows` of a method's place, and `map` of its place and a layer's."""
    blobs = {"own": deflated(torch.stack([method.own for method in methods]).numpy())}
    for place, method in enumerate(methods):
        found = taken[method.name]
        if found.by_layer is not None:
            blobs[f"rows{place}"] = deflated(*_halves(found.by_layer))
        for layer, rows in enumerate(found.whole if found.whole is not None else ()):
            blobs[f"map{place}_{layer}"] = deflated(*_halves(rows))
    return blobs


def _readout_rows(method: Method) -> Float64[Tensor, "layer key"] | None:
    """What the read-out gets at every layer, if that is known and does not take too long."""
    layers, queries = method.scores.size
    if not method.sources or layers * queries * len(method.own) > ELEMENTS or not method.is_quick(len(method.sources)):
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
    return ""


def _size(rows: int, keys: int) -> int:
    """The bytes of a page that rows of 16-bit floats take at most, each with its largest."""
    return int(rows * (4 + 2 * keys) * WORST) + 1


def _halves(rows: Float64[Tensor, "row key"]) -> tuple[Float[np.ndarray, " row"], Float[np.ndarray, "row key"]]:
    """The largest size in each row, and the row over it as 16-bit floats: three digits, however small the scores."""
    largest = rows.abs().nan_to_num(0.0).amax(-1)
    over = rows / largest.masked_fill(largest == 0, 1.0).unsqueeze(-1)
    return largest.to(torch.float32).numpy(), over.to(torch.float16).numpy()
