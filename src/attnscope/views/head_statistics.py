"""What can be said of each head from one text alone: how wide, how far and where to it looks, and a role in words."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float64, Int, UInt8
from torch import Tensor

from ..record import AttentionRecord, VectorRecord, readable
from ..statistics.sinks import sinks_of
from .sides import in_sight, token_texts, units_of
from .tables import tidy_table
from .weights import deflate, pack_array, row_blocks

ROLE_SHARE, ROLE_LIFT = 0.4, 2.0
"""A head is called by a pattern that has this share of its attention, and so many times what chance would give."""
RESTING = 0.9
"""A head that gives this much to one sink is called by it, whatever the rest looks like (as in a survey's roles)."""
EVEN = 0.8
"""A head is broad if its rows have this share of the largest entropy that they could have."""
BROAD, MIXED, ONLY = "broad", "mixed", "only one key"

EVEN_ROWS = 256
"""Rows of a head that looks everywhere alike, at a time."""
OFFSETS = {"previous": -1, "next": 1, "same": 0}
TITLES = {
    "entropy": ("Mean entropy", "nats", "how widely a token spreads its attention"),
    "distance": ("Mean distance", "tokens", "how far away what a token attends to is"),
    "quiet": ("Attention to special tokens and sinks", "share", "what rests on them"),
    "previous": ("Attention to the previous token", "share", "what goes one token back"),
    "next": ("Attention to the next token", "share", "what goes one token ahead"),
    "same": ("Attention to the same token", "share", "what a token gives itself"),
    "first": ("Attention to the first token", "share", "what rests on the first token"),
    "largest": ("Largest weight", "weight", "the largest single weight"),
}
POSITIONS = {"previous": "previous token", "next": "next token", "same": "same token"}
"""Roles that are a share of the attention that counts: what goes to no special token and no sink."""
SINKS = {
    "first": "first token (sink)",
    "special": "special tokens (sink)",
    "punctuation": "punctuation (sink)",
    "sink": "one more token (sink)",
}
"""Roles that are a share of all attention."""


@dataclass(frozen=True)
class HeadStatistics:
    """Figures of every head, each `[layer, head]`, and the role that they name."""

    figures: Mapping[str, Float[Tensor, "layer head"]]
    """By the names of `TITLES`, as far as the record has them."""
    roles: tuple[tuple[str, ...], ...]
    """The role of each head of each layer, in words."""
    shares: Float[Tensor, "layer head"]
    """The share that named the role: of the attention, or for a broad head of the largest entropy."""
    chances: Mapping[str, float]
    """What looking at everything alike would give to each role that is a share of the attention."""


def rows_with_choice(record: AttentionRecord) -> list[int]:
    """The queries that have a choice: more than one key. What a row of one key shows says nothing of a head."""
    keys = record.shape[3]
    seen = (min(row + 1, keys) if record.causal else keys for row in range(record.shape[2]))
    return [row for row, count in enumerate(seen) if count > 1 and not record.masked_queries[row]]


def head_statistics(record: AttentionRecord) -> HeadStatistics:
    """The figures and the role of each head, over the rows that have a choice."""
    measures = [HeadMeasures(record) for _ in record.layers]
    for place, measure in enumerate(measures):
        for rows, weights in row_blocks(record, place):
            measure.add(rows, weights)
    return _statistics(record, measures)


class HeadMeasures:
    """The figures of the heads of one layer, out of sums over its rows, which come some at a time."""

    def __init__(self, record: AttentionRecord) -> None:
        self.rows = rows_with_choice(record)
        self.keys = record.shape[3]
        self.sets = _key_sets(record)
        self.quiet = set(self.sets.get("quiet", []))
        own = record.stack != "cross"
        self.offsets = {name: by for name, by in OFFSETS.items() if own and not (name == "next" and record.causal)}
        self.own = own
        self.sums: dict[str, Float64[Tensor, "head *key"]] = {}
        self.counts: dict[str, int] = {}
        self.largest: Float[Tensor, " head"] | None = None

    def add(self, rows: range, weights: Float[Tensor, "head row key"]) -> None:
        """Take the weights of some rows, from the first key on to the last that they see."""
        kept = self.rows[bisect_left(self.rows, rows.start) : bisect_left(self.rows, rows.stop)]
        if not kept:
            self.largest = torch.full((len(weights),), torch.nan) if self.largest is None else self.largest
            return
        some = weights if len(kept) == len(rows) else weights[:, [row - rows.start for row in kept]]
        self._sum("entropy", torch.special.entr(some).sum(-1), len(kept))
        seen = some.shape[2]
        self._sum("received", torch.nn.functional.pad(some.sum(1), (0, self.keys - seen)).unsqueeze(1))
        if self.own:
            apart = (torch.tensor(kept).unsqueeze(-1) - torch.arange(seen)).abs().float()
            self._sum("distance", (some * apart).sum(-1))
        for name, offset in self.offsets.items():
            pairs = [(place, row + offset) for place, row in enumerate(kept) if 0 <= row + offset < seen]
            counted = [pair for pair in pairs if pair[1] not in self.quiet]
            for what, chosen in ((name, pairs), (f"counted {name}", counted)):
                at, keys = [place for place, _ in chosen], [key for _, key in chosen]
                self._sum(what, some[:, at, keys], len(chosen))
        most = some.amax((-2, -1))
        self.largest = most if self.largest is None else torch.fmax(self.largest, most)

    def _sum(self, name: str, values: Float[Tensor, "head value *key"], count: int = 0) -> None:
        summed = values.double().sum(1)
        self.sums[name] = self.sums[name] + summed if name in self.sums else summed
        self.counts[name] = self.counts.get(name, 0) + count

    def result(self) -> dict[str, Float[Tensor, " head"]]:
        """Means over the rows, and shares of what counts."""
        heads = 0 if self.largest is None else len(self.largest)
        nothing = torch.zeros(heads, dtype=torch.float64)
        rows = self.counts.get("entropy", 0)
        received = self.sums.get("received", torch.zeros(heads, self.keys, dtype=torch.float64))
        of_rows = ["entropy", "distance"] if self.own else ["entropy"]
        found = {name: self.sums.get(name, nothing) / rows for name in of_rows}
        found |= {name: self.sums.get(name, nothing) / self.counts.get(name, 0) for name in self.offsets}
        found |= {name: received[:, keys].sum(-1) / rows for name, keys in self.sets.items()}
        counts = (received.sum(-1) - received[:, sorted(self.quiet)].sum(-1)).clamp(min=1e-9)
        found |= {f"counted {name}": self.sums.get(f"counted {name}", nothing) / counts for name in self.offsets}
        found["largest"] = nothing if self.largest is None else self.largest
        return {name: values.float() for name, values in found.items()}


def _even_blocks(record: AttentionRecord) -> Iterator[tuple[range, Float[Tensor, "one row key"]]]:
    """The rows of a head that looks at all it sees alike."""
    queries, keys = record.shape[2:]
    for first in range(0, queries, EVEN_ROWS):
        rows = range(first, min(first + EVEN_ROWS, queries))
        sees = torch.ones(len(rows), keys)
        if record.causal:
            sees = sees.tril(first)
        yield rows, (sees / sees.sum(-1, keepdim=True)).unsqueeze(0)


def _statistics(record: AttentionRecord, measured: Sequence[HeadMeasures]) -> HeadStatistics:
    by_layer = [measure.result() for measure in measured]
    measures = {name: torch.stack([layer[name] for layer in by_layer]) for name in by_layer[0]}
    even = HeadMeasures(record)
    for rows, weights in _even_blocks(record):
        even.add(rows, weights)
    alike = {name: float(value) for name, value in even.result().items()}
    roles, shares = _roles(measures, alike)
    return HeadStatistics(
        figures={name: measures[name] for name in TITLES if name in measures},
        roles=roles,
        shares=shares,
        chances={
            **{words: alike[f"counted {name}"] for name, words in POSITIONS.items() if name in measures},
            **{words: alike[name] for name, words in SINKS.items() if name in measures},
        },
    )


def _key_sets(record: AttentionRecord) -> dict[str, list[int]]:
    """Keys where attention may rest; each key but the quiet ones in one set only, the first that it fits."""
    sinks = sinks_of(record)
    special = [position for position, alone in enumerate(record.key_special) if alone]
    texts = [text.strip() for text in readable(record.key_tokens)]
    punctuation = [position for position, text in enumerate(texts) if text and not any(map(str.isalnum, text))]
    found: dict[str, list[int]] = {"first": [0]}
    taken = {0}
    for name, keys in (("special", special), ("punctuation", punctuation), ("sink", sinks)):
        left = [key for key in keys if key not in taken]
        taken.update(left)
        if left:
            found[name] = left
    quiet = sorted({*sinks, *special})
    return found | ({"quiet": quiet} if quiet else {})


def _roles(
    measures: Mapping[str, Float[Tensor, "layer head"]], alike: Mapping[str, float]
) -> tuple[tuple[tuple[str, ...], ...], Float[Tensor, "layer head"]]:
    """The first that fits: one sink and little else, a position, a sink, everything alike, nothing in particular."""
    sinks, at_rest = _best(measures, alike, SINKS)
    positions, moving = _best(measures, alike, {f"counted {name}": words for name, words in POSITIONS.items()})
    evenness = measures["entropy"] / max(alike["entropy"], 1e-9)
    unnamed = np.where(measures["entropy"].isnan().numpy(), ONLY, MIXED)
    cases = [(at_rest >= RESTING, sinks, at_rest), (moving > 0, positions, moving), (at_rest > 0, sinks, at_rest)]
    cases.append((evenness >= EVEN, np.full(unnamed.shape, BROAD, dtype=object), evenness))
    words = np.select([fits.numpy() for fits, _, _ in cases], [names for _, names, _ in cases], unnamed)
    shares = torch.full_like(evenness, torch.nan)
    for fits, _, share in reversed(cases):
        shares = torch.where(fits, share, shares)
    return tuple(tuple(str(word) for word in row) for row in words), shares


def _best(
    measures: Mapping[str, Float[Tensor, "layer head"]], alike: Mapping[str, float], roles: Mapping[str, str]
) -> tuple[Any, Float[Tensor, "layer head"]]:
    """Of some roles the one with the largest share, for each head, and that share; -1 where none is large enough."""
    names = [name for name in roles if name in measures]
    if not names:
        entropy = measures["entropy"]
        return np.full(entropy.shape, "", dtype=object), torch.full_like(entropy, -1.0)
    shares = torch.stack([measures[name] for name in names])
    bars = torch.tensor([max(ROLE_SHARE, min(ROLE_LIFT * alike[name], 1.0)) for name in names]).view(-1, 1, 1)
    best, place = torch.where(shares >= bars, shares, -1.0).max(0)
    return np.array([roles[name] for name in names], dtype=object)[place.numpy()], best


# Every head's map as a small picture: bytes for all heads at once, so that no layer must be decoded to see them.


BYTES = 300_000
"""Pixels of all heads together; the more heads, the smaller each picture, and the smaller it is drawn."""
MOST_SIDE, LEAST_SIDE = 128, 16
MOST_LARGEST = 16
"""Beyond blocks of so many tokens a pixel of vectors is no largest weight: among thousands one is always large, and all
pixels would be dark."""


@dataclass(frozen=True)
class Maps:
    """The maps of all heads between the tokens or words that are shown, and the strongest pair of each."""

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    block: tuple[int, int]
    """Queries and keys of one pixel."""
    is_mean: bool
    """Whether a pixel is what its queries give to its keys in the mean, and not the largest weight among them."""
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


class MapSums:
    """The maps of one choice, out of rows that come layer by layer and some at a time."""

    def __init__(self, record: AttentionRecord, sides: Mapping[str, Any], *, words: bool, special: bool) -> None:
        texts, places = [], []
        for name in ("queries", "keys"):
            units = units_of(sides[name], words=words)
            places.append(in_sight(units, special=special))
            texts.append(tuple(units[place].text for place in places[-1]))
        (self.queries, self.keys), (self.rows, self.columns) = texts, places
        layers, heads = len(record.layers), len(record.heads)
        side = min(max(math.isqrt(BYTES // (layers * heads)), LEAST_SIDE), MOST_SIDE)
        self.block = (math.ceil(len(self.rows) / side) or 1, math.ceil(len(self.columns) / side) or 1)
        self.is_mean = isinstance(record, VectorRecord) and max(self.block) > MOST_LARGEST
        self.free = set(rows_with_choice(record))
        shape = [math.ceil(len(some) / each) for some, each in zip(places, self.block, strict=True)]
        self.pixels = torch.zeros(layers, heads, *shape)
        self.pair = torch.full((layers, heads, 2), -1)
        self.weight = torch.full((layers, heads), -1.0)
        self.shown_mass = self.mass = 0.0

    def add(self, layer: int, rows: range, weights: Float[Tensor, "head row key"]) -> None:
        """Take the weights of some rows of a layer, from the first key on to the last that they see."""
        first, last = bisect_left(self.rows, rows.start), bisect_left(self.rows, rows.stop)
        kept = self.rows[first:last]
        of_rows = weights if len(kept) == len(rows) else weights[:, [row - rows.start for row in kept]]
        seen = weights.shape[2]
        columns = self.columns[: bisect_left(self.columns, seen)]
        shown = of_rows if len(columns) == seen else of_rows[..., columns]
        self.mass += float(of_rows.sum(-1).double().sum())
        if not shown.numel():
            return
        self.shown_mass += float(shown.sum(-1).double().sum())
        high, wide = self.block
        # every weight is looked at once: pooling by chunks of memory is ten times as fast as pooling by windows
        padded = torch.nn.functional.pad(shown, (0, -shown.shape[2] % wide)) if shown.shape[2] % wide else shown
        chunks = padded.reshape(*shown.shape[:2], -1, wide)
        pooled = chunks.amax(-1)
        given = chunks.sum(-1) if self.is_mean else pooled
        for row in range(first // high, (last - 1) // high + 1):
            part = given[:, max(row * high - first, 0) : (row + 1) * high - first]
            pixels = self.pixels[layer, :, row, : part.shape[2]]
            if self.is_mean:
                pixels += part.sum(1) / min(high, len(self.rows) - row * high)
            else:
                torch.maximum(pixels, part.amax(1), out=pixels)
        bound = [place for place, row in enumerate(kept) if row not in self.free]
        of_row = pooled.amax(-1).index_fill(1, torch.tensor(bound, dtype=torch.long), -1.0)
        weight, row_of_best = of_row.max(-1)
        for head in (weight > self.weight[layer]).nonzero().flatten().tolist():
            row = int(row_of_best[head])
            self.pair[layer, head] = torch.tensor([first + row, int(shown[head, row].argmax())])
            self.weight[layer, head] = weight[head]

    def result(self) -> Maps:
        """The maps of all layers."""
        alone = self.weight < 0
        return Maps(
            queries=self.queries,
            keys=self.keys,
            block=self.block,
            is_mean=self.is_mean,
            pixels=self.pixels,
            pair=self.pair.masked_fill(alone.unsqueeze(-1), -1),
            weight=self.weight.masked_fill(alone, torch.nan),
            hidden=max((self.mass - self.shown_mass) / max(self.mass, 1e-9), 0.0),
        )


@dataclass(frozen=True)
class ModelScene:
    """What the page and the printed figure of all heads both draw: their maps for each choice, and what each does."""

    record: AttentionRecord
    sides: Mapping[str, Any]
    maps: Mapping[str, Maps]
    """By `tokens` or `words` (where a word has several tokens), with `-quiet` without special tokens and sinks."""
    statistics: HeadStatistics

    @classmethod
    def of(cls, record: AttentionRecord, sides: Mapping[str, Any]) -> "ModelScene":
        """All that is drawn of a record; a choice that would show the same maps as another is not among them."""
        both = [sides["queries"], sides["keys"]]
        # words of a record of vectors would be sums of weights that it does without
        has_words = any(len(word["places"]) > 1 for side in both for word in side["words"])
        levels = [False, True] if has_words and not isinstance(record, VectorRecord) else [False]
        shows = [True, False] if any(side["special"] or side["sinks"] for side in both) else [True]
        maps: dict[str, Maps] = {}
        measures = [HeadMeasures(record) for _ in record.layers]
        for words in levels:
            merged, level = (record.words(), "words") if words else (record, "tokens")
            sums = {
                level + ("" if special else "-quiet"): MapSums(merged, sides, words=words, special=special)
                for special in shows
            }
            # one pass over the weights for all that is drawn of them: of vectors they are computed on the way
            for place in range(len(record.layers)):
                for rows, weights in row_blocks(merged, place):
                    for one in sums.values():
                        one.add(place, rows, weights)
                    if not words:
                        measures[place].add(rows, weights)
            maps |= {name: one.result() for name, one in sums.items()}
        return cls(record, sides, maps, _statistics(record, measures))

    def maps_for(self, state: Mapping[str, Any]) -> Maps:
        """The maps that a state chooses, as far as there is something to choose."""
        level = "words" if state.get("words") and "words" in self.maps else "tokens"
        quiet = f"{level}-quiet"
        return self.maps[quiet if not state.get("special", True) and quiet in self.maps else level]

    def payload(self) -> dict[str, Any]:
        """What a script must know of the pictures of each choice, of the figures and of the roles."""
        statistics = self.statistics
        names = list(dict.fromkeys(role for row in statistics.roles for role in row))
        return {
            "maps": {
                name: {
                    "shape": list(maps.pixels.shape[2:]),
                    "block": list(maps.block),
                    "mean": maps.is_mean,
                    "units": [len(maps.queries), len(maps.keys)],
                    "pair": pack_array(maps.pair.numpy()),
                    "weight": pack_array(maps.weight.numpy()),
                    "hidden": maps.hidden,
                }
                for name, maps in self.maps.items()
            },
            "statistics": [
                {
                    "name": name,
                    **dict(zip(("title", "unit", "meaning"), TITLES[name], strict=True)),
                    "values": pack_array(values.numpy()),
                }
                for name, values in statistics.figures.items()
            ],
            "roles": {
                "names": names,
                "places": [[names.index(role) for role in row] for row in statistics.roles],
                "shares": pack_array(statistics.shares.numpy()),
                "chances": [statistics.chances.get(role) for role in names],
                "counted": [role in POSITIONS.values() for role in names],
            },
        }

    def to_frame(self) -> pd.DataFrame:
        """Every head as a row: its statistics, its role on this text, and its strongest pair of tokens."""
        record, maps, statistics = self.record, self.maps["tokens"], self.statistics
        pairs = {"query": maps.pair[..., 0].numpy(), "key": maps.pair[..., 1].numpy()}
        frame = tidy_table(
            {"layer": (0, record.layers), "head": (1, record.heads)},
            **{name: values.double().numpy() for name, values in statistics.figures.items()},
            role=np.array(statistics.roles, dtype=object),
            role_share=statistics.shares.double().numpy(),
            **pairs,
            weight=maps.weight.double().numpy(),
        )
        for side, tokens in (("query", record.query_tokens), ("key", record.key_tokens)):
            texts = [*token_texts(tokens), ""]  # the last is for -1, no pair
            frame.insert(frame.columns.get_loc("weight"), f"{side}_token", [texts[place] for place in frame[side]])
        return frame

    def blobs(self) -> dict[str, bytes]:
        """The bytes of the pictures of each choice."""
        return {name: deflate(maps.code.numpy()) for name, maps in self.maps.items()}
