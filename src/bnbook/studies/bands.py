"""A line with its band over the seeds, as figures draw it: (S, X) -> (1, 3, X), low, middle, high."""

from __future__ import annotations

import numpy as np

from bookpress.intervals import mean_and_interval

LARGEST = 1e200  # what an overflow is drawn as: a logarithmic axis still has room above it


def arithmetic(values: np.ndarray) -> np.ndarray:
    """Mean with its 95 % interval; a diverged seed makes it NaN."""
    middle, half = mean_and_interval(values)
    return np.stack([middle - half, middle, middle + half])[None]


def geometric(values: np.ndarray) -> np.ndarray:
    """Geometric mean with the 95 % interval of the logarithms; NaN where a value is no positive number."""
    values = np.asarray(values, dtype=float)
    kept = np.isfinite(values) & (values > 0)
    middle, half = mean_and_interval(np.log(np.where(kept, values, 1.0)))
    half = np.where(kept.all(0), half, np.nan)
    middle = np.where(kept.all(0), middle, np.nan)
    with np.errstate(over="ignore"):
        return np.minimum(np.exp([middle - half, middle, middle + half]), LARGEST)[None]


def quartiles(values: np.ndarray) -> np.ndarray:
    """Median and middle half over the seeds that still train; an overflow counts as infinite."""
    values = np.minimum(np.asarray(values, dtype=float), LARGEST)
    found = np.full((3, values.shape[1]), np.nan)
    alive = np.isfinite(values).any(0)
    found[:, alive] = np.nanquantile(values[:, alive], (0.25, 0.5, 0.75), axis=0)
    return found[None]
