"""The loop that the survey is timed against comes to the same sums, and the memory is measured on what it says."""

import random

import numpy as np
import pytest
import torch

from attnscope.bench import survey as bench
from attnscope.statistics import STATISTICS, Frame, observer


@pytest.fixture(scope="module")
def both():
    """Two layers over three sentences: the statistics, and what the loop finds for each layer and head."""
    dice = random.Random(1)
    readings = [bench._reading(dice, place, 20) for place in range(3)]
    future = torch.ones(20, 20).triu(1).bool()
    generator = torch.Generator().manual_seed(1)
    layers = [
        torch.randn(3, bench.HEADS, 20, 20, generator=generator).masked_fill(future, -torch.inf).softmax(-1)
        for _ in range(2)
    ]
    frame = Frame(2, bench.HEADS, causal=True, null="first", tags=bench.TAGS, relations=bench.RELATIONS)
    found = {name: kind.empty(frame) for name, kind in STATISTICS.items()}
    show = observer(readings, frame, list(found.values()))
    for layer, weights in enumerate(layers):
        show(layer, weights)
    loop = bench.loop_over_heads(readings, layers)
    shape = (2, 3, bench.HEADS)
    sums = {
        name: np.array([np.asarray(one[name], dtype=float) for one in loop]).reshape(*shape, -1).sum(1)
        for name in loop[0]
        if name not in ("map", "largest")
    }
    return found, sums


@pytest.mark.parametrize(
    ("name", "tally", "ours"),
    [
        ("type", "to", "dependency_type"),
        ("distance", "before", "distance"),
        ("entropy", "total", "entropy"),
        ("rows", "rows", "entropy"),
        ("null", "null", "null_attention"),
        ("most", "most", "null_attention"),
        ("most_by_chance", "most_by_chance", "null_attention"),
    ],
)
def test_the_loop_comes_to_the_same_sums(both, name, tally, ours):
    found, sums = both
    np.testing.assert_allclose(getattr(found[ours], tally).sums.permute(1, 2, 0), sums[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("pattern", "name"), [(0, "previous"), (1, "next"), (2, "same"), (3, "repeated"), (4, "induction")]
)
def test_the_loop_finds_the_same_patterns(both, pattern, name):
    found, sums = both
    np.testing.assert_allclose(found["patterns"].along.sums[pattern], sums[name][..., 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "tally", "direction"),
    [
        ("up", "linked", "dependent_to_head"),
        ("down", "linked", "head_to_dependent"),
        ("up_others", "others", "dependent_to_head"),
        ("down_others", "others", "head_to_dependent"),
        ("up_asked", "asking", "dependent_to_head"),
        ("down_asked", "asking", "head_to_dependent"),
    ],
)
def test_the_loop_follows_the_same_relations(both, name, tally, direction):
    found, sums = both
    counted = getattr(found["dependency_alignment"], tally)
    rows = [counted.labels.index(f"{direction} {relation}") for relation in bench.RELATIONS]
    assert sums[name].max() > 0
    np.testing.assert_allclose(counted.sums[rows].permute(1, 2, 0), sums[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("direction", ["to", "from"])
@pytest.mark.parametrize(
    ("tally", "name"), [("along", ""), ("largest", "_largest"), ("largest_by_chance", "_by_chance")]
)
def test_the_loop_comes_to_the_same_parts_of_speech(both, direction, tally, name):
    found, sums = both
    ours = getattr(found["part_of_speech"], tally)
    chosen = [place for place, label in enumerate(ours.labels) if label.startswith(f"{direction} ")]
    np.testing.assert_allclose(ours.sums[chosen].permute(1, 2, 0), sums[direction + name], rtol=1e-5, atol=1e-6)
