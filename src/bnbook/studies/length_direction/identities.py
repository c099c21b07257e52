"""The formulas of the section on least squares on many random data sets of each seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from bnbook.studies.length_direction import least_squares
from bnbook.studies.length_direction.problems import from_examples


def data_sets(seed: int, count: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    """x (m, d) of mean zero, scaled by 10^±2, y (m,), a direction w (d,), a length γ; m = 60, d = 1 to 10."""
    rng = np.random.default_rng([seed, 0])
    for _ in range(count):
        d = int(rng.integers(1, 11))
        x = rng.standard_normal((60, d)) @ rng.standard_normal((d, d)) * 10 ** rng.uniform(-2, 2)
        y, w = rng.standard_normal(60), rng.standard_normal(d)
        yield x - x.mean(axis=0), y, w, rng.standard_normal() * 10 ** rng.uniform(-1, 1)


def worst_differences(both_sides: Callable[..., Iterable[tuple]], seed: int, count: int) -> dict[str, float]:
    """Largest |left - right| over the size of the two, for every name that both_sides(x, y, w, γ) yields.

    It yields (name, left, right), or (name, left, right, size) where the terms of the two may cancel.
    """
    worst: dict[str, float] = {}
    for examples in data_sets(seed, count):
        for name, left, right, *size in both_sides(*examples):
            total = size[0] if size else np.max(np.abs(left) + np.abs(right))
            difference = np.max(np.abs(np.asarray(left) - right)) / total
            worst[name] = max(worst.get(name, 0.0), float(difference))
    return worst


def not_convex(seed: int, count: int, form: str) -> int:
    """On how many data sets the objective f(w, γ) bends downwards somewhere in γ."""
    found = 0
    for x, y, w, _ in data_sets(seed, count):
        problem = from_examples(x, y)
        lengths = np.linspace(-3, 3, 61) * np.sqrt(least_squares.norm(w, problem.S))
        values = np.array([least_squares.objective(w, g, problem, form) for g in lengths])
        bend = values[2:] - 2 * values[1:-1] + values[:-2]
        found += int(bend.min() < -1e-9 * np.abs(values).max())
    return found
