"""A record's weights for a page: bytes by layer, whole or cut to the largest of each row, within a budget."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..errors import BadInput
from ..record import AttentionRecord
from ..record.storage import encoded_rows
from .packing import WORST, deflated

EXACT_BYTES = 100_000
"""Up to here weights travel as 16-bit floats (three digits) unasked; beyond, as the record's uint8 code (two)."""
PAGE_BYTES = 250_000
"""What a page takes beside its weights: scripts, colours, the texts of ordinary length."""


@dataclass(frozen=True)
class Form:
    """How weights travel: their code, and how many keys of each row."""

    code: str
    """"float16", or "uint8" for the square root of a weight over its row's largest, in 255 steps."""
    kept: int | None = None
    """The number of largest keys of each row that travel, or None for all; the others are one mass."""

    def size(self, record: AttentionRecord) -> int:
        """The bytes on a page, at most."""
        layers, heads, queries, keys = record.weights.shape
        rows = layers * heads * queries
        one = 2 if self.code == "float16" else 1
        row = 4 + (keys * one if self.kept is None else 4 + self.kept * (2 + one))
        return int(rows * row * WORST) + 1


def form_for(record: AttentionRecord, size_budget: int | None = None, keys_per_query: int | None = None) -> Form:
    """The most exact form that fits `size_budget`, the bytes of the saved page: as 16-bit floats, as bytes, or cut.

    Without a budget all weights stay, and a small page goes before a fourth digit. `keys_per_query` asks for that many
    of the largest of each row, whatever the budget would allow.
    """
    layers, heads, queries, keys = record.weights.shape
    if keys_per_query is not None and keys_per_query < 1:
        raise BadInput(f"At least one key of each query is shown; keys_per_query is {keys_per_query}.")
    if keys_per_query is not None and keys_per_query < keys:
        return Form("uint8", keys_per_query)
    exact, whole = Form("float16"), Form("uint8")
    if size_budget is None:
        return exact if exact.size(record) <= EXACT_BYTES else whole
    left = size_budget - PAGE_BYTES
    for form in (exact, whole):
        if form.size(record) <= left:
            return form
    kept = int((left / WORST / (layers * heads * queries) - 8) // 3)
    if kept < 1:
        smallest = Form("uint8", 1).size(record) + PAGE_BYTES
        raise BadInput(
            f"These weights do not fit into {size_budget:,} bytes: one key of each query takes {smallest:,};"
            " give a larger size_budget, or fewer layers and heads with record.select()."
        )
    return Form("uint8", min(kept, keys - 1))


def weight_blobs(record: AttentionRecord, form: Form) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a script must know of the weights, and the weights themselves: one blob for each layer."""
    blobs = {}
    rest_mass = 0.0
    for place, layer in enumerate(record.weights):
        rows: list[Any] = []
        if form.kept is not None:
            layer, positions = layer.topk(form.kept, dim=-1)  # noqa: PLW2901 - from here on the row is what is kept
            rest = (1 - layer.sum(-1)).clamp(min=0.0)
            rest[:, list(record.masked_queries)] = 0.0
            rest_mass += float(rest.mean()) / len(record.weights)
            rows += [rest.numpy(), positions.numpy().astype(np.uint16)]
        if form.code == "float16":
            rows.append(layer.to(torch.float16).numpy())
        else:
            codes, largest = encoded_rows(layer.unsqueeze(0))
            rows += [largest[0].numpy(), codes[0].numpy()]
        blobs[f"layer{place}"] = deflated(*rows)
    head_count, query_count, key_count = record.weights.shape[1:]
    described = {
        "code": form.code,
        "kept": form.kept,
        "rest": rest_mass,
        "shape": [head_count, query_count, key_count],
        "layers": list(record.layers),
        "heads": list(record.heads),
        "pooled": record.pooled,
    }
    return described, blobs
