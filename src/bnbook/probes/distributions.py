"""Shape and movement of what a nonlinearity receives, out of the histograms and moments that a training
keeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bnbook.errors import BnbookError
from bnbook.probes.activations import EDGES


@dataclass(frozen=True)
class Shape:
    """Moments of histograms (..., bins), the values of a bin taken at its middle; NaN where a unit has no
    spread."""

    mean: np.ndarray  # (...)
    variance: np.ndarray  # (...), divided by the count
    skewness: np.ndarray  # (...), E[z³] of z = (y - mean) / √variance; 0 for a Gaussian
    excess_kurtosis: np.ndarray  # (...), E[z⁴] - 3; 0 for a Gaussian
    normal_distance: (
        np.ndarray
    )  # (...), largest |F - Φ| at the bins' edges, Φ with the same mean and variance; in [0, 1]


def shape(histogram: np.ndarray, edges: np.ndarray = EDGES) -> Shape:
    """How far histograms (..., bins) of shares are from a Gaussian of the same mean and variance.

    Skewness and excess kurtosis do not change under y -> a y + b, a > 0, so no normalizer that works unit by
    unit changes them. Where a unit does not vary, or its histogram is NaN (a diverged run), they are NaN.
    """
    from scipy.special import ndtr

    histogram = np.asarray(histogram, dtype=float)
    middles = _middles(histogram, edges)
    mean = histogram @ middles
    away = middles - mean[..., None]
    variance, third, fourth = ((histogram * away**power).sum(-1) for power in (2, 3, 4))
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = np.sqrt(np.where(variance > 0, variance, np.nan))
        normal = ndtr((edges[1:-1] - mean[..., None]) / deviation[..., None])
        distance = np.abs(np.cumsum(histogram, axis=-1)[..., :-1] - normal).max(-1)
        return Shape(mean, variance, third / deviation**3, fourth / deviation**4 - 3, distance)


def movement(histogram: np.ndarray, edges: np.ndarray = EDGES) -> np.ndarray:
    """Wasserstein distance between successive histograms, ∫ |F - F'| dy, (..., T, bins) -> (..., T - 1).

    In the unit of the values: the mean distance by which probability has to be moved to turn one into the
    next.
    """
    histogram = np.asarray(histogram, dtype=float)
    below = np.cumsum(histogram, axis=-1)[..., :-1]
    return (np.abs(np.diff(below, axis=-2)) * np.diff(_middles(histogram, edges))).sum(-1)


def spread(variance: np.ndarray) -> np.ndarray:
    """How unequal the variances of units are, (..., units) -> (...): half of what lies between 16 % and 84 %
    of ln v.

    For a log-normal distribution that is the standard deviation of ln v; 0 where all units have the same
    variance, ln 2 where the usual ones differ by a factor of two from the middle.
    """
    with np.errstate(divide="ignore"):
        low, high = np.quantile(np.log(np.maximum(variance, np.finfo(float).tiny)), (0.16, 0.84), axis=-1)
    return (high - low) / 2


def _middles(histogram: np.ndarray, edges: np.ndarray) -> np.ndarray:
    if histogram.shape[-1] != len(edges) - 1:
        raise BnbookError(
            f"a histogram of {histogram.shape[-1]} bins for {len(edges)} edges; expected one edge more "
            "than bins"
        )
    return (edges[1:] + edges[:-1]) / 2
