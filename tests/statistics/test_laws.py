"""What holds for every statistic, whatever it measures: found by its line in STATISTICS."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnscope.engine import load_checkpoint, save_checkpoint
from attnscope.errors import BadInput
from attnscope.statistics import STATISTICS, merge_all, with_errors

SIZES = [12, 3, 1, 14, 11, 2, 9, 12]


def fed(sample, statistic, readings, weights, frame):
    """One sentence at a time: padding changes the last digit of float32 sums, and this is about merging."""
    for number, reading in enumerate(readings):
        sample.fed(statistic, [reading], weights[:, [number]], frame)
    return statistic


@pytest.fixture(scope="session")
def whole(sample):
    """A corpus of eight sentences, two of them alike, and every statistic over all of it."""
    readings, weights, _ = sample.corpus(1, SIZES, framed=False, causal=True)
    frame = sample.frame(readings, weights, True, "first")
    found = {}
    for name, kind in STATISTICS.items():
        found[name] = fed(sample, kind.empty(frame), readings, weights, frame)
        if kind.second_pass is not None:
            found[name] = fed(sample, kind.second_pass.after(found[name], frame), readings, weights, frame)
    return lambda: (readings, weights, frame, found)  # a function, as hypothesis prints its arguments in full


def part(sample, whole, name, chosen):
    """A statistic that has seen the chosen sentences, with only their labels in its frame."""
    readings, weights, frame, _ = whole()
    kind = STATISTICS[name]
    few = [readings[number] for number in chosen]
    own = sample.frame(few, weights, True, "first")
    if kind.second_pass is None:
        empty = kind.empty(own)
    else:
        first = fed(sample, kind.empty(frame), readings, weights, frame)
        empty = kind.second_pass.after(first, own)
    return fed(sample, empty, few, weights[:, chosen], own)


def same(ours: pd.DataFrame, theirs: pd.DataFrame, keys: list[str]) -> None:
    ours, theirs = (table.sort_values(keys, ignore_index=True) for table in (ours, theirs))
    assert list(ours.columns) == list(theirs.columns)
    pd.testing.assert_frame_equal(ours, theirs, check_exact=False, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", STATISTICS)
@settings(max_examples=10)
@given(
    order=st.permutations(range(len(SIZES))),
    cuts=st.sets(st.integers(1, len(SIZES) - 1), max_size=4),
    turns=st.permutations(range(5)),
)
def test_parts_merged_in_any_split_and_order_are_the_whole(name, order, cuts, turns, sample, whole, labels):
    edges = [0, *sorted(cuts), len(SIZES)]
    parts = [order[start:stop] for start, stop in pairwise(edges)]
    turns = [turn for turn in turns if turn < len(parts)]
    joined = merge_all([part(sample, whole, name, list(parts[turn])) for turn in turns])
    same(joined.result(), whole()[3][name].result(), labels[name])


@pytest.mark.parametrize("name", STATISTICS)
def test_a_state_survives_the_disk_bit_by_bit(name, whole, tmp_path):
    statistic = whole()[3][name]
    save_checkpoint(tmp_path / "state.safetensors", statistic.state())
    again = type(statistic).from_state(load_checkpoint(tmp_path / "state.safetensors"))
    pd.testing.assert_frame_equal(again.result(), statistic.result(), check_exact=True)


def test_a_state_of_another_version_of_a_statistic_is_refused(whole):
    state = whole()[3]["distance"].state()
    state["ahead"] = state.pop("behind")
    with pytest.raises(BadInput, match=r"saved of Distance does not fit it any more \(ahead, behind\)"):
        STATISTICS["distance"].from_state(state)


@pytest.mark.parametrize("name", STATISTICS)
def test_nothing_merged_changes_nothing(name, whole):
    statistic = whole()[3][name]
    before = statistic.result()
    statistic.merge(statistic.blank())
    pd.testing.assert_frame_equal(statistic.result(), before)


@pytest.mark.parametrize("name", STATISTICS)
def test_the_table_is_tidy_and_has_an_error_beside_every_value(name, whole, sample, labels):
    groups = [part(sample, whole, name, chosen) for chosen in ([0, 1, 2], [3, 4], [5, 6, 7])]
    table = with_errors(groups, lambda statistic: statistic.result())
    assert {"value", "error", *labels[name]} <= set(table.columns)
    assert not table.duplicated(labels[name]).any()
    if name != "exemplars":
        # not known where one group has all there is: the longest distances, say
        known = table["error"].notna()
        assert known.mean() > 0.5
        assert (table.loc[known, "error"] >= 0).all()
        assert table["error"].max() > 0


# the largest weight of a corpus is a fact about it, not an estimate; a second pass would need its first once more
ESTIMATES = [name for name, kind in STATISTICS.items() if kind.second_pass is None and name != "exemplars"]


@pytest.mark.parametrize("name", ESTIMATES)
def test_the_error_is_the_jackknife_over_groups(name, whole, sample, labels):
    """Worked out here with nothing but fresh statistics over all sentences but one group."""
    chosen = [[0, 1, 2], [3, 4], [5, 6, 7]]
    table = with_errors([part(sample, whole, name, one) for one in chosen], lambda statistic: statistic.result())
    keys = labels[name]
    left_out = []
    for one in chosen:
        rest = [number for number in range(len(SIZES)) if number not in one]
        left_out.append(part(sample, whole, name, rest).result().set_index(keys)["value"])
    rows = pd.MultiIndex.from_frame(table[keys]) if len(keys) > 1 else table[keys[0]]
    values = pd.concat(left_out, axis=1).reindex(rows)
    # a label that a part has not seen has the share 0 there; a distance that it has not seen is not known
    values = values if name == "dependency_by_distance" else values.fillna(0.0)
    spread = np.sqrt(2 / 3 * ((values.T - values.mean(axis=1)) ** 2).sum(axis=0, skipna=False))
    complete = values.notna().all(axis=1).to_numpy()
    np.testing.assert_allclose(table["error"][complete], spread[complete], rtol=1e-7, atol=1e-12)
