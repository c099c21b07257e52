"""Logarithms to base ten in prose: the factors that they stand for."""

from __future__ import annotations

import numpy as np

from bnbook.claims.words import format_number
from bnbook.intervals import Interval, mean_level


def factor(values: np.ndarray, _spec: str) -> Interval:
    """Ten to the power of the mean of values (S,), and of the ends of its interval."""
    middle, low, high = (10.0**edge for edge in mean_level(values))
    return middle, low, high


def power(values: np.ndarray, spec: str) -> str:
    """The same without its interval."""
    return format_number(float(10.0 ** values.mean()), spec)
