"""Quadratic regression of scores on valence, with orthogonal polynomials: the only file that imports statsmodels."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from ..errors import BadInput

# Orthogonal polynomials of data: what R's `poly(x, 2)` makes of it, signs included.


@dataclass(frozen=True, eq=False)
class OrthogonalPolynomials:
    """Polynomials of degree 1, 2, … that are orthogonal over some points, to each other and to the constant.

    Forsythe's recurrence (1957), P_{k+1} = (x - centre_k) P_k - (norm_k / norm_{k-1}) P_{k-1} with P_0 = 1, where
    norm_k is the sum of P_k² over the points. Each is divided by its length, so that its column has unit norm. Every
    P_k begins with +x^k: the sign is that of R, which a QR decomposition alone would leave open.
    """

    centres: tuple[float, ...]
    """R's `alpha`: for each degree, the mean of x weighted by the square of the polynomial below."""
    norms: tuple[float, ...]
    """R's `norm2` without its leading 1: the sum of squares of the polynomial of each degree, from 0 on."""

    @classmethod
    def of(cls, points: Float64[np.ndarray, " point"], degree: int = 2) -> "OrthogonalPolynomials":
        """The polynomials up to this degree for these points, of which more than `degree` must differ.

        >>> OrthogonalPolynomials.of(np.arange(1.0, 11.0)).columns(np.array([1.0, 10.0])).round(4).tolist()
        [[-0.4954, 0.5222], [0.4954, 0.5222]]
        """
        if degree < 1:
            raise BadInput(f"The degree of a polynomial is at least 1, not {degree}.")
        different = len(np.unique(points))
        if different <= degree:
            raise BadInput(
                f"Polynomials of degree {degree} need {degree + 1} different values, and there are {different}."
            )
        below, current = np.zeros_like(points), np.ones_like(points)
        centres: list[float] = []
        norms = [float(len(points))]
        for number in range(degree):
            centres.append(float(points @ current**2) / norms[-1])
            ratio = norms[-1] / norms[-2] if number else 0.0
            below, current = current, (points - centres[-1]) * current - ratio * below
            norms.append(float(current @ current))
        return cls(tuple(centres), tuple(norms))

    def columns(self, points: Float64[np.ndarray, " point"]) -> Float64[np.ndarray, "point degree"]:
        """The value of each polynomial at any points; at those it was made of, columns of unit norm."""
        below, current = np.zeros_like(points), np.ones_like(points)
        found = []
        for number, centre in enumerate(self.centres):
            ratio = self.norms[number] / self.norms[number - 1] if number else 0.0
            below, current = current, (points - centre) * current - ratio * below
            found.append(current / np.sqrt(self.norms[number + 1]))
        return np.stack(found, axis=1)


FEWEST = 4
"""Three coefficients leave no error to estimate from three points."""


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A fitted score = b0 + b1 P1(valence) + b2 P2(valence): R's `lm(score ~ poly(valence, 2))`.

    Wu, Nguyen & Ong 2020, Eq. 12. P1 and P2 are columns of unit norm, so the standard errors of b1 and b2 are both the
    residual standard deviation and b2 grows with the number of words: compare `t`, not `b2`, between studies.
    """

    words: int
    coefficients: tuple[float, float, float]
    """b0, b1 and b2."""
    errors: tuple[float, float, float]
    t: tuple[float, float, float]
    p: tuple[float, float, float]
    r_squared: float
    lowest: float
    """The range of valence that was fitted."""
    highest: float
    polynomials: OrthogonalPolynomials

    @property
    def vertex(self) -> float:
        """The valence where the parabola turns; NaN if it is a straight line."""
        _, b1, b2 = self.coefficients
        if b2 == 0:
            return math.nan
        first, second = self.polynomials.centres
        _, norm1, norm2 = self.polynomials.norms
        # b1/√norm1 + b2/√norm2 (2x - first - second) = 0
        return (first + second) / 2 - b1 / b2 * math.sqrt(norm2 / norm1) / 2

    @property
    def vertex_inside(self) -> bool:
        """Whether the parabola turns within the range of valence: if not, it only bends and is no U."""
        return self.lowest < self.vertex < self.highest

    def curve(self, valence: Float64[np.ndarray, " point"]) -> Float64[np.ndarray, " point"]:
        """The fitted score at any valence."""
        b0, b1, b2 = self.coefficients
        fitted: Float64[np.ndarray, " point"] = b0 + self.polynomials.columns(valence) @ np.array([b1, b2])
        return fitted

    def to_row(self) -> dict[str, Any]:
        """The figures as one row of a table."""
        row: dict[str, Any] = {"words": self.words}
        for number in range(3):
            row[f"b{number}"] = self.coefficients[number]
            row[f"b{number}_error"] = self.errors[number]
            row[f"b{number}_t"] = self.t[number]
            row[f"b{number}_p"] = self.p[number]
        return row | {
            "r_squared": self.r_squared,
            "vertex": self.vertex,
            "lowest": self.lowest,
            "highest": self.highest,
            "vertex_inside": self.vertex_inside,
        }


def quadratic(valence: Float64[np.ndarray, " word"], scores: Float64[np.ndarray, " scored"]) -> Quadratic:
    """Least squares of scores on a constant and both orthogonal polynomials of valence."""
    if len(valence) != len(scores):
        raise BadInput(f"There are {len(valence)} valences and {len(scores)} scores: each word has one of both.")
    if len(valence) < FEWEST:
        raise BadInput(f"A quadratic regression needs at least {FEWEST} words, and there are {len(valence)}.")
    if not (np.isfinite(valence).all() and np.isfinite(scores).all()):
        raise BadInput("Some of these valences or scores are not finite numbers.")
    polynomials = OrthogonalPolynomials.of(valence, 2)
    design = np.column_stack([np.ones_like(valence), polynomials.columns(valence)])
    fitted = statsmodels_api().OLS(scores, design).fit()
    return Quadratic(
        words=len(valence),
        coefficients=_three(fitted.params),
        errors=_three(fitted.bse),
        t=_three(fitted.tvalues),
        p=_three(fitted.pvalues),
        r_squared=float(fitted.rsquared),
        lowest=float(valence.min()),
        highest=float(valence.max()),
        polynomials=polynomials,
    )


def _three(values: Any) -> tuple[float, float, float]:
    first, second, third = (float(value) for value in values)
    return first, second, third


def statsmodels_api() -> Any:
    """The library, or the sentence that says how to have it."""
    try:
        import statsmodels.api as statsmodels
    except ImportError as error:
        raise BadInput("Regressions need statsmodels: pip install 'attnscope[lexicon]'.") from error
    return statsmodels
