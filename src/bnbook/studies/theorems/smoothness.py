"""Second derivatives through batch norm, and the bounds on them, as printed and corrected.

Letters as in `one_unit`; h (m, m) is the Hessian of the loss for the values z of one unit (or of a pair of
units), x and x2 (m,) two inputs. Sources: Santurkar et al. 2018, NeurIPS Theorems 4.2, C.1; arXiv v1 Theorems
3.4, C.6, equations 34 to 64.
"""

from __future__ import annotations

import math

import numpy as np

from bnbook.studies.theorems.one_unit import Number, Unit, jacobian, project

#: Largest value of c p·p' + a' p·q + a p'·q over unit vectors (a, p), (a', p'), (c, q): 2/√3, at a = 1/√3.
TRILINEAR = 2 / math.sqrt(3)
#: Largest value of (1 + cos t) sin t / 2: 3√3/8, at t = 60°.
SWING = 3 * math.sqrt(3) / 8


def through(h: np.ndarray, g: np.ndarray, unit: Unit, gamma: Number) -> np.ndarray:
    """∂²L̂/∂y∂y = (γ²/σ²) P H P - γ/(m σ²) (<g, ŷ> P + (P g) ŷᵀ + ŷ (P g)ᵀ), (m, m), one unit.

    Holds for eps > 0 too; with the unbiased variance m - 1 stands for m.
    """
    kept = project(g, unit)
    outer = np.outer(kept, unit.y_hat)
    p = unit.sigma * jacobian(unit)
    curved = gamma**2 / unit.sigma**2 * (p @ h @ p)
    return curved - gamma / (unit.count * unit.sigma**2) * ((g @ unit.y_hat) * p + outer + outer.T)


def equation_42(h: np.ndarray, g: np.ndarray, unit: Unit, gamma: Number) -> np.ndarray:
    """The same as NeurIPS prints it in equations 41 and 42, with the centred gradient and a term 3/m."""
    m, y, centred = unit.m, unit.y_hat, g - g.mean()
    middle = np.identity(m) - np.ones((m, m)) / m
    p = middle - np.outer(y, y) / m
    mixed = np.outer(centred, y) + np.outer(y, centred) - 3 / m * (g @ y) * np.outer(y, y) + (g @ y) * middle
    return gamma**2 / unit.sigma**2 * (p @ h @ p - mixed / (m * gamma))


def theorem_42(
    h: np.ndarray, g: np.ndarray, unit: Unit, gamma: Number, v: np.ndarray, *, second: bool
) -> Number:
    """Theorem 4.2's right side: (γ²/σ²) u'H u - γ/(m σ²) <g, ŷ> ‖v‖², u = v, in the second part g."""
    u = g if second else v
    return gamma**2 / unit.sigma**2 * (u @ h @ u) - gamma / (unit.m * unit.sigma**2) * (g @ unit.y_hat) * (
        v @ v
    )


def ball_maximum(a: np.ndarray, v: np.ndarray) -> float:
    """max (X Xᵀ v)ᵀ A (X Xᵀ v) over ‖X‖ ≤ 1, for symmetric A: what "the maximum over X" of Theorem C.1 is.

    X Xᵀ v runs through the ball with diameter from 0 to v, so this maximizes wᵀ A w over ‖w - v/2‖ ≤ ‖v‖/2:
    either 0 (at w = 0), or at w_i = μ c_i / (μ - λ_i) in A's eigenbasis, c = v/2, μ > λ_max chosen so that w
    is on the sphere.
    """
    values, vectors = np.linalg.eigh(a)
    top, c = values[-1], vectors.T @ v / 2
    radius = math.sqrt(c @ c)
    if top <= 0 or radius == 0:
        return 0.0

    def away(mu: float) -> np.ndarray:
        """w - c."""
        return values * c / (mu - values)

    low, high = top, top + max(abs(values)) * 2
    while away(high) @ away(high) > radius**2:
        high = top + 2 * (high - top)
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if away(middle) @ away(middle) > radius**2 else (low, middle)
    w = away(high) + c
    # Where v has (almost) nothing along the top eigenvector, the rest of the radius goes there.
    rest = max(radius**2 - away(high) @ away(high), 0.0)
    w[-1] += math.copysign(math.sqrt(away(high)[-1] ** 2 + rest) - abs(away(high)[-1]), c[-1])
    return max(float(values @ w**2), 0.0)


def theorem_c1(
    h: np.ndarray, g: np.ndarray, unit: Unit, gamma: Number, v: np.ndarray, *, printed: bool
) -> float:
    """Right side of Theorem C.1 for λ = 1 (both sides scale as λ⁴), M the plain network's maximum.

    printed: (γ²/σ²) (M - κ) with Theorem 4.2's separation κ = <g, ŷ> ‖v‖² / (m γ). What holds instead:
    (γ²/σ²) ((γ²/σ²) M + ((-γ <g, ŷ>)₊ / γ² + 3√3/8 √m ‖P g‖ / |γ|) ‖v‖² / m).
    """
    m, along = unit.m, g @ unit.y_hat
    largest, square, scale = ball_maximum(h, g), v @ v, gamma**2 / unit.sigma**2
    if printed:
        return scale * (largest - along * square / (m * gamma))
    kept = project(g, unit)
    extra = max(-gamma * along, 0.0) / gamma**2 + SWING * math.sqrt(m * (kept @ kept)) / abs(gamma)
    return scale * (scale * largest + extra * square / m)


def second_term(g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit) -> Number:
    """Σ_b g_b ∂²ŷ^(b)/∂W_i∂W_k for one unit and inputs x, x2, γ = 1:

    -(<g, ŷ> x'P x2 + (x'P g) <ŷ, x2> + <x, ŷ> (x2'P g)) / (m σ²), symmetric in x, x2 and g (up to its means).
    """
    y, kept = unit.y_hat, project(g, unit)
    inside = (g @ y) * (x @ project(x2, unit)) + (x @ kept) * (y @ x2) + (x @ y) * (x2 @ kept)
    return -inside / (unit.count * unit.sigma**2)


def equation_55(g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit) -> Number:
    """The second term as v1 prints it, 1/σ held constant: ((2 α α₂ / m² - β) <g, ŷ> - α <x2, g> / m) / σ²."""
    y, m = unit.y_hat, unit.m
    alpha, alpha2, beta = x @ y, x2 @ y, x @ x2 / m
    return ((-beta + 2 * alpha * alpha2 / m**2) * (g @ y) - alpha * (x2 @ g) / m) / unit.sigma**2


def equation_56(x_h_x: Number, g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit) -> Number:
    """The first term as v1 prints it: (X - β <g, ŷ> + α α₂ <g, ŷ> / m²) / σ²; right is X / σ² alone."""
    y, m = unit.y_hat, unit.m
    return (x_h_x + (-(x @ x2) / m + (x @ y) * (x2 @ y) / m**2) * (g @ y)) / unit.sigma**2


def equation_58(
    x_h_x: Number, g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit, *, printed: bool
) -> Number:
    """∂²L̂/∂W_i∂W_k of one unit for centred inputs, X = x'P H P x2, α = <x, ŷ>, β = <x, x2>/m:

    printed (X - (2β - 3 α α₂/m²) <g, ŷ> - α <x2, g> / m) / σ², not symmetric in i and k;
    right   (X - ( β - 3 α α₂/m²) <g, ŷ> - α <x2, g> / m - α₂ <x, g> / m) / σ².
    """
    y, m = unit.y_hat, unit.m
    alpha, alpha2, beta = x @ y, x2 @ y, x @ x2 / m
    along, tail = g @ y, alpha * (x2 @ g) / m
    if printed:
        inside = x_h_x - (2 * beta - 3 * alpha * alpha2 / m**2) * along - tail
    else:
        inside = x_h_x - (beta - 3 * alpha * alpha2 / m**2) * along - tail - alpha2 * (x @ g) / m
    return inside / unit.sigma**2


def equation_59(x_h_x: float, g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit) -> float:
    """Right side of equation 59 as printed, without absolute values around the sums."""
    spread, spread2 = math.sqrt(x @ x / unit.m), math.sqrt(x2 @ x2 / unit.m)
    along = g @ unit.y_hat
    return (abs(x_h_x) + 5 * spread * spread2 * along + spread * (x2 @ g)) / unit.sigma**2


def equation_61(
    x_h_x: float, g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit, constant: float
) -> float:
    """(|X| + constant · σ_x σ_x2 ‖g‖) / σ²: constant 6 m as printed, 2/√3 √m the least that holds."""
    size = math.sqrt((x @ x) * (x2 @ x2) * (g @ g)) / unit.m
    return (abs(x_h_x) + constant * size) / unit.sigma**2


def column_share(h: np.ndarray, x: np.ndarray) -> float:
    """d = ‖Hᵀx‖² / (‖H‖² ‖x‖²): v1's assumption on d (which is of every column), summed over them."""
    return float(((h.T @ x) ** 2).sum() / ((h * h).sum() * (x @ x)))


def matrix_cosine(h: np.ndarray, x: np.ndarray, x2: np.ndarray) -> float:
    """D = |x'H x2| / (‖H‖ ‖x‖ ‖x2‖): the cosine of H and x x2ᵀ as matrices."""
    return float(abs(x @ h @ x2) / math.sqrt((h * h).sum() * (x @ x) * (x2 @ x2)))


def threshold_c6(d: float, d2: float, gradient: float, surplus: float) -> float:
    """v1 Theorem C.6's smallest σ_j σ_l: ((1 + √d)(1 + √d₂) + f) / (√(d d₂) - ε), f = 0, 6 ‖g‖ or 3 ‖g‖."""
    return ((1 + math.sqrt(d)) * (1 + math.sqrt(d2)) + gradient) / (math.sqrt(d * d2) - surplus)


def threshold_c6_corrected(cosine: float, ratio: float, surplus: float) -> float:
    """What suffices: ((1 + D)/2 + 2/√3 r) / (D - ε), D the matrix cosine, r = ‖g‖ / (√m ‖H‖) or 0."""
    return ((1 + cosine) / 2 + TRILINEAR * ratio) / (cosine - surplus)
