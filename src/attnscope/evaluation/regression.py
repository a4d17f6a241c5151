"""Quadratic regression of scores on valence, with orthogonal polynomials: the only file that imports statsmodels."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from ..errors import BadInput
from .polynomials import OrthogonalPolynomials

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
