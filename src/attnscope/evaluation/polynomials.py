"""Orthogonal polynomials of data: what R's `poly(x, 2)` makes of it, signs included."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from ..errors import BadInput


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
