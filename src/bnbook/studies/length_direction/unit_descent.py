"""GDNP for one unit of the network at a time, the other units held fixed, and the bound on its gradient.

With o = Σ_{j≠i} M_ij w̃_j split as o = c S⁻¹u + o⊥ (uᵀo⊥ = 0), unit i sees ∇_i f = C₁ u + M_ii S w̃_i + S o⊥,
C₁ = κ_i + c. Where o⊥ = 0 (the other units lie on the line of S⁻¹u, or are 0) this is the half-space's
gradient, and
    ‖∇_i f‖²_{S⁻¹} = C₁² (ρ(w_i) - ρ*) + (∂_γ f)²,   h = C₁ uᵀw_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bnbook.studies.length_direction import least_squares
from bnbook.studies.length_direction.gdnp import bisection
from bnbook.studies.length_direction.network import LARGEST_BEND, TanhNetwork

BRACKET = (-4.0, 4.25)


@dataclass(frozen=True)
class UnitRun:
    """GDNP on one unit: weights, gradients, and whether each interval held a zero of the slope."""

    weights: np.ndarray  # (T+1, d), w̃_i
    gaps: np.ndarray  # (T+1,), ρ(w_i) - ρ*
    gradients: np.ndarray  # (T+1,), ‖∇_i f‖² in the norm of S⁻¹
    slopes: np.ndarray  # (T+1,), ∂f/∂γ
    first: np.ndarray  # (T+1,), C₁
    zero_inside: bool


def with_unit(W: np.ndarray, unit: int, weight: np.ndarray) -> np.ndarray:
    """W with one row replaced."""
    changed = W.copy()
    changed[unit] = weight
    return changed


def first_coefficient(network: TanhNetwork, W: np.ndarray, unit: int) -> float:
    """C₁ = e_i - Σ_j M_ij uᵀw̃_j + uᵀo / uᵀS⁻¹u"""
    e, M = network.system(W)
    along = W @ network.problem.u
    others = np.arange(len(W)) != unit
    return float(e[unit] - M[unit] @ along + M[unit, others] @ along[others] / network.problem.attainable)


def descend(
    network: TanhNetwork, W: np.ndarray, unit: int, w: np.ndarray, steps: int, iterations: int
) -> UnitRun:
    """GDNP on one unit from direction w, with the corrected h; length first, then the direction's step."""
    problem, found, inside = network.problem, [], True
    for t in range(steps + 1):
        length = float(np.sqrt(w @ problem.S @ w))
        slope, ends = _slope(network, W, unit, w / length)
        inside = inside and ends[0] <= 0 <= ends[1]
        gamma = bisection(slope, *BRACKET, iterations)[0]
        weight = gamma * w / length
        now = with_unit(W, unit, weight)
        g, first = network.gradient(now)[unit], first_coefficient(network, now, unit)
        found.append(
            (
                weight,
                float(least_squares.gap(w, problem)),
                network.squared_norm(g),
                float(g @ w) / length,
                first,
            )
        )
        h = first * float(problem.u @ w)
        if t < steps and gamma * h != 0:
            in_direction = gamma / length * (g - (g @ w) / length**2 * (problem.S @ w))
            w = w + length**3 / (problem.largest * gamma * h) * in_direction
    weights, gaps, gradients, slopes, firsts = (np.array(column) for column in zip(*found, strict=True))
    return UnitRun(weights, gaps, gradients, slopes, firsts, inside)


def _slope(network: TanhNetwork, W: np.ndarray, unit: int, direction: np.ndarray):
    """∂f/∂γ as a function of γ, for a direction with ‖w‖_S = 1; its values at the ends of the bracket."""
    t, p = network.margins(with_unit(W, unit, direction))
    mine, theta = t[:, unit], network.theta[unit]
    others = np.tanh(np.delete(t, unit, axis=1)) @ np.delete(network.theta, unit)

    def slope(gamma: float) -> float:
        tanh = np.tanh(gamma * mine)
        return float(p @ (network.loss.first(others + theta * tanh) * theta * (1 - tanh**2) * mine))

    return slope, (slope(BRACKET[0]), slope(BRACKET[1]))


def smoothness(network: TanhNetwork, unit: int) -> float:
    """ζ = L (θ² sup l'' + |θ| sup |l'| sup |tanh''|), a bound on the Hessian of f in one unit."""
    theta = abs(network.theta[unit])
    bend = theta**2 * network.loss.largest_second + theta * network.loss.largest_first * LARGEST_BEND
    return bend * network.problem.largest


def constant(network: TanhNetwork, W: np.ndarray, unit: int) -> float:
    """C, a bound on C₁² while |γ| stays in the bracket and the other units where they are in W."""
    theta, loss, kappa = np.abs(network.theta), network.loss, network.problem.attainable
    lengths = np.sqrt(np.einsum("ij,jk,ik->i", W, network.problem.S, W))
    others = np.arange(len(W)) != unit
    own = theta[unit] ** 2 * loss.largest_second + theta[unit] * loss.largest_first * LARGEST_BEND
    across = (
        theta[unit]
        * loss.largest_second
        * float(theta[others] @ lengths[others])
        * (1 - kappa)
        / np.sqrt(kappa)
    )
    return (theta[unit] * loss.largest_first + own * np.sqrt(kappa) * BRACKET[1] + across) ** 2


def unit_bound(
    network: TanhNetwork, W: np.ndarray, unit: int, t: int, gap: float, iterations: int, form: str
) -> float:
    """(1 - μ/L)^{2t} C gap_0 + 2^{-T_s} ζ |b - a| / μ² as printed; corrected + (2^{-T_s} ζ |b - a| / μ)²."""
    problem = network.problem
    halved = 2.0**-iterations * smoothness(network, unit) * (BRACKET[1] - BRACKET[0])
    of_length = halved / problem.smallest**2 if form == "printed" else (halved / problem.smallest) ** 2
    return problem.rate ** (2 * t) * constant(network, W, unit) * gap + of_length


def sweep(network: TanhNetwork, W: np.ndarray, steps: int, iterations: int, starts: np.ndarray) -> np.ndarray:
    """GDNP on each unit in turn, from its own weight, or from `starts` (m, d) where that is 0."""
    for unit in range(len(W)):
        w = W[unit] if np.any(W[unit]) else starts[unit]
        W = with_unit(W, unit, descend(network, W, unit, w, steps, iterations).weights[-1])
    return W
