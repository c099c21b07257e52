"""Gradient descent and Nesterov's accelerated gradient descent, with constant steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Gradient = Callable[[np.ndarray], np.ndarray]


def plain(gradient: Gradient, start: np.ndarray, step: float, steps: int) -> np.ndarray:
    """w_{t+1} = w_t - η ∇f(w_t); all iterates (T+1, d)."""
    path = [np.asarray(start, dtype=np.float64)]
    for _ in range(steps):
        path.append(path[-1] - step * gradient(path[-1]))
    return np.stack(path)


def accelerated(
    gradient: Gradient, start: np.ndarray, step: float, momentum: float, steps: int
) -> np.ndarray:
    """v = w_t + β (w_t - w_{t-1}), w_{t+1} = v - η ∇f(v); all iterates (T+1, d)."""
    path = [np.asarray(start, dtype=np.float64)]
    before = path[0]
    for _ in range(steps):
        now = path[-1]
        ahead = now + momentum * (now - before)
        before = now
        path.append(ahead - step * gradient(ahead))
    return np.stack(path)


def momentum_for(condition: float) -> float:
    """β = (√κ - 1) / (√κ + 1), Nesterov's for a strongly convex function of condition number κ."""
    root = np.sqrt(condition)
    return float((root - 1) / (root + 1))


def nesterov(gradient: Gradient, start: np.ndarray, step: float, steps: int) -> np.ndarray:
    """Accelerated gradient descent for a convex function, β_t = t / (t + 3); all iterates (T+1, d)."""
    path = [np.asarray(start, dtype=np.float64)]
    before = path[0]
    for t in range(steps):
        now = path[-1]
        ahead = now + t / (t + 3) * (now - before)
        before = now
        path.append(ahead - step * gradient(ahead))
    return np.stack(path)
