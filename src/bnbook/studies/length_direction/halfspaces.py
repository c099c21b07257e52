"""Half-spaces: minimise f(w̃) = E φ(zᵀw̃), z = -yx, for Gaussian z (exact integrals) or for examples.

Everything but the gradient needs only the margins of a direction, zᵀw / ‖w‖_S: points t with weights p, so
that E g(zᵀw̃) = Σ p g(γ t) for w̃ = γ w / ‖w‖_S. For Gaussian z, of mean u and covariance S - uuᵀ, they are
the nodes of `quadrature`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bnbook.errors import BnbookError
from bnbook.studies.length_direction.losses import Loss
from bnbook.studies.length_direction.problems import Quadratic
from bnbook.studies.length_direction.quadrature import NODES, WEIGHTS


class HalfSpace:
    """What both kinds have in common; `problem` holds S = E[zzᵀ] and u = E[z]."""

    problem: Quadratic
    loss: Loss

    def margins(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points of zᵀw̃ / ‖w̃‖_S and their weights; each kind below has its own."""
        raise NotImplementedError

    def gradient(self, weight: np.ndarray) -> np.ndarray:
        """∇f(w̃); each kind below has its own."""
        raise NotImplementedError

    def length(self, weight: np.ndarray) -> float:
        """‖w̃‖_S"""
        return float(np.sqrt(weight @ self.problem.S @ weight))

    def expectation(self, function, weight: np.ndarray) -> float:
        """E g(zᵀw̃)"""
        length = self.length(weight)
        if length == 0:
            return float(function(np.zeros(1))[0])
        points, weights = self.margins(weight)
        return float(weights @ function(length * points))

    def value(self, weight: np.ndarray) -> float:
        """f(w̃)"""
        return self.expectation(self.loss.value, weight)

    def coefficients(self, weight: np.ndarray) -> tuple[float, float]:
        """c₁ = E φ' - E φ'' uᵀw̃ and c₂ = E φ'', the article's."""
        second = self.expectation(self.loss.second, weight)
        return self.expectation(self.loss.first, weight) - second * float(self.problem.u @ weight), second

    def slope(self, points: np.ndarray, weights: np.ndarray, gamma: float) -> float:
        """∂f/∂γ = E[φ'(γ t) t] for the margins t of a direction."""
        return float(weights @ (self.loss.first(gamma * points) * points))

    def gradient_in_direction(self, w: np.ndarray, gamma: float) -> np.ndarray:
        """∇_w f(w, γ) = (γ / ‖w‖_S) (g - (gᵀw / ‖w‖²_S) S w) with g = ∇f(w̃)."""
        length = self.length(w)
        g = self.gradient(gamma * w / length)
        return gamma / length * (g - (g @ w) / length**2 * (self.problem.S @ w))


@dataclass(frozen=True)
class Gaussian(HalfSpace):
    """z ~ N(u, S - uuᵀ); BnbookError unless uᵀS⁻¹u < 1, without which that is no covariance."""

    problem: Quadratic
    loss: Loss

    def __post_init__(self) -> None:
        if not self.problem.attainable < 1:
            raise BnbookError(
                f"uᵀS⁻¹u is {self.problem.attainable:.3g}; expected less than 1 for a Gaussian z"
            )

    def margins(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean r = uᵀw / ‖w‖_S, standard deviation √(1 - r²)."""
        r = float(self.problem.u @ w) / self.length(w)
        return r + np.sqrt(max(0.0, 1 - r * r)) * NODES, WEIGHTS

    def gradient(self, weight: np.ndarray) -> np.ndarray:
        """∇f = c₁ u + c₂ S w̃: Stein's lemma, E[φ'(zᵀw̃) z] = E φ' u + E φ'' (S - uuᵀ) w̃."""
        first, second = self.coefficients(weight)
        return first * self.problem.u + second * (self.problem.S @ weight)


@dataclass(frozen=True)
class Examples(HalfSpace):
    """Given examples z (m, d), with the moments of `problem`."""

    problem: Quadratic
    loss: Loss
    z: np.ndarray

    def margins(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.z @ w / self.length(w), np.full(len(self.z), 1 / len(self.z))

    def gradient(self, weight: np.ndarray) -> np.ndarray:
        """∇f = mean of φ'(zᵀw̃) z"""
        return self.loss.first(self.z @ weight) @ self.z / len(self.z)


def from_labelled(x: np.ndarray, y: np.ndarray, loss: Loss) -> Examples:
    """Examples x (m, d) with labels y (m,) of ±1, centred here: z = -yx."""
    if set(np.unique(y)) != {-1.0, 1.0}:
        raise BnbookError(f"labels {sorted(set(np.unique(y)))[:4]}; expected both of -1 and 1")
    z = -y[:, None] * (x - x.mean(axis=0))
    return Examples(Quadratic(z.T @ z / len(z), z.mean(axis=0)), loss, z)


def draw_gaussian(rng: np.random.Generator, loss: Loss, size: int | None = None) -> Gaussian:
    """A random Gaussian problem: d = 2 to 12, L/μ up to 100, S scaled by 10^±2, uᵀS⁻¹u from 0.05 to 0.85."""
    d = size or int(rng.integers(2, 13))
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    spectrum = 10 ** (rng.uniform(-2, 2) + rng.uniform(0, rng.uniform(0, 2), d))
    S = (basis * spectrum) @ basis.T
    S = (S + S.T) / 2
    v = rng.standard_normal(d)
    u = (basis * np.sqrt(spectrum)) @ (v / np.linalg.norm(v) * np.sqrt(rng.uniform(0.05, 0.85)))
    return Gaussian(Quadratic(S, u), loss)
