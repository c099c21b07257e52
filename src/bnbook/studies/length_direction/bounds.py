"""The bounds on GDNP for half-spaces, as printed and corrected, with the quantities that they bound.

With κ = uᵀS⁻¹u, gap_t = ρ(w_t) - ρ*, B = |b⁽⁰⁾ - a⁽⁰⁾|, ζ a bound on ‖∇²f‖:
    length     (∂_γ f)² ≤ 2^{-T_s} ζ B / μ²                              corrected: (2^{-T_s} ζ B / μ)²
    direction  ‖w‖²_S ‖∇_w f‖²_{S⁻¹} ≤ (1 - μ/L)^{2t} Φ² γ² gap_0       printed: Φ = sup |φ'|
    combined   ‖∇f(w̃)‖² ≤ (1 - μ/L)^{2t} Φ² gap_0 + length bound        corrected: in the norm of S⁻¹
Corrected is Φ = sup |φ'| / √(1 - κ), which bounds |c₁| for Gaussian z. Behind all of it is an equality,
    ‖∇f(w̃)‖²_{S⁻¹} = c₁² gap + (∂_γ f)².
"""

from __future__ import annotations

import numpy as np

from bnbook.studies.length_direction.halfspaces import HalfSpace

FORMS = ("printed", "corrected")


def smoothness(halfspace: HalfSpace) -> float:
    """ζ = sup |φ''| L, a bound on the largest eigenvalue of ∇²f = E[φ''(zᵀw̃) z zᵀ]."""
    return halfspace.loss.largest_second * halfspace.problem.largest


def phi(halfspace: HalfSpace, form: str) -> float:
    """Φ: sup |φ'| as printed (a bounded derivative is all that is assumed), over √(1 - κ) as corrected.

    By Stein's lemma c₁ = E[φ'(t) (1 - kξ)] with t = a + bξ, k = a/b, so |c₁| ≤ sup |φ'| √(1 + k²), and 1 + k²
    is at most 1 / (1 - κ).
    """
    first = halfspace.loss.largest_first
    return first if form == "printed" else first / np.sqrt(1 - halfspace.problem.attainable)


def length_bound(halfspace: HalfSpace, iterations: int, width: float, form: str) -> float:
    """Bound on (∂_γ f)² at the left end of the bracket after T_s halvings."""
    halved = 2.0**-iterations * smoothness(halfspace) * width
    smallest = halfspace.problem.smallest
    return halved / smallest**2 if form == "printed" else (halved / smallest) ** 2


def direction_bound(halfspace: HalfSpace, t: int, gap: float, form: str) -> float:
    """(1 - μ/L)^{2t} Φ² gap_0"""
    return halfspace.problem.rate ** (2 * t) * phi(halfspace, form) ** 2 * gap


def squared_norm(vector: np.ndarray, halfspace: HalfSpace, form: str) -> float:
    """‖·‖²: Euclidean as printed (nothing else is said), in the norm of S⁻¹ as corrected."""
    if form == "printed":
        return float(vector @ vector)
    return float(vector @ np.linalg.solve(halfspace.problem.S, vector))
