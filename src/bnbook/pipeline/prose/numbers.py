"""What a token says of one result, of its values for each seed: the verbs `mean`, `ci`, `geo` and others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bnbook.claims.words import alike, format_number, telling
from bnbook.intervals import Interval, geometric_ratio, mean_level
from bnbook.pipeline.prose import powers


def _mean(values: np.ndarray, spec: str) -> str:
    return format_number(float(values.mean()), spec)


def _median(values: np.ndarray, spec: str) -> str:
    """For what a few seeds carry by orders of magnitude; a seed that diverged counts as infinite."""
    return format_number(float(np.median(np.where(np.isnan(values), np.inf, values))), spec)


def _interval(values: np.ndarray, _spec: str) -> Interval:
    return mean_level(values)


def _geometric(values: np.ndarray, _spec: str) -> Interval:
    """For what is positive by nature: geometric mean, and an interval of the logarithms, which never reaches
    zero."""
    if (values <= 0).any():
        raise ValueError("a geometric mean needs values above 0; use ci")
    return geometric_ratio(values, np.ones(len(values)))


def _bounded(values: np.ndarray, _spec: str) -> Interval:
    """For a share of something in each seed: the interval stops at 0 and 1, beyond which no share lies."""
    if (values < 0).any() or (values > 1).any():
        raise ValueError("a share lies between 0 and 1; use ci")
    mean, low, high = mean_level(values)
    return mean, max(low, 0.0), min(high, 1.0)


def with_interval(found: Interval, seeds: int, spec: str, table: bool, fewer: bool) -> str:
    """In a sentence with words, in a table (where the bar is written \\|) small and below the value.

    fewer: the result has fewer seeds than the run, which is said.
    """
    spec = telling(*found[1:], spec)
    middle, low, high = alike(found, spec)
    if seeds < 2:
        return f"{middle} (one seed, no interval)"
    count = f"; n = {seeds}" if fewer else ""
    if found[1] == found[2]:
        same = f"the same for every seed{count}"
        return f"{middle}<br><small>{same}</small>" if table else f"{middle} ({same})"
    if table:
        return f"{middle}<br><small>{low.removesuffix(' %')} to {high}{count}</small>"
    return f"{middle} (95 % interval {low} to {high}{count})"


def _single(values: np.ndarray, spec: str) -> str:
    """The number that every seed gave."""
    if not ((values == values[0]) | np.isnan(values) & np.isnan(values[0])).all():
        raise ValueError("its seeds differ; use mean or ci")
    return format_number(float(values[0]), spec)


def _count(values: np.ndarray, spec: str) -> str:
    return str(len(values))


VERBS: dict[str, Callable[[np.ndarray, str], str | Interval]] = {
    "mean": _mean,
    "median": _median,
    "ci": _interval,
    "geo": _geometric,
    "factor": powers.factor,
    "power": powers.power,
    "share": _bounded,
    "value": _single,
    "n": _count,
}
