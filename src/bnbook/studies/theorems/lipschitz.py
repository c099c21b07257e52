"""Both sides of the Lipschitz theorems, as printed and corrected.

γ scale, unit: σ and ŷ (m,), g (m,) the gradient from above, x (m,) one input; c a correlation of g and x.
Sources: Santurkar et al. 2018, NeurIPS Facts C.1, C.2, Theorems 4.1, 4.4; arXiv v1 Facts C.1, C.2, Theorems
3.1, 3.2, C.3, C.4, equations 12 to 17.
"""

from __future__ import annotations

import math

import numpy as np

from bnbook.studies.theorems.one_unit import Number, Unit, project, square_root


def fact_c1_v1(df: np.ndarray, f: Number, unit: Unit) -> np.ndarray:
    """v1 Fact C.1 as printed: (m ∂f/∂x - Σ ∂f/∂x - f) / (m σ), x the normalized value; wrong."""
    return (unit.m * df - df.sum() - f) / (unit.m * unit.sigma)


def fact_c2_v1(x: np.ndarray, alpha: Number, unit: Unit) -> np.ndarray:
    """v1 Fact C.2, equation 2: ∂ŷ/∂W = (x - α ŷ / m) / σ, (m,); right where x is centred and α = Σ x ŷ."""
    return (x - alpha * unit.y_hat / unit.m) / unit.sigma


def theorem_41(g: np.ndarray, unit: Unit, gamma: Number, last: Number | None = None) -> Number:
    """Right side of Theorem 4.1: (γ²/σ²) (‖g‖² - <1, g>² / m - last <g, ŷ>²).

    last: 1/m in the main text (the default), 1/√m in the appendix.
    """
    last = 1 / unit.m if last is None else last
    return gamma**2 / unit.sigma**2 * (g @ g - g.sum() ** 2 / unit.m - last * (g @ unit.y_hat) ** 2)


def theorem_44(g: np.ndarray, unit: Unit, gamma: Number, radius: Number, *, printed: bool) -> Number:
    """Right side of Theorem 4.4, the largest ‖∂L̂/∂W‖² over ‖X‖ ≤ λ; G = λ² ‖g‖², μ is the mean of g.

    printed: (γ²/σ²) (G² - m μ² - λ² <g, ŷ>²); corrected: (γ²/σ²) (G - λ² m μ² - λ² <g, ŷ>² / m), an equality.
    """
    m, squared = unit.m, radius**2
    largest, mean, along = squared * (g @ g), g.sum() / m, (g @ unit.y_hat) ** 2
    if printed:
        inside = largest**2 - m * mean**2 - squared * along
    else:
        inside = largest - squared * m * mean**2 - squared * along / m
    return gamma**2 / unit.sigma**2 * inside


def theorem_31(x: np.ndarray, alpha: Number, unit: Unit, power: int = 1) -> Number:
    """Right side of v1 Theorem 3.1 (power 1) and C.3 (power 0): (Σ x² - α² / m^power) / σ²."""
    return (x @ x - alpha**2 / unit.m**power) / unit.sigma**2


def theorem_31_uncentred(x: np.ndarray, unit: Unit) -> Number:
    """What holds without centred inputs: (Σ x² - m mean(x)² - α² / m) / σ² with α = Σ x ŷ."""
    return (x @ x - x.sum() ** 2 / unit.m - (x @ unit.y_hat) ** 2 / unit.m) / unit.sigma**2


def theorem_32(plain: Number, c: Number, unit: Unit) -> Number:
    """Right side of v1 Theorem 3.2: (|c|^(-1/2) + 1)² / σ² times the plain network's squared derivative."""
    return (abs(c) ** -0.5 + 1) ** 2 / unit.sigma**2 * plain**2


def sharp_32(plain: Number, cosine: Number, unit: Unit) -> Number:
    """The best bound of this form: (1/|cos| + 1)² / (4 σ²) times the same; equality where g mirrors x."""
    return (1 / abs(cosine) + 1) ** 2 / (4 * unit.sigma**2) * plain**2


def threshold_c4(c: Number, surplus: Number) -> Number:
    """v1 Theorem C.4's smallest variance: (1 + √|c|)² / (|c| - ε); negative, so always met, for ε > |c|."""
    return (1 + math.sqrt(abs(c))) ** 2 / (abs(c) - surplus)


def squares_15(x: np.ndarray, g: np.ndarray, unit: Unit) -> tuple[Number, Number, Number]:
    """The three terms of v1 equation 15: <x, g>², 2 |α <x, g> <g, ŷ>| / m, (α <g, ŷ> / m)², α = Σ x ŷ.

    Their signed sum, equations 12 to 14, is σ² times the squared derivative for the weight.
    """
    plain, along = x @ g, x @ unit.y_hat * (g @ unit.y_hat) / unit.m
    return plain**2, 2 * abs(plain * along), along**2


def middle_16(x: np.ndarray, g: np.ndarray, unit: Unit) -> Number:
    """Middle term of v1 equation 16 as printed: 2 (α / m) S m σ_x, S = ‖g‖²; right with |α|."""
    return 2 * (x @ unit.y_hat) * (g @ g) * square_root(x @ x / unit.m)


def middle_17(x: np.ndarray, g: np.ndarray, unit: Unit, *, printed: bool) -> float:
    """Middle term of v1 equation 17: printed 2 √(c |α|) S σ_x, right 2 √c |α| S σ_x, c the squared cosine."""
    alpha, c = abs(float(x @ unit.y_hat)), cosine(x, g) ** 2
    factor = math.sqrt(c * alpha) if printed else math.sqrt(c) * alpha
    return 2 * factor * float(g @ g) * math.sqrt(x @ x / unit.m)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """<a, b> / (‖a‖ ‖b‖)."""
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """The correlation of statistics: the cosine of the centred vectors."""
    return cosine(a - a.mean(), b - b.mean())


def squeezed_input(
    w: np.ndarray, g: np.ndarray, direction: np.ndarray, spread: float, radius: float
) -> np.ndarray:
    """X (m, I) of norm ≤ λ with which the outputs have a tiny spread and the weight gradient explodes.

    X = τ p wᵀ/‖w‖² + λ q uᵀ with y = X w = τ p, p ∝ direction (centred), u ⟂ w, q ∝ P g: then ‖∂L̂/∂w‖ grows
    as 1/τ. Needs I ≥ 2, m ≥ 3 and spread √m ≤ λ ‖w‖.
    """
    m = len(g)
    p = direction - direction.mean()
    p = p / math.sqrt(p @ p)
    unit = Unit(math.sqrt(m) * p, spread, m)
    kept = project(g, unit)
    aside = np.linalg.svd(w[None])[2][-1]  # a unit vector at right angles to w
    return spread * math.sqrt(m) * np.outer(p, w) / (w @ w) + radius * np.outer(
        kept / math.sqrt(kept @ kept), aside
    )
