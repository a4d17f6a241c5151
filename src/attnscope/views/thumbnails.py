"""Every head's map as a small picture: bytes for all heads at once, so that no layer must be decoded to see them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from ..record import AttentionRecord
from .head_statistics import choosing
from .sides import in_sight, units_of
from .weights import deflated, packed

BYTES = 300_000
"""Pixels of all heads together; the more heads, the smaller each picture, and the smaller it is drawn."""
MOST_SIDE, LEAST_SIDE = 128, 16


@dataclass(frozen=True)
class Maps:
    """The maps of all heads between the tokens or words that are shown, and the strongest pair of each."""

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    block: tuple[int, int]
    """Queries and keys of one pixel, which is the largest weight among them."""
    pixels: Float[Tensor, "layer head row column"]
    pair: Int[Tensor, "layer head two"]
    """The query and the key of the largest weight, by their places, among rows that have a choice; -1 for none."""
    weight: Float[Tensor, "layer head"]
    hidden: float
    """The share of the attention of the shown rows that goes to keys left out."""

    @property
    def code(self) -> UInt8[Tensor, "layer head row column"]:
        """The square root of each pixel in 255 steps: small weights keep their digits."""
        return self.pixels.clamp(0, 1).sqrt().mul(255).round().to(torch.uint8)


def maps_of(record: AttentionRecord, sides: Mapping[str, Any], *, words: bool, special: bool) -> Maps:
    """The maps of a record at the level of tokens or words, with or without special tokens and sinks."""
    texts, places = {}, {}
    for name in ("queries", "keys"):
        units = units_of(sides[name], words=words)
        places[name] = in_sight(units, special=special)
        texts[name] = tuple(units[place].text for place in places[name])
    merged = record.words() if words else record
    rows, columns = places["queries"], places["keys"]
    side = min(max(math.isqrt(BYTES // (len(record.layers) * len(record.heads))), LEAST_SIDE), MOST_SIDE)
    block = (math.ceil(len(rows) / side) or 1, math.ceil(len(columns) / side) or 1)
    free = set(choosing(merged))
    found = [_of_layer(layer, rows, columns, block, free) for layer in merged.weights]
    pixels, pair, weight, shown, mass = (torch.stack(parts) for parts in zip(*found, strict=True))
    return Maps(
        queries=texts["queries"],
        keys=texts["keys"],
        block=block,
        pixels=pixels,
        pair=pair,
        weight=weight,
        hidden=float(((mass.sum() - shown.sum()) / mass.sum().clamp(min=1e-9)).clamp(min=0)),
    )


def thumbnail_blobs(record: AttentionRecord, sides: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a script must know of the pictures, and their bytes: one blob for each choice that shows other ones.

    The choices are tokens or words (where a word has several tokens), with or without special tokens and sinks (where
    there are some).
    """
    both = [sides["queries"], sides["keys"]]
    levels = [False, True] if any(len(word["places"]) > 1 for side in both for word in side["words"]) else [False]
    shows = [True, False] if any(side["special"] or side["sinks"] for side in both) else [True]
    described, blobs = {}, {}
    for words in levels:
        for special in shows:
            name = ("words" if words else "tokens") + ("" if special else "-quiet")
            maps = maps_of(record, sides, words=words, special=special)
            blobs[name] = deflated(maps.code.numpy())
            described[name] = {
                "shape": list(maps.pixels.shape[2:]),
                "block": list(maps.block),
                "units": [len(maps.queries), len(maps.keys)],
                "pair": packed(maps.pair.numpy()),
                "weight": packed(maps.weight.numpy()),
                "hidden": maps.hidden,
            }
    return described, blobs


def _of_layer(
    layer: Float[Tensor, "head query key"], rows: list[int], columns: list[int], block: tuple[int, int], free: set[int]
) -> tuple[Tensor, ...]:
    """Pixels, strongest pairs with their weights, and how much of the rows' attention is shown and there is."""
    heads = len(layer)
    of_rows = layer if len(rows) == layer.shape[1] else layer[:, rows]
    weights = of_rows if len(columns) == layer.shape[2] else of_rows[..., columns]
    if not weights.numel():
        nothing = torch.full((heads, 2), -1), torch.full((heads,), torch.nan)
        return weights, *nothing, torch.tensor(0.0), of_rows.sum()
    pixels = torch.nn.functional.max_pool2d(weights, block, block, ceil_mode=True)
    bound = [place for place, row in enumerate(rows) if row not in free]
    chosen = weights.index_fill(1, torch.tensor(bound, dtype=torch.long), -1.0) if bound else weights
    weight, place = chosen.flatten(1).max(-1)
    pair = torch.stack([place // len(columns), place % len(columns)], -1)
    alone = weight < 0
    return (
        pixels,
        pair.masked_fill(alone.unsqueeze(-1), -1),
        weight.masked_fill(alone, torch.nan),
        weights.sum(),
        of_rows.sum(),
    )
