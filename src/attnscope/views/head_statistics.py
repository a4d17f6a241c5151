"""What can be said of each head from one text alone: how wide, how far and where to it looks, and a role in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from ..record import AttentionRecord, readable
from ..statistics.sinks import sinks_of
from .sides import in_sight, token_texts, units_of
from .tables import tidy_table
from .weights import deflate, pack_array

ROLE_SHARE, ROLE_LIFT = 0.4, 2.0
"""A head is called by a pattern that has this share of its attention, and so many times what chance would give."""
RESTING = 0.9
"""A head that gives this much to one sink is called by it, whatever the rest looks like (as in a survey's roles)."""
EVEN = 0.8
"""A head is broad if its rows have this share of the largest entropy that they could have."""
BROAD, MIXED, ONLY = "broad", "mixed", "only one key"

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


def visible_keys(record: AttentionRecord) -> Bool[Tensor, "query key"]:
    """Which keys each query may attend to; none for a query that attends to nothing."""
    queries, keys = record.weights.shape[2:]
    sees = torch.ones(queries, keys, dtype=torch.bool)
    if record.causal:
        sees = sees.tril()
    sees[list(record.masked_queries)] = False
    return sees


def rows_with_choice(record: AttentionRecord) -> list[int]:
    """The queries that have a choice: more than one key. What a row of one key shows says nothing of a head."""
    return [int(row) for row in (visible_keys(record).sum(-1) > 1).nonzero().flatten()]


def head_statistics(record: AttentionRecord) -> HeadStatistics:
    """The figures and the role of each head, over the rows that have a choice."""
    rows = rows_with_choice(record)
    sees = visible_keys(record)[rows].float()
    uniform = sees / sees.sum(-1, keepdim=True).clamp(min=1)
    sets = _key_sets(record)
    pairs = _pairs(record, rows)
    quiet = set(sets.get("quiet", []))
    distances = torch.tensor([[abs(row - key) for key in range(sees.shape[1])] for row in rows]).reshape(sees.shape)

    def measure_heads(weights: Float[Tensor, "head row key"]) -> dict[str, Float[Tensor, " head"]]:
        found = {"entropy": -torch.special.xlogy(weights, weights).sum(-1).mean(-1)}
        if record.stack != "cross":
            found["distance"] = (weights * distances).sum(-1).mean(-1)
        found |= {name: weights[:, at, keys].mean(-1) for name, (at, keys) in pairs.items()}
        found |= {name: weights[..., keys].sum(-1).mean(-1) for name, keys in sets.items()}
        counts = (weights.sum((-2, -1)) - weights[..., sorted(quiet)].sum((-2, -1))).clamp(min=1e-9)
        for name, (at, keys) in pairs.items():
            kept = [place for place, key in enumerate(keys) if key not in quiet]
            found[f"counted {name}"] = weights[:, at, keys][:, kept].sum(-1) / counts
        found["largest"] = weights.amax((-2, -1)) if rows else torch.full((len(weights),), torch.nan)
        return found

    by_layer = [measure_heads(layer[:, rows]) for layer in record.weights]
    measures = {name: torch.stack([layer[name] for layer in by_layer]) for name in by_layer[0]}
    alike = {name: float(value) for name, value in measure_heads(uniform.unsqueeze(0)).items()}
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


def _pairs(record: AttentionRecord, rows: list[int]) -> dict[str, tuple[list[int], list[int]]]:
    """For each fixed offset the rows (by their places) that have such a key, and those keys."""
    if record.stack == "cross":
        return {}
    count = len(record.key_tokens)
    found = {}
    for name, offset in OFFSETS.items():
        if name == "next" and record.causal:
            continue
        pairs = [(place, row + offset) for place, row in enumerate(rows) if 0 <= row + offset < count]
        found[name] = ([place for place, _ in pairs], [key for _, key in pairs])
    return found


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
    free = set(rows_with_choice(merged))
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
        levels = [False, True] if any(len(word["places"]) > 1 for side in both for word in side["words"]) else [False]
        shows = [True, False] if any(side["special"] or side["sinks"] for side in both) else [True]
        maps = {
            ("words" if words else "tokens") + ("" if special else "-quiet"): maps_of(
                record, sides, words=words, special=special
            )
            for words in levels
            for special in shows
        }
        return cls(record, sides, maps, head_statistics(record))

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
