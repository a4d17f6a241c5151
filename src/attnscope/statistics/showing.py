"""Shows the attention of a layer to the statistics: sentences a few at a time, a long text a few queries at a time.

The map of a layer grows with the square of a text. So the weights of a long text follow from queries and keys, block by
block, and no map of all pairs is ever made, of weights or of masks: memory grows with the text. Statistics that add up
over queries are shown every block as if it were a batch. Those that ask for what all rows together give to a token are
shown such sums when the last block has passed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..numerals import counted
from ..record.vectors import LayerVectors, blocks
from .batch import Batch, Frame, Links, Pairs, Reading
from .statistic import ROWS, LayerAttention, Reads, Watcher

PART_ELEMENTS = {"cpu": 2**20, "cuda": 2**25}
"""Weights that are reduced together: on a CPU what stays in its cache, and keeps the memory beside the model small."""


def observer(
    readings: Sequence[Reading], frame: Frame, statistics: Sequence[Watcher]
) -> Callable[[int, Float[Tensor, "text head query key"]], None]:
    """What is called with each layer of a batch, in order; the batch is laid out once, when its size is known."""
    parts: list[tuple[slice, Batch]] = []

    def observe(layer: int, weights: Float[Tensor, "text head query key"]) -> None:
        if not parts:
            size = _together(weights[0])
            starts = range(0, len(readings), size)
            parts.extend((slice(start, start + size), Batch(readings[start : start + size], frame)) for start in starts)
        weights = _with_float64(weights)
        for chosen, part in parts:
            attention = LayerAttention(part, layer, weights[chosen, :, : part.longest, : part.longest].float())
            for statistic in statistics:
                statistic.update(attention)

    return observe


def _together(weights: Tensor) -> int:
    """How many tensors like this one are reduced together."""
    return max(1, PART_ELEMENTS.get(weights.device.type, PART_ELEMENTS["cpu"]) // max(1, weights.numel()))


def _with_float64(weights: Tensor) -> Tensor:
    """The weights on a device that has float64, in which sums are kept."""
    return weights.cpu() if weights.device.type == "mps" else weights


# ---- a long text


OF_QUERIES = ("given", "rows")
OF_KEYS = ("received", "columns", "offered", "received_alike")
LINKED = "linked"
"""The sums of a layer that a statistic may ask for: one number for each query, for each key, for each link."""


def long_observer(
    reading: Reading, frame: Frame, statistics: Mapping[str, Watcher]
) -> Callable[[int, LayerVectors], None]:
    """What is called with the vectors of each layer of one text, in order."""
    batch = Batch([reading], frame)
    reads: dict[str, Reads] = {name: getattr(statistic, "reads", None) for name, statistic in statistics.items()}
    if needing := [name for name, asked in reads.items() if asked is None]:
        raise BadInput(
            f"{needing[0]} needs the map of a whole layer, which a text of {counted(len(reading), 'token')} is too long"
            " for: leave out the statistic, or texts so long."
        )
    by_rows = [statistic for name, statistic in statistics.items() if reads[name] == ROWS]
    by_sums = [statistic for name, statistic in statistics.items() if reads[name] != ROWS]
    wanted = sorted({sum_name for asked in reads.values() if isinstance(asked, tuple) for sum_name in asked})

    def observe(layer: int, vectors: LayerVectors) -> None:
        sums = _Sums(batch, wanted, vectors.shape[0])
        for attention in _in_blocks(batch, layer, vectors):
            for statistic in by_rows:
                statistic.update(attention)
            sums.update(attention)
        whole = sums.whole(layer)
        for statistic in by_sums:
            statistic.update(whole)

    return observe


def _in_blocks(batch: Batch, layer: int, vectors: LayerVectors) -> Iterator[LayerAttention]:
    """The weights of a text in one layer, some queries after the other."""
    for queries, keys, some in blocks(vectors):
        weights = _with_float64(some)
        step = _together(weights[:, 0])
        for first in range(queries.start, queries.stop, step):
            part = batch.block(first, min(first + step, queries.stop))
            rows = weights[:, first - queries.start : part.queries.stop - queries.start]
            yield LayerAttention(part, layer, _over_keys(rows, keys, part.longest).unsqueeze(0))


def _over_keys(weights: Tensor, keys: slice, count: int) -> Float[Tensor, "head query key"]:
    """Weights of some keys as weights of the first `count`: the others are not seen."""
    if keys.start == 0 and keys.stop >= count:
        return weights[..., :count]
    whole = weights.new_zeros(*weights.shape[:-1], count)
    stop = min(keys.stop, count)
    whole[..., keys.start : stop] = weights[..., : stop - keys.start]
    return whole


class _Sums:
    """What blocks of queries add up to: the sums that statistics ask for."""

    def __init__(self, batch: Batch, wanted: Sequence[str], heads: int) -> None:
        self.batch = batch
        self.of_keys = {
            name: torch.zeros(1, heads, batch.longest, dtype=torch.float64) for name in OF_KEYS if name in wanted
        }
        self.of_queries: dict[str, list[Tensor]] = {name: [] for name in OF_QUERIES if name in wanted}
        self.linked: list[Tensor] | None = [] if LINKED in wanted else None
        self.links: list[tuple[int, Links]] = []

    def update(self, attention: LayerAttention) -> None:
        """Take in one block."""
        for name, total in self.of_keys.items():
            found = getattr(attention, name)
            total[..., : found.shape[-1]] += found.to("cpu", torch.float64)
        for name, parts in self.of_queries.items():
            parts.append(getattr(attention, name).cpu())
        if self.linked is not None:
            self.linked.append(attention.linked.cpu())
            self.links.append((attention.batch.queries.start, attention.batch.links))

    def whole(self, layer: int) -> LayerAttention:
        """The layer as far as it is known: sums, and no weights."""
        sums: dict[str, Any] = {
            **self.of_keys,
            **{name: torch.cat(parts, -1) for name, parts in self.of_queries.items()},
        }
        if self.linked is not None:
            sums[LINKED] = torch.cat(self.linked)
            vars(self.batch).setdefault("links", _joined(self.links))
        attention = LayerAttention(self.batch, layer, torch.empty(1, 0, 0, 0))
        vars(attention).update(sums)
        return attention


def _joined(parts: Sequence[tuple[int, Links]]) -> Links:
    """The links of all blocks of a text, each with its first query."""
    pairs = Pairs(
        torch.cat([links.pairs.sentence for _, links in parts]),
        torch.cat([links.pairs.query + first for first, links in parts]),
        torch.cat([links.pairs.key for _, links in parts]),
    )
    return Links(
        pairs,
        torch.cat([links.labels for _, links in parts]),
        torch.cat([links.asking_sentence for _, links in parts]),
        torch.cat([links.asking_query + first for first, links in parts]),
        torch.cat([links.asking_label for _, links in parts]),
    )
