"""A record's weights for a page: bytes by layer, whole or cut to the largest of each row, within a budget."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord
from ..record.storage import encoded_rows
from .choices import check_count
from .packing import WORST, OnDemand, deflated

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
    check_count(size_budget, "size_budget")
    check_count(keys_per_query, "keys_per_query")
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


def weight_blobs(record: AttentionRecord, form: Form) -> tuple[dict[str, Any], OnDemand]:
    """What a script must know of the weights, and the weights themselves: one blob for each layer."""
    layers = range(len(record.weights))
    rest_mass = 0.0
    if form.kept is not None:
        rest_mass = sum(float(_largest(record, form.kept, place)[2].mean()) for place in layers) / len(record.weights)
    blobs = OnDemand({f"layer{place}": partial(_layer_bytes, record, form, place) for place in layers})
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


def _layer_bytes(record: AttentionRecord, form: Form, place: int) -> bytes:
    """One layer as its form wants it."""
    weights, rows = record.weights[place], []
    if form.kept is not None:
        weights, positions, rest = _largest(record, form.kept, place)
        rows += [rest.numpy(), positions.numpy().astype(np.uint16)]
    if form.code == "float16":
        return deflated(*rows, weights.to(torch.float16).numpy())
    codes, largest = encoded_rows(weights.unsqueeze(0))
    return deflated(*rows, largest[0].numpy(), codes[0].numpy())


def _largest(
    record: AttentionRecord, kept: int, place: int
) -> tuple[Float[Tensor, "head query kept"], Int[Tensor, "head query kept"], Float[Tensor, "head query"]]:
    """The largest weights of each row of a layer, where they stand, and what is left of the row."""
    weights, positions = record.weights[place].topk(kept, dim=-1)
    rest = (1 - weights.sum(-1)).clamp(min=0.0)
    rest[:, list(record.masked_queries)] = 0.0
    return weights, positions, rest
