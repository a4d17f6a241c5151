"""Orthogonal polynomials against what R prints and against what defines them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.errors import BadInput
from attnscope.evaluation.regression import OrthogonalPolynomials

SECOND_IN_R = [0.52223297, 0.17407766, -0.08703883, -0.26111648, -0.34815531]
"""The first half of the second column of `poly(1:10, 2)`; the other half is its mirror image."""


def test_they_are_those_of_r():
    points = np.arange(1.0, 11.0)
    first, second = OrthogonalPolynomials.of(points).columns(points).T
    np.testing.assert_allclose(first, np.arange(-4.5, 5) / np.sqrt(82.5), atol=1e-12)
    np.testing.assert_allclose(second, SECOND_IN_R + SECOND_IN_R[::-1], atol=5e-9)


def test_its_numbers_are_those_r_keeps():
    """`attr(poly(1:10, 2), "coefs")`: alpha 5.5 5.5, norm2 1 10 82.5 528."""
    made = OrthogonalPolynomials.of(np.arange(1.0, 11.0))
    np.testing.assert_allclose(made.centres, [5.5, 5.5])
    np.testing.assert_allclose(made.norms, [10, 82.5, 528])


@given(st.lists(st.floats(-9, 9).map(lambda number: round(number, 2)), min_size=4, max_size=40, unique=True))
def test_columns_are_orthonormal_and_begin_upwards(numbers):
    points = np.array(numbers)
    made = OrthogonalPolynomials.of(points)
    design = np.column_stack([np.ones_like(points) / np.sqrt(len(points)), made.columns(points)])
    np.testing.assert_allclose(design.T @ design, np.eye(3), atol=1e-6)
    # far outside, the sign is that of the leading coefficient
    assert (made.columns(np.array([1e6])) > 0).all()
    # a QR decomposition spans the same columns, up to the sign that it leaves open
    spanned = np.linalg.qr(np.vander(points, 3, increasing=True))[0]
    np.testing.assert_allclose(np.abs((spanned * design).sum(0)), 1, atol=1e-6)


def test_new_points_lie_on_the_same_polynomials():
    points = np.array([1.0, 2.0, 4.0, 7.0, 7.5])
    made = OrthogonalPolynomials.of(points, degree=3)
    for degree, column in enumerate(made.columns(points).T, 1):
        expected = np.polyval(np.polyfit(points, column, degree), [0.0, 3.0, 11.0])
        np.testing.assert_allclose(made.columns(np.array([0.0, 3.0, 11.0]))[:, degree - 1], expected, atol=1e-8)


def test_too_few_different_points_are_refused():
    with pytest.raises(BadInput, match="need 3 different values, and there are 2"):
        OrthogonalPolynomials.of(np.array([1.0, 1.0, 2.0]))
    with pytest.raises(BadInput, match="at least 1"):
        OrthogonalPolynomials.of(np.array([1.0, 2.0]), degree=0)
