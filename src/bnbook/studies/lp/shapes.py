"""Shapes and moments of what the VGG network's rectifiers receive, over its checkpoints; (S,) each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bnbook.probes import distributions
from bnbook.studies.lp.linear import lived

Arrays = dict[str, np.ndarray]


def of_arm(run: Arrays, layers: Sequence[int]) -> Arrays:
    """skewness, kurtosis: sizes, medians over units, layers and checkpoints; normal_distance: largest
    difference from a Gaussian's distribution function; variance_spread, variance_spread_start: half the range
    from 16 % to 84 % of ln v over units and layers, median over the checkpoints and before the first update;
    variance_start, variance_end: of the usual unit; mean_at_start: largest |mean| of a unit in its standard
    deviations before the first update; distance_moved: between checkpoints, not divided by a spread."""
    seen = distributions.shape(run["histogram"])
    units = np.concatenate([run[f"variance_{k}"] for k in layers], axis=-1)  # (S, E, units)
    means = np.concatenate([run[f"mean_{k}"] for k in layers], axis=-1)
    unequal = np.where(np.isfinite(units).all(-1), distributions.spread(units), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.abs(means[:, 0]) / np.sqrt(units[:, 0])
    return {
        "skewness": lived(np.abs(seen.skewness)),
        "kurtosis": lived(np.abs(seen.excess_kurtosis)),
        "normal_distance": lived(seen.normal_distance),
        "variance_spread": lived(unequal),
        "variance_spread_start": unequal[:, 0],
        "variance_start": np.median(units[:, 0], axis=-1),
        "variance_end": np.median(units[:, -1], axis=-1),
        "mean_at_start": np.nanmax(away, axis=-1),
        "distance_moved": lived(distributions.movement(np.moveaxis(run["histogram"], 1, 3))),
    }


def steadiness(moves: Mapping[str, np.ndarray], speeds: Mapping[str, np.ndarray]) -> float:
    """Rank correlation over networks of how little one moves with how fast it trains, means over seeds."""
    still = -np.array([moves[norm].mean() for norm in moves])
    fast = np.array([speeds[norm].mean() for norm in moves])
    return float(np.corrcoef(np.argsort(np.argsort(still)), np.argsort(np.argsort(fast)))[0, 1])
