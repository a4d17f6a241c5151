"""How the tokens of a batch lie in memory: text by text, or moment by moment for an encoder that reads in time."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64


@dataclass(frozen=True, eq=False)
class Moments:
    """First the first tokens of all texts, then the second ones, …, without padding; the longest text comes first.

    The texts that still go on at a moment are then the first so many of those at the moment before: a recurrent step
    works on one block. Read backwards, a text has as many moments, so that both directions share the blocks.
    """

    rows: Int64[np.ndarray, " token"]
    """Where each token lies; tokens are counted text by text."""
    counts: Int64[np.ndarray, " moment"]
    """How many texts go on at each moment."""
    offsets: Int64[np.ndarray, " moment"]
    """Where the block of each moment begins."""
    mirror: Int64[np.ndarray, " token"]
    """For each place, the place of the token as far from the end of its text as this one is from the start."""
    before: Int64[np.ndarray, " later"]
    """For each place behind the first block, the place of the token before it."""


def by_moment(lengths: Int64[np.ndarray, " text"]) -> Moments:
    """Lay out texts of these lengths.

    >>> moments = by_moment(np.array([1, 3]))
    >>> moments.rows.tolist(), moments.counts.tolist(), moments.mirror.tolist(), moments.before.tolist()
    ([1, 0, 2, 3], [2, 1, 1], [3, 1, 2, 0], [0, 2])
    """
    rank = np.empty(len(lengths), np.int64)
    rank[np.argsort(-lengths, kind="stable")] = np.arange(len(lengths))
    longest = int(lengths.max())
    counts = len(lengths) - np.searchsorted(np.sort(lengths), np.arange(longest), side="right")
    offsets = np.cumsum(counts) - counts
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    position = np.arange(len(first)) - first
    rows = offsets[position] + np.repeat(rank, lengths)
    mirror = np.empty_like(rows)
    mirror[rows] = rows[first + np.repeat(lengths, lengths) - 1 - position]
    before = np.empty_like(rows)
    later = np.flatnonzero(position)
    before[rows[later]] = rows[later - 1]
    return Moments(rows, counts, offsets, mirror, before[counts[0] :])
