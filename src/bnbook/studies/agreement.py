"""How far measurements are from theory: the ratio of the two, where it is worst."""

from __future__ import annotations

import numpy as np

from bookpress.intervals import mean_and_interval


def furthest_from_one(ratios: np.ndarray) -> np.ndarray:
    """The column, (S,), of ratios (S, K) whose 95 % interval over the seeds reaches furthest from 1."""
    mean, half = mean_and_interval(ratios)
    return ratios[:, (np.abs(mean - 1) + half).argmax()]
