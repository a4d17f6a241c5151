"""What can be said of each head from one text alone: how wide, how far and where to it looks, and a role in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..record import AttentionRecord, readable
from .sides import sinks_of

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


def visible(record: AttentionRecord) -> Bool[Tensor, "query key"]:
    """Which keys each query may attend to; none for a query that attends to nothing."""
    queries, keys = record.weights.shape[2:]
    sees = torch.ones(queries, keys, dtype=torch.bool)
    if record.causal:
        sees = sees.tril()
    sees[list(record.masked_queries)] = False
    return sees


def choosing(record: AttentionRecord) -> list[int]:
    """The queries that have a choice: more than one key. What a row of one key shows says nothing of a head."""
    return [int(row) for row in (visible(record).sum(-1) > 1).nonzero().flatten()]


def head_statistics(record: AttentionRecord) -> HeadStatistics:
    """The figures and the role of each head, over the rows that have a choice."""
    rows = choosing(record)
    sees = visible(record)[rows].float()
    uniform = sees / sees.sum(-1, keepdim=True).clamp(min=1)
    sets = _key_sets(record)
    pairs = _pairs(record, rows)
    quiet = set(sets.get("quiet", []))
    distances = torch.tensor([[abs(row - key) for key in range(sees.shape[1])] for row in rows]).reshape(sees.shape)

    def measured(weights: Float[Tensor, "head row key"]) -> dict[str, Float[Tensor, " head"]]:
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

    by_layer = [measured(layer[:, rows]) for layer in record.weights]
    measures = {name: torch.stack([layer[name] for layer in by_layer]) for name in by_layer[0]}
    alike = {name: float(value) for name, value in measured(uniform.unsqueeze(0)).items()}
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
