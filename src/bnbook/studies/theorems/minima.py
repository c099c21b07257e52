"""Minima with and without batch norm, and distances to them.

Letters: m data points, I inputs; X (m, I), one unit y = X w, targets t (m,), ε of Lemma 3.3 a loss, not the
layer's eps. Source: Santurkar et al. 2018, NeurIPS Observation 4.3, Lemma 4.5; arXiv v1 Lemmas 3.3, C.5.
"""

from __future__ import annotations

import math

import numpy as np

from bnbook.studies.theorems.one_unit import Number


def least_squares(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The one minimum of ½ ‖X w - t‖² for full column rank: (XᵀX)⁻¹ Xᵀ t."""
    return np.linalg.solve(x.T @ x, x.T @ t)


def normalized_direction(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The direction of the minima of ½ ‖γ BN(X w) + β - t‖², γ > 0: least squares with inputs of mean zero.

    The loss is a constant minus γ <ŷ, t>, so it is least where ŷ correlates most with t: on the whole ray of
    this vector, and on no other.
    """
    return least_squares(x - x.mean(0), t)


def lemma_45(start: np.ndarray, minimum: np.ndarray) -> Number:
    """Right side of Lemma 4.5: ‖W₀ - W*‖² - (‖W*‖² - <W*, W₀>)² / ‖W*‖², of W₀ from the line of W*."""
    square = minimum @ minimum
    return (start - minimum) @ (start - minimum) - (square - minimum @ start) ** 2 / square


def distance_to_ray(start: np.ndarray, direction: np.ndarray) -> Number:
    """Squared distance of W₀ from the ray {a r: a > 0}."""
    inner = start @ direction
    return start @ start - (inner**2 / (direction @ direction) if inner > 0 else 0)


def lemma_33(epsilon: Number) -> Number:
    """Right side of Lemma 3.3 (C.5): 3 ε (1 + ε) / (1 - 2 ε); negative for ε > 1/2."""
    return 3 * epsilon * (1 + epsilon) / (1 - 2 * epsilon)


def sharp_33_squared(epsilon: float) -> float:
    """The least upper bound where the loss is the squared norm: `sharp_33` of √ε, squared; from ε = ¼ on
    (1 + √ε)².

    Beyond ¼ targets shorter than √ε are allowed, and outputs that point away from them.
    """
    root = math.sqrt(epsilon)
    return sharp_33(root) ** 2 if epsilon < 1 / 4 else (1 + root) ** 2


def sharp_33(epsilon: float) -> float:
    """The least upper bound for ε < 1/2, √((1 - ε)² + 1 - 2 √(1 - 2 ε)), about √2 ε, where ‖BN‖ = 1."""
    return math.sqrt((1 - epsilon) ** 2 + 1 - 2 * math.sqrt(1 - 2 * epsilon))


def worst_for_33(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Targets and outputs in a plane that reach `sharp_33`: ‖ℓ‖ = 1 - ε, y as far from ℓ as ε allows."""
    length = 1 - epsilon
    sine = epsilon / length
    cosine = math.sqrt(1 - sine**2)
    return np.array([length, 0.0]), length * cosine * np.array([cosine, sine])
