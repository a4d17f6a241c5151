import math

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from attnscope.errors import BadInput
from attnscope.lab.probes.top_agreement import (
    _check,
    chance_agreement,
    places,
    rank_agreement,
    shuffled_agreement,
    tied_rows,
    top_agreement,
)


def everywhere(rows: int, positions: int) -> torch.Tensor:
    return torch.ones(rows, positions, dtype=torch.bool)


def ragged(seed: int, rows: int = 200, longest: int = 60) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two tables of few distinct values, so that ties are common, and their mask."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, longest + 1, rows)
    real = torch.from_numpy(np.arange(longest) < lengths[:, None])
    first, second = (torch.from_numpy(draw.integers(0, 12, (rows, longest)) / 7.0).float() for _ in range(2))
    return first, second, real


def by_the_book(first: list[float], second: list[float]) -> bool:
    """Equation 10, word by word."""
    highest = first.index(max(first))
    above = [value for value in second if value > second[highest]]
    return len(above) * 20 < len(second)


def test_it_is_equation_10_on_rows_of_every_length_with_ties() -> None:
    first, second, real = ragged(0)
    lengths = real.sum(-1).tolist()
    expected = [
        by_the_book(one[:length], other[:length])
        for one, other, length in zip(first.tolist(), second.tolist(), lengths, strict=True)
    ]
    assert top_agreement(first, second, real).tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_ties_worked_by_hand() -> None:
    # two equal highest in u: the first counts, and it is the second highest of v
    first = torch.tensor([[0.0, 5.0, 5.0]])
    assert top_agreement(first, torch.tensor([[0.0, 1.0, 2.0]]), everywhere(1, 3)).tolist() == [False]
    assert top_agreement(first, torch.tensor([[0.0, 2.0, 1.0]]), everywhere(1, 3)).tolist() == [True]
    # equal in v is not above
    assert top_agreement(first, torch.tensor([[2.0, 2.0, 0.0]]), everywhere(1, 3)).tolist() == [True]


def test_a_constant_v_agrees_with_everything_and_is_told_as_tied() -> None:
    first, _, real = ragged(1)
    constant = torch.full_like(first, 0.25)
    assert top_agreement(first, constant, real).all()
    # one position alone is no tie
    assert torch.equal(tied_rows(constant, real), real.sum(-1) > 1)


def test_the_padding_has_no_say() -> None:
    first, second, real = ragged(2)
    noise = torch.randn(first.shape, generator=torch.Generator().manual_seed(0)) * 100
    dirty = [torch.where(real, values, noise) for values in (first, second)]
    assert torch.equal(top_agreement(first, second, real), top_agreement(*dirty, real))
    assert torch.equal(tied_rows(second, real), tied_rows(dirty[1], real))
    assert torch.equal(
        shuffled_agreement(first, second, real, seed=5), shuffled_agreement(dirty[0], dirty[1], real, seed=5)
    )
    torch.testing.assert_close(
        rank_agreement(first, second, real), rank_agreement(dirty[0], dirty[1], real), equal_nan=True
    )


@pytest.mark.parametrize(("length", "top"), [(1, 1), (19, 1), (20, 1), (21, 2), (40, 2), (41, 3), (140, 7), (399, 20)])
def test_the_top_is_a_twentieth_rounded_up(length: int, top: int) -> None:
    real = everywhere(1, length)
    assert places(real).tolist() == [top]
    assert chance_agreement(real).tolist() == [top / length]
    # the very definition: k positions above is still in the top if k < L / 20
    second = -torch.arange(length, dtype=torch.float32)[None]
    hits = [
        top_agreement(torch.nn.functional.one_hot(torch.tensor([at]), length).float(), second, real).item()
        for at in range(length)
    ]
    assert hits == [at * 20 < length for at in range(length)]


def test_the_shuffled_baseline_is_near_the_exact_one() -> None:
    draw = torch.Generator().manual_seed(3)
    rows, longest = 6000, 50
    real = torch.arange(longest) < torch.randint(1, longest + 1, (rows, 1), generator=draw)
    first, second = (torch.rand(rows, longest, generator=draw) for _ in range(2))
    exact = chance_agreement(real)
    error = math.sqrt((exact * (1 - exact)).sum().item()) / rows
    found = shuffled_agreement(first, first, real, seed=0).double().mean().item()
    assert abs(found - exact.mean().item()) < 4 * error
    assert torch.equal(shuffled_agreement(first, second, real, 7), shuffled_agreement(first, second, real, 7))


def test_ties_matter_only_at_the_border() -> None:
    length = 40  # two places
    falling = -torch.arange(length, dtype=torch.float32)
    inside, across, below = (falling.clone() for _ in range(3))
    inside[1] = inside[0]
    across[2] = across[1]
    below[3] = below[2]
    tables = torch.stack([falling, inside, across, below])
    assert tied_rows(tables, everywhere(4, length)).tolist() == [False, False, True, False]


def test_kendall_is_scipys() -> None:
    first, second, real = ragged(4)
    found = rank_agreement(first, second, real)
    for row, length in enumerate(real.sum(-1).tolist()):
        expected = (
            kendalltau(first[row, :length].numpy(), second[row, :length].numpy()).statistic if length > 1 else math.nan
        )
        assert found[row].item() == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_kendall_of_what_ranks_nothing_is_no_number() -> None:
    tables = torch.tensor([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
    assert rank_agreement(tables, tables.flip(0), everywhere(2, 3)).isnan().all()


def test_bad_input_is_told() -> None:
    fine = torch.ones(1, 2)
    with pytest.raises(BadInput, match="finite"):
        top_agreement(torch.tensor([[math.nan, 1.0]]), fine, everywhere(1, 2))
    with pytest.raises(BadInput, match="at the right"):
        top_agreement(fine, fine, torch.tensor([[False, True]]))
    with pytest.raises(BadInput, match="share"):
        top_agreement(fine, fine, everywhere(1, 2), share=0)


@pytest.mark.parametrize(
    ("second", "real"),
    [
        (torch.zeros(2, 2), everywhere(2, 3)),
        (torch.zeros(2, 3), everywhere(1, 3)),
        (torch.zeros(2, 3), torch.ones(2, 3)),
    ],
)
def test_tables_that_do_not_fit_are_told(second: torch.Tensor, real: torch.Tensor) -> None:
    with pytest.raises(BadInput, match=r"Agreement takes two tables .*; these are \(2, 3\), "):
        _check(torch.zeros(2, 3), second, real)
