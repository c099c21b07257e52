"""Gradient descent and Nesterov's accelerated gradient descent, with constant steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Gradient = Callable[[np.ndarray], np.ndarray]


def iterate(step: Callable[[np.ndarray], np.ndarray], start: np.ndarray, steps: int) -> np.ndarray:
    """w_{t+1} = step(w_t); all iterates (T+1, d)."""
    path = [np.asarray(start, dtype=np.float64)]
    for _ in range(steps):
        path.append(step(path[-1]))
    return np.stack(path)


def plain(gradient: Gradient, start: np.ndarray, step: float, steps: int) -> np.ndarray:
    """w_{t+1} = w_t - η ∇f(w_t); all iterates (T+1, d)."""
    return iterate(lambda w: w - step * gradient(w), start, steps)


def accelerated(
    gradient: Gradient, start: np.ndarray, step: float, momentum: float | None, steps: int
) -> np.ndarray:
    """v = w_t + β (w_t - w_{t-1}), w_{t+1} = v - η ∇f(v); all iterates (T+1, d).

    β is `momentum`; None: t / (t + 3), Nesterov's for a convex function that need not be strongly convex.
    """
    path = [np.asarray(start, dtype=np.float64)] * 2
    for t in range(steps):
        ahead = path[-1] + (t / (t + 3) if momentum is None else momentum) * (path[-1] - path[-2])
        path.append(ahead - step * gradient(ahead))
    return np.stack(path[1:])


def momentum_for(condition: float) -> float:
    """β = (√κ - 1) / (√κ + 1), Nesterov's for a strongly convex function of condition number κ."""
    root = np.sqrt(condition)
    return float((root - 1) / (root + 1))


def decay_rate(excess: np.ndarray, below: float, above: float) -> float:
    """The slope of log excess over the steps at which it lies between the two; nan for fewer than three."""
    t = np.flatnonzero((excess < below) & (excess > above))
    return float(np.polyfit(t, np.log(excess[t]), 1)[0]) if len(t) > 2 else float("nan")
