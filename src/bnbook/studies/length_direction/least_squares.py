"""Least squares in length and direction, w̃ = γ w / ‖w‖_S, ‖w‖_S = √(wᵀSw), and a Rayleigh quotient."""

from __future__ import annotations

import numpy as np

from bnbook.errors import BnbookError
from bnbook.studies.length_direction.gradient_descent import iterate
from bnbook.studies.length_direction.problems import Quadratic


def norm(w: np.ndarray, S: np.ndarray) -> float:
    """‖w‖_S = √(wᵀSw)"""
    return float(np.sqrt(w @ S @ w))


def weight(w: np.ndarray, gamma: float, S: np.ndarray) -> np.ndarray:
    """w̃ = γ w / ‖w‖_S (d,); BnbookError for w = 0."""
    length = norm(w, S)
    if length == 0:
        raise BnbookError("the direction w is 0; expected any other vector")
    return gamma * w / length


def objective(w: np.ndarray, gamma: float, problem: Quadratic, form: str = "corrected") -> float:
    """f(w, γ) = 2γ uᵀw / ‖w‖_S + γ²; printed, the fraction swallows γ²: 2γ uᵀw / (‖w‖_S + γ²)."""
    along, length = problem.u @ w, norm(w, problem.S)
    if form == "printed":
        return 2 * gamma * along / (length + gamma**2)
    return 2 * gamma * along / length + gamma**2


def optimal_length(w: np.ndarray, problem: Quadratic) -> float:
    """γ* = -uᵀw / ‖w‖_S, where ∂f/∂γ = 0."""
    return -float(problem.u @ w) / norm(w, problem.S)


def rho(w: np.ndarray, problem: Quadratic) -> float:
    """ρ(w) = -(uᵀw)² / wᵀSw, the objective at the best length."""
    return -(float(problem.u @ w) ** 2) / float(w @ problem.S @ w)


def gap(w: np.ndarray, problem: Quadratic) -> np.ndarray:
    """ρ(w) - ρ* for w (..., d), without cancellation: uᵀS⁻¹u times the squared sine of the angle to S⁻¹u.

    With r = w - (uᵀw / uᵀS⁻¹u) S⁻¹u, the part that is S-orthogonal to S⁻¹u, it is uᵀS⁻¹u ‖r‖²_S / ‖w‖²_S.
    """
    across = w - (w @ problem.u / problem.attainable)[..., None] * problem.direction
    squares = [np.einsum("...i,ij,...j->...", v, problem.S, v) for v in (across, w)]
    return problem.attainable * squares[0] / squares[1]


def gradient(w: np.ndarray, problem: Quadratic) -> np.ndarray:
    """∇ρ(w) = -2 (u uᵀw + ρ(w) S w) / wᵀSw, (d,)."""
    square = w @ problem.S @ w
    return -2 * (problem.u * (problem.u @ w) + rho(w, problem) * (problem.S @ w)) / square


def step_size(w: np.ndarray, problem: Quadratic) -> float:
    """η = wᵀSw / (2 L |ρ(w)|), as the encyclopedia prints it; BnbookError where ρ(w) = 0."""
    value = rho(w, problem)
    if value == 0:
        raise BnbookError("ρ(w) is 0; expected a first direction that is not orthogonal to u")
    return float(w @ problem.S @ w) / (2 * problem.largest * abs(value))


def descend(w: np.ndarray, problem: Quadratic, steps: int, factor: float = 1.0) -> np.ndarray:
    """Directions w_0 ... w_T (T+1, d) of gradient descent on ρ, `factor` times the printed step size."""
    return iterate(lambda w: w - factor * step_size(w, problem) * gradient(w, problem), w, steps)


def weights_at_best_length(path: np.ndarray, problem: Quadratic) -> np.ndarray:
    """w̃ at the best length, -(uᵀw / ‖w‖²_S) w, for directions (T, d)."""
    square = np.einsum("...i,ij,...j->...", path, problem.S, path)
    return -(path @ problem.u / square)[..., None] * path
