"""A long text shown block by block gives every statistic what the map of the whole layer gives it."""

import random
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from attnscope.errors import BadInput
from attnscope.record import vectors
from attnscope.record.vectors import LayerVectors, normalizers_of
from attnscope.statistics import ROLE_KINDS, STATISTICS, RoleExemplars, long_observer, showing
from attnscope.statistics.roles import TAG_NAMES
from attnscope.statistics.sinks import RestingHeads
from attnscope.statistics.statistic import RatioStatistic, Tally, per_head

HEADS, LAYERS, WIDTH = 4, 2, 6
COUNTED = (
    *("chance", "links", "pairs", "linked", "sentences", "rows", "rows_share", "query", "key", "text"),
    *("best_offset", "offset_value", "focus_offset", "focus_offset_value"),
)
"""What is counted, and so has no rounding."""


def layer_of(length: int, causal: bool, back: int | None, seed: int) -> tuple[LayerVectors, torch.Tensor]:
    """A layer with two groups of heads, and its weights by the formula in float64."""
    draw = torch.Generator().manual_seed(seed)
    queries, keys = (2 * torch.randn(count, length, WIDTH, generator=draw) for count in (HEADS, 2))
    layer = LayerVectors(queries, keys, torch.zeros(HEADS, length), 0.4, None, back, 0 if causal else None)
    scores = queries.double() @ keys.double().repeat_interleave(HEADS // 2, 0).mT * 0.4
    ahead = torch.arange(length) - torch.arange(length)[:, None]
    hidden = (ahead > (0 if causal else length)) | (-ahead > (length if back is None else back))
    layer = LayerVectors(queries, keys, normalizers_of(layer), 0.4, None, back, 0 if causal else None)
    return layer, scores.masked_fill(hidden, -torch.inf).softmax(-1).float()


def in_blocks(statistic, reading, frame, layers):
    observe = long_observer(reading, frame, {"it": statistic})
    for number, layer in enumerate(layers):
        observe(number, layer)
    return statistic


TEXTS = st.fixed_dictionaries(
    {
        "words": st.integers(1, 40),
        "framed": st.booleans(),
        "causal": st.booleans(),
        "back": st.none() | st.integers(1, 30),
        "null": st.sampled_from(["first", "special", "none", (0, -1), (2,)]),
        "seed": st.integers(0, 999),
    }
)


@settings(max_examples=12, phases=[Phase.generate])  # a smaller example takes minutes to find
@given(text=TEXTS, elements=st.integers(1, 4000), block=st.integers(1, 4000))
def test_every_statistic_is_that_of_the_whole_map(text, elements, block, sample, labels):
    reading = sample.reading(random.Random(text["seed"]), 5, text["words"], text["framed"])
    made = [layer_of(len(reading), text["causal"], text["back"], text["seed"] + layer) for layer in range(LAYERS)]
    layers, weights = [layer for layer, _ in made], torch.stack([weights for _, weights in made]).unsqueeze(1)
    frame = sample.frame([reading], weights, text["causal"], text["null"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(showing.PART_ELEMENTS, "cpu", elements)
        patch.setattr(vectors, "BLOCK", block)
        for name, kind in STATISTICS.items():
            whole = sample.fed(kind.empty(frame), [reading], weights, frame)
            found = in_blocks(kind.empty(frame), reading, frame, layers)
            if kind.second_pass is not None:
                # of the same means: what lies near its mean has no certain sign
                second = kind.second_pass
                found = in_blocks(second.after(whole, frame), reading, frame, layers)
                whole = sample.fed(second.after(whole, frame), [reading], weights, frame)
            expected = whole.result()
            if name == "exemplars":  # of pairs with the same weight any may be the largest
                expected = same_weight_same_pair(found.result(), expected, weights)
            assert_same(found.result(), expected, labels[name])
        found, whole = RestingHeads(frame), RestingHeads(frame)
        in_blocks(found, reading, frame, layers)
        sample.fed(whole, [reading], weights, frame)
        assert found.counts[5].tolist() == whole.counts[5].tolist()


def same_weight_same_pair(found: pd.DataFrame, expected: pd.DataFrame, weights: torch.Tensor) -> pd.DataFrame:
    """What is expected, with the pair that was found where that has the same weight in the whole map."""
    taken = expected.copy()
    for row in range(min(len(found), len(expected))):
        pairs = [
            tuple(int(table[column].iloc[row]) for column in ("layer", "head", "query", "key"))
            for table in (found, expected)
        ]
        first, second = (float(weights[layer, 0, head, query, key]) for layer, head, query, key in pairs)
        if abs(first - second) < 1e-6:
            pair = found.iloc[row].copy()
            pair["value"] = expected["value"].iloc[row]
            taken.iloc[row] = pair
    return taken


def assert_same(found: pd.DataFrame, expected: pd.DataFrame, keys: list[str]) -> None:
    """Counts exactly, shares of attention within rounding."""
    # what is divided by nothing is not a number or without end, as rounding has it
    tables = [table.replace([np.inf, -np.inf], np.nan).set_index(keys).sort_index() for table in (found, expected)]
    pd.testing.assert_frame_equal(*tables, rtol=1e-5, atol=1e-5)
    for column in set(COUNTED) & set(tables[0]):
        pd.testing.assert_series_equal(tables[0][column], tables[1][column], check_exact=True)


@pytest.mark.parametrize("causal", [True, False])
def test_cases_of_roles_are_those_of_the_whole_map(causal, sample, monkeypatch):
    monkeypatch.setitem(showing.PART_ELEMENTS, "cpu", 300)
    reading = sample.reading(random.Random(3), 0, 30, False)
    layer, weights = layer_of(len(reading), causal, None, 8)
    weights = weights[None, None]
    frame = sample.frame([reading], weights, causal, "first")
    roles = ["previous token", "next token", "same token", "repeated token", "induction (what followed last time)"]
    roles += [f"{way} {TAG_NAMES[tag]}" for way in ("to", "from") for tag in frame.tags]
    roles += [name for one in frame.relations for name in (f"{one} → its head", f"head → its {one}")]
    assert len(roles) > len(ROLE_KINDS) // 2
    for role in roles:
        table = pd.DataFrame({"layer": 0, "head": range(HEADS), "role": [role] * HEADS})
        found = in_blocks(RoleExemplars.after(table, frame), reading, frame, [layer]).state()
        whole = sample.fed(RoleExemplars.after(table, frame), [reading], weights, frame).state()
        assert_same(*map(RoleExemplars.table, (found, whole)), ["layer", "head", "rank"])


def test_what_needs_the_whole_map_is_refused_by_its_name(sample):
    @dataclass
    class OfMaps(RatioStatistic):
        """One that says nothing of how it reads, as those of users before there were long texts."""

        mass: Tally = per_head()

    reading = sample.reading(random.Random(0), 0, 4, False)
    frame = sample.frame([reading], torch.zeros(1, 1, 1, 4, 4), True, "first")
    with pytest.raises(BadInput, match=r"^of maps needs the map of a whole layer, which a text of \d+ tokens is"):
        long_observer(reading, frame, {"distance": STATISTICS["distance"].empty(frame), "of maps": OfMaps.empty(frame)})
