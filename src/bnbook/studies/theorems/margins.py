"""How far a bound is from failing, on a scale that does not depend on units."""

from __future__ import annotations

import numpy as np

#: A bound is violated where the value exceeds it by more than this share of the terms added up.
TOLERANCE = 1e-9
#: Bins for counting margins; the one in the middle holds equality, and is parted where violation begins.
EDGES = np.insert(np.linspace(-1.0125, 1.0125, 82), 41, -TOLERANCE)


def margin(value: float, bound: float, scale: float = 0.0) -> float:
    """(bound - value) / (|bound| + |value| + scale), between -1 and 1; 0 is equality, below 0 a violation.

    `scale` is the size of the terms that both were computed from, where they may cancel.
    """
    total = abs(bound) + abs(value) + scale
    return (bound - value) / total if total > 0 else 0.0


def error(value: np.ndarray | float, formula: np.ndarray | float, scale: float = 0.0) -> float:
    """Largest |value - formula| over the largest term: the violation of an identity."""
    value, formula = np.asarray(value), np.asarray(formula)
    total = max(float(np.abs(value).max()), float(np.abs(formula).max()), scale)
    return float(np.abs(value - formula).max()) / total if total > 0 else 0.0


def violations(margins: np.ndarray, tolerance: float = TOLERANCE) -> np.ndarray:
    """Number of violations per seed: margins (S, K) → (S,)."""
    return (np.asarray(margins) < -tolerance).sum(1)
