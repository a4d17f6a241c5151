"""The concordance coefficient, against its formula in plain loops."""

import math
from itertools import chain
from random import Random

import pytest

from attnscope.errors import BadInput
from attnscope.reproduce.wu2020.stories import concordance, concordance_of_stories


def naive(x: list[float], y: list[float]) -> float:
    """Eq. 15 as it is written, with the correlation in it."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    deviation_x = math.sqrt(sum((value - mean_x) ** 2 for value in x) / len(x))
    deviation_y = math.sqrt(sum((value - mean_y) ** 2 for value in y) / len(y))
    shared = sum((one - mean_x) * (other - mean_y) for one, other in zip(x, y, strict=True)) / len(x)
    correlation = shared / (deviation_x * deviation_y)
    return 2 * correlation * deviation_x * deviation_y / (deviation_x**2 + deviation_y**2 + (mean_x - mean_y) ** 2)


def series(dice: Random, length: int) -> tuple[list[float], list[float]]:
    one = [dice.gauss(0, 1) for _ in range(length)]
    return one, [value + dice.gauss(0.2, 0.7) for value in one]


def test_it_is_the_formula() -> None:
    dice = Random(0)
    for length in (2, 3, 17):
        one, other = series(dice, length)
        assert concordance(one, other) == pytest.approx(naive(one, other))
        assert concordance(other, one) == pytest.approx(concordance(one, other))
        assert concordance(one, one) == pytest.approx(1)
        assert concordance(one, [-value for value in one]) >= -1


def test_a_shift_and_a_stretch_lower_it_and_a_flat_series_has_none_in_common() -> None:
    one = [1.0, 2.0, 4.0]
    assert concordance(one, [value + 3 for value in one]) < 0.3
    assert concordance(one, [5 * value for value in one]) < 0.6
    assert concordance(one, [2.0, 2.0, 2.0]) == 0
    assert math.isnan(concordance([2.0, 2.0], [2.0, 2.0]))


def test_stories_one_by_one_and_as_one() -> None:
    dice = Random(1)
    pairs = [series(dice, length) for length in (4, 9, 6)]
    said, meant = ([pair[side] for pair in pairs] for side in (0, 1))
    found = concordance_of_stories(said, meant)
    each = [naive(*pair) for pair in pairs]
    assert found.each == pytest.approx(each)
    assert found.mean == pytest.approx(sum(each) / 3)
    assert found.deviation == pytest.approx(math.sqrt(sum((value - found.mean) ** 2 for value in each) / 3))
    assert found.overall == pytest.approx(naive([*chain(*said)], [*chain(*meant)]))


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(BadInput, match="same length"):
        concordance([1.0], [1.0, 2.0])
    with pytest.raises(BadInput, match="as many of both"):
        concordance_of_stories([], [])
