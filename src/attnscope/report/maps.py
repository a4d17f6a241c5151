"""All heads at once: every map as bytes for the page's script, and the grid of buttons that show them."""

import base64
from collections.abc import Mapping
from html import escape
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from ..record import AttentionRecord
from .tokens import legend, shown

THUMBNAIL = 52
"""The longest side of a thumbnail, in pixels of the page."""
FEWEST_BLOCKS = 8
"""A map of fewer blocks than this says nothing, so it is left out."""
LARGEST_CODE = 65535


def block_of(record: AttentionRecord, budget: int) -> int | None:
    """The side of the blocks of weights that one pixel stands for, so that all maps fit into `budget` bytes of base64.

    It is 1 where every weight fits, and None where not even a coarse map does.
    """
    layers, heads, queries, keys = record.weights.shape
    for block in range(1, max(queries, keys) + 1):
        rows, columns = -(-queries // block), -(-keys // block)
        if block > 1 and max(rows, columns) < FEWEST_BLOCKS:
            return None
        if layers * heads * rows * columns * 2 * 4 / 3 <= budget:
            return block
    return None


def map_data(record: AttentionRecord, block: int) -> Mapping[str, Any]:
    """The maps for the page's script.

    A weight is coded as the square root of its share of the largest one, in two bytes: an error of at most 2e-5.
    """
    pooled = max_pool2d(record.weights, block, ceil_mode=True) if block > 1 else record.weights
    largest = float(record.weights.max())
    codes = ((pooled / max(largest, 1e-12)).sqrt() * LARGEST_CODE).round().to(torch.int32).numpy().astype("<u2")
    rows, columns = pooled.shape[2:]
    return {
        "rows": rows,
        "columns": columns,
        "block": block,
        "pool": _pool_of_thumbnail(rows, columns),
        "largest": largest,
        "layers": list(record.layers),
        "heads": list(record.heads),
        "queries": shown(record.query_tokens),
        "keys": shown(record.key_tokens),
        "codes": base64.b64encode(codes.tobytes()).decode(),
    }


def maps_html(record: AttentionRecord, block: int | None, number: int | None) -> str:
    """The grid of heads, layers down and heads across; `number` is the place of the maps in the data of the script."""
    if block is None:
        return (
            "<section class=heads><h3>All heads</h3><p>The maps of the heads are left out: they would make this page"
            " too large. They are all in the record.</p></section>"
        )
    queries, keys = record.weights.shape[2:]
    rows, columns = -(-queries // block), -(-keys // block)
    pool = _pool_of_thumbnail(rows, columns)
    pixel = max(1, THUMBNAIL // max(-(-rows // pool), -(-columns // pool)))
    size = f"width:{pixel * -(-columns // pool)}px;height:{pixel * -(-rows // pool)}px"
    strongest = _strongest_pairs(record)
    head_numbers = "".join(f"<th scope=col>{head}</th>" for head in record.heads)
    lines = []
    for row, layer in enumerate(record.layers):
        buttons = "".join(
            f"<td><button type=button class=map data-map={number} data-row={row} data-column={column}"
            f' title="{escape(f"Layer {layer}, head {head}: strongest {strongest[row][column]}")}">'
            f'<canvas style="{size}"></canvas></button></td>'
            for column, head in enumerate(record.heads)
        )
        lines.append(f"<tr><th scope=row>{layer}</th>{buttons}</tr>")
    return (
        "<section class=heads><h3>All heads</h3>"
        "<p class=quiet>Layers down, heads across. In each map a row is the token that attends and a column the token"
        f" attended to. {_in_words(block, pool)} Choose a map to enlarge it; Escape returns.</p>"
        f"{legend(float(record.weights.max()), 'attention weight in all maps')}"
        "<noscript><p>The maps are drawn by a script, and scripts are switched off here.</p></noscript>"
        "<div class=scroll><table class=grid><caption class=hidden>Attention maps by layer and head</caption>"
        f"<tr><th class=corner>layer ↓<br>head →</th>{head_numbers}</tr>{''.join(lines)}</table></div></section>"
    )


def _pool_of_thumbnail(rows: int, columns: int) -> int:
    return -(-max(rows, columns) // THUMBNAIL)


def _in_words(block: int, pool: int) -> str:
    """What a pixel stands for, wherever it is more than one weight."""
    if block * pool == 1:
        return "Each pixel is one weight."
    thumbnail = f"A pixel of a thumbnail is the largest weight of a block of {block * pool} × {block * pool}"
    if block == 1:
        return f"{thumbnail}; the enlarged map has every weight."
    return f"{thumbnail}, and in the enlarged map of {block} × {block}: every weight would make this page too large."


def _strongest_pairs(record: AttentionRecord) -> list[list[str]]:
    """For each layer and head, its largest weight and between which tokens."""
    queries, keys = shown(record.query_tokens), shown(record.key_tokens)
    values, places = record.weights.flatten(2).max(-1)

    def words(value: Tensor, place: Tensor) -> str:
        query, key = divmod(int(place), len(keys))
        return f"“{queries[query]}” → “{keys[key]}” {float(value):.3f}"

    return [
        [words(value, place) for value, place in zip(*line, strict=True)] for line in zip(values, places, strict=True)
    ]
