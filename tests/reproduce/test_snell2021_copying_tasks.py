"""Sequences to copy: each task keeps its law, and the same seed and step give the same sequences."""

import numpy as np
import pytest
import torch

from attnscope.errors import BadInput
from attnscope.reproduce.snell2021.copying import CopyingTask, copying_task

ROWS = 200


def words_of(task: CopyingTask, step: int = 0) -> list[list[int]]:
    """The words of each source as numbers from 1, read through the vocabulary."""
    source, _, _ = task.batch(ROWS, seed=5, step=step)
    return [[int(word) for word in task.vocabulary.decode(row[:-1])] for row in source.tolist()]


@pytest.mark.parametrize("name", ["same", "choice", "mixture", "reordered"])
def test_sources_end_and_outputs_begin_and_end(name):
    task = copying_task(name)
    source, read, right = task.batch(ROWS, seed=5, step=1)
    assert source.shape == read.shape == right.shape == (ROWS, 41)
    begin, end = task.vocabulary.number("bos"), task.vocabulary.number("eos")
    assert (source[:, -1] == end).all()
    assert (right[:, -1] == end).all()
    assert (read[:, 0] == begin).all()
    assert torch.equal(read[:, 1:], right[:, :-1])
    assert torch.equal(right[:, :-1], source[:, :-1][:, torch.from_numpy(task.order)])
    assert all(len(set(row)) == 40 for row in words_of(task))


def test_the_same_forty_are_always_the_same_set_in_any_order():
    rows = words_of(copying_task("same"))
    assert all(set(row) == set(range(1, 41)) for row in rows)
    counts = np.zeros((40, 40))
    for row in rows:
        counts[np.arange(40), np.array(row) - 1] += 1
    # Each word at each place: 200 draws of 1 in 40; five standard deviations hold for all 1,600 cells.
    assert counts.max() < 5 + 5 * np.sqrt(200 / 40)


def test_forty_of_sixty_differ_and_use_all_words():
    rows = words_of(copying_task("choice"))
    assert set().union(*rows) == set(range(1, 61))
    assert len({frozenset(row) for row in rows}) == ROWS


def test_a_mixture_has_two_disjoint_sets():
    rows = words_of(copying_task("mixture"))
    found = {frozenset(row) for row in rows}
    assert found == {frozenset(range(1, 41)), frozenset(range(41, 81))}
    first = sum(max(row) <= 40 for row in rows)
    assert 60 < first < 140


def test_a_fixed_order_is_the_same_for_every_sequence_and_no_copy():
    task, copied = (copying_task(name) for name in ("reordered", "choice"))
    assert sorted(task.order) == list(range(40))
    assert not np.array_equal(task.order, np.arange(40))
    assert np.array_equal(copied.order, np.arange(40))
    # section 6.2 compares the two on the same sources
    assert torch.equal(task.batch(ROWS, 5, 0)[0], copied.batch(ROWS, 5, 0)[0])


def test_sequences_depend_on_seed_and_step_alone():
    task = CopyingTask(6, 9)
    first = task.batch(4, seed=1, step=2)
    task.batch(4, seed=9, step=9)
    torch.manual_seed(0)
    np.random.default_rng(0).random()
    assert all(torch.equal(*pair) for pair in zip(first, CopyingTask(6, 9).batch(4, seed=1, step=2), strict=True))
    for other in ({"seed": 1, "step": 3}, {"seed": 2, "step": 2}):
        assert not torch.equal(first[0], task.batch(4, **other)[0])


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(BadInput, match="41 is not in 1 to 40"):
        CopyingTask(41, 40)
    with pytest.raises(BadInput, match="at least 1 set"):
        CopyingTask(4, 4, sets=0)
    with pytest.raises(BadInput, match="no copying task"):
        copying_task("other")
