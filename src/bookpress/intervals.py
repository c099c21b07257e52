"""Two-sided confidence intervals for what chapters record: per-seed means, ratios and shares of seeds.

Every function takes one value per seed, shape (S,), and returns (estimate, low, high). One seed has no
interval: it is (-inf, inf), which decides nothing. SciPy is imported where it is needed, and of it the special
functions alone, ten times as fast as its distributions: reading and judging claims stays fast.
"""

from __future__ import annotations

import math

import numpy as np

LEVEL = 0.95
Interval = tuple[float, float, float]


def student(values: np.ndarray, level: float = LEVEL) -> Interval:
    """Student's t interval of a mean, x̄ ± t s / √S with s² over S - 1 (Student 1908)."""
    from scipy.stats import t

    values = np.asarray(values, dtype=float)
    count, mean = values.size, float(values.mean())
    if count < 2:
        return mean, -math.inf, math.inf
    # Constant values have no spread; the rounding of their mean must not invent one.
    spread = 0.0 if np.ptp(values) == 0 else float(values.std(ddof=1))
    half = float(t.ppf((1 + level) / 2, count - 1)) * spread / math.sqrt(count)
    return mean, mean - half, mean + half


def of_mean(values: np.ndarray, level: float = LEVEL) -> Interval:
    """The interval of `student`, to the last bit, by t from SciPy's special functions; how that one is written
    is part of what a published run was measured with."""
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=float)
    count, mean = values.size, float(values.mean())
    if count < 2:
        return mean, -math.inf, math.inf
    spread = 0.0 if np.ptp(values) == 0 else float(values.std(ddof=1))
    half = float(stdtrit(count - 1, (1 + level) / 2)) * spread / math.sqrt(count)
    return mean, mean - half, mean + half


def geometric_ratio(a: np.ndarray, b: np.ndarray, level: float = LEVEL) -> Interval:
    """Geometric mean of the paired ratios a/b, with Student's interval of log a - log b; a, b > 0."""
    # type: ignore[return-value]
    return tuple(math.exp(edge) for edge in of_mean(np.log(a) - np.log(b), level))


def ratio_of_means(a: np.ndarray, b: np.ndarray, level: float = LEVEL) -> Interval:
    """Ratio r = mean(a)/mean(b) of paired values, linearised: r plus Student's interval of (a - r b)/mean(b).

    For a constant b (a theory without sampling error) it is exactly Student's interval of a/b.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    bottom = float(b.mean())
    ratio = float(a.mean()) / bottom
    _, low, high = of_mean((a - ratio * b) / bottom, level)
    return ratio, ratio + low, ratio + high


def share(values: np.ndarray, level: float = LEVEL) -> Interval:
    """Exact interval of a share of seeds, values 0 or 1 (Clopper and Pearson 1934)."""
    count, hits = len(values), float(np.sum(values))
    return (hits / count, *clopper_pearson(hits, count, level))


def clopper_pearson(hits: float, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Interval of a probability from the beta distribution's quantiles: it never covers less than stated.

    SciPy's `binomtest(...).proportion_ci("exact")` finds the same two numbers by search, 16 times as slowly.
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1 - tail))
    return low, high


def paired_shares(a: np.ndarray, b: np.ndarray, level: float = LEVEL) -> Interval:
    """Adjusted Wald interval of the difference of two paired shares (Bonett and Price 2012, equation 7).

    With n₁₀ seeds where only a is 1, n₀₁ where only b is: p = (n + 1)/(S + 2) for each, and
    p₁₀ - p₀₁ ± z √((p₁₀ + p₀₁ - (p₁₀ - p₀₁)²)/(S + 2)). Where all seeds agree it keeps a width; t does not.
    """
    from scipy.special import ndtri

    a, b = np.asarray(a), np.asarray(b)
    count = a.size
    only_a, only_b = np.sum(np.minimum(a, 1 - b)), np.sum(np.minimum(1 - a, b))
    p10, p01 = (only_a + 1) / (count + 2), (only_b + 1) / (count + 2)
    middle = p10 - p01
    half = ndtri((1 + level) / 2) * math.sqrt((p10 + p01 - middle**2) / (count + 2))
    return float(only_a - only_b) / count, max(-1.0, float(middle - half)), min(1.0, float(middle + half))


def is_share(*arrays: np.ndarray) -> bool:
    """Whether every value is 0 or 1: a share of seeds, for which Student's interval does not hold."""
    return all(np.isin(np.asarray(values, dtype=float), (0.0, 1.0)).all() for values in arrays)


def paired_difference(a: np.ndarray, b: np.ndarray, level: float = LEVEL) -> Interval:
    """Mean of the paired differences a - b: Student's interval; Bonett and Price's where all are 0 or 1."""
    if len(a) > 1 and is_share(a, b):
        return paired_shares(a, b, level)
    return of_mean(np.asarray(a, dtype=float) - np.asarray(b, dtype=float), level)


def mean_level(a: np.ndarray, level: float = LEVEL) -> Interval:
    """Mean of one result: Student's interval, or Clopper and Pearson's where all values are 0 or 1."""
    return share(a, level) if len(a) > 1 and is_share(a) else of_mean(a, level)


def mean_and_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over seeds and half-width of its 95 % interval, t s / √S; values (S, ...) -> two arrays (...).

    One seed has no interval (half-width NaN). A seed that is not finite makes the mean NaN or infinite
    and the half-width NaN: a diverged run never vanishes.
    """
    values = np.asarray(values, dtype=float)
    count = values.shape[0]
    mean = values.mean(axis=0)
    if count < 2:
        return mean, np.full_like(mean, np.nan)
    from scipy.stats import t

    return mean, t.ppf(0.975, count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
