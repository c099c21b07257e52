"""One unit behind batch norm: the normalized values and what a gradient meets on the way back.

Everything is written with + - * / and `@`, so that arrays of `fractions.Fraction` (dtype object) pass through
exactly. Letters: m data points; y (m,) the unit's values; ŷ (m,) the normalized ones; g (m,) the gradient
that comes from above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from bnbook.errors import BnbookError

Number = Any  # a float, or a Fraction where the check is exact


@dataclass(frozen=True)
class Unit:
    """One normalized unit: ŷ = (y - mean) / sigma."""

    y_hat: np.ndarray  # (m,)
    sigma: Number  # sqrt(variance + eps)
    count: int  # what the sum of squares was divided by: m (biased variance) or m - 1

    @property
    def m(self) -> int:
        return len(self.y_hat)


def exact(*values: Any) -> np.ndarray:
    """A vector of fractions, for counter-examples: exact(1, "1/2")."""
    return np.array([Fraction(value) for value in values], dtype=object)


def square_root(value: Number) -> Number:
    """√value; of a Fraction the exact root, BnbookError where it has none."""
    if not isinstance(value, Fraction):
        return math.sqrt(value)
    above, below = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if above**2 != value.numerator or below**2 != value.denominator:
        raise BnbookError(f"{value} has no rational square root; choose other numbers, or floats")
    return Fraction(above, below)


def normalize(y: np.ndarray, eps: Number = 0, unbiased: bool = False) -> Unit:
    """ŷ = (y - μ) / σ with σ² = Σ (y - μ)² / m + eps; with `unbiased` the sum is divided by m - 1.

    Errors: BnbookError for fewer than two values or for a unit without spread where eps = 0.
    """
    if len(y) < 2:
        raise BnbookError(f"{len(y)} values of a unit; expected a batch of at least 2")
    centred = y - y.mean()
    count = len(y) - 1 if unbiased else len(y)
    variance = (centred @ centred) / count + eps
    if not variance > 0:
        raise BnbookError("a unit without spread and eps = 0; expected values that differ, or eps > 0")
    sigma = square_root(variance)
    return Unit(centred / sigma, sigma, count)


def project(v: np.ndarray, unit: Unit) -> np.ndarray:
    """P v = v - mean(v) - ŷ <ŷ, v> / m, for v (m,) or columns (m, K): what batch norm leaves of a vector.

    With eps = 0 it is the orthogonal projection off 1 and ŷ. With eps > 0 the part along ŷ is not removed but
    multiplied by eps / σ²; with the unbiased variance m - 1 stands for the last m, and P is a projection
    again.
    """
    return v - v.mean(0) - np.multiply.outer(unit.y_hat, unit.y_hat @ v) / unit.count


def gradient(g: np.ndarray, unit: Unit, gamma: Number) -> np.ndarray:
    """∂L̂/∂y = (γ / σ) P g from g = ∂L/∂z (NeurIPS Fact C.1)."""
    return gamma * project(g, unit) / unit.sigma


def jacobian(unit: Unit) -> np.ndarray:
    """∂ŷ^(b)/∂y^(k) = (I[b=k] - 1/m - ŷ^(b) ŷ^(k) / m) / σ, (m, m) (NeurIPS and v1 Fact C.2)."""
    one = unit.sigma / unit.sigma  # a fraction where the unit is exact
    return project(np.identity(unit.m, dtype=int) * one, unit) / unit.sigma
