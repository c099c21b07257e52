"""One hidden layer of tanh units on Gaussian data: f(w̃_1 ... w̃_m) = E l(F), F = Σ θ_i tanh(zᵀw̃_i), z = -yx
~ N(u, S - uuᵀ).

tanh is odd, so F(z) = -y F(x). By Stein's lemma, as for half-spaces,
    ∇_i f = κ_i u + S Σ_j M_ij w̃_j,   κ_i = e_i - Σ_j M_ij uᵀw̃_j,   e_i = θ_i E[l' s_i],
    M_ij = θ_i θ_j E[l'' s_i s_j] + δ_ij θ_i E[l' tanh''(t_i)],   t_i = zᵀw̃_i, s_i = 1 - tanh² t_i.
Expectations are trapezoid sums over the span of the weights, of dimension 1 or 2. Their error falls as
exp(-2π δ / spacing), where δ is the distance of the nearest pole of the integrand (of tanh or of l') from the
real axis: small for large weights. Source: the encyclopedia's article, "Neural networks"; the formulas are
this book's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bnbook.errors import BnbookError
from bnbook.studies.length_direction.losses import Loss
from bnbook.studies.length_direction.problems import Quadratic
from bnbook.studies.length_direction.quadrature import NODES, WEIGHTS, plane

#: sup |tanh''| = 4 / (3 √3)
LARGEST_BEND = 4 / (3 * np.sqrt(3))


@dataclass(frozen=True)
class TanhNetwork:
    """Fixed output weights, weights W (m, d), a row per unit; BnbookError unless uᵀS⁻¹u < 1."""

    problem: Quadratic
    theta: np.ndarray  # (m,)
    loss: Loss
    spacing: float = 0.1

    def __post_init__(self) -> None:
        if not self.problem.attainable < 1:
            raise BnbookError(
                f"uᵀS⁻¹u is {self.problem.attainable:.3g}; expected less than 1 for a Gaussian z"
            )

    @cached_property
    def root(self) -> np.ndarray:
        """R (d, d) with R Rᵀ = S - uuᵀ"""
        return np.linalg.cholesky(self.problem.S - np.outer(self.problem.u, self.problem.u))

    def margins(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nodes t (n, k) of zᵀw for the rows of `weights` (k, d) together, and their probabilities p (n,)."""
        spread = weights @ self.root
        _, sizes, axes = np.linalg.svd(spread, full_matrices=False)
        rank = int((sizes > 1e-9 * max(sizes[0], 1e-300)).sum())
        if rank > 2:
            raise BnbookError(f"the weights span {rank} dimensions; expected at most 2")
        nodes, p = (NODES[:, None], WEIGHTS) if rank <= 1 else plane(self.spacing)
        return weights @ self.problem.u + nodes @ (spread @ axes[: nodes.shape[1]].T).T, p

    def output(self, t: np.ndarray) -> np.ndarray:
        """F (n,) from margins t (n, m)."""
        return np.tanh(t) @ self.theta

    def value(self, W: np.ndarray) -> float:
        t, p = self.margins(W)
        return float(p @ self.loss.value(self.output(t)))

    def system(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """e (m,) and the symmetric M (m, m)."""
        t, p = self.margins(W)
        tanh = np.tanh(t)
        s, F = 1 - tanh**2, tanh @ self.theta
        first, second = p * self.loss.first(F), p * self.loss.second(F)
        scaled = s * self.theta
        M = scaled.T @ (second[:, None] * scaled) + np.diag(self.theta * (first @ (-2 * tanh * s)))
        return first @ scaled, M

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """∇f (m, d), a row per unit."""
        e, M = self.system(W)
        return (e - M @ (W @ self.problem.u))[:, None] * self.problem.u + M @ W @ self.problem.S

    def direct_gradient(self, W: np.ndarray) -> np.ndarray:
        """∇f (m, d) by its definition, θ_i E[l' s_i z], without Stein's lemma; for d = 2 only."""
        if len(self.problem.u) != 2:
            raise BnbookError(f"d is {len(self.problem.u)}; expected 2 for an integral over the plane")
        nodes, p = plane(self.spacing)
        z = self.problem.u + nodes @ self.root.T
        tanh = np.tanh(z @ W.T)
        return ((p * self.loss.first(tanh @ self.theta))[:, None] * (1 - tanh**2) * self.theta).T @ z

    def squared_norm(self, gradient: np.ndarray) -> float:
        """Σ_i ‖∇_i f‖² in the norm of S⁻¹, for (m, d) or (d,)."""
        rows = np.atleast_2d(gradient)
        return float(np.einsum("ij,ij->", rows, np.linalg.solve(self.problem.S, rows.T).T))


def off_line(W: np.ndarray, problem: Quadratic) -> np.ndarray:
    """Distance of each weight from the line of S⁻¹u in the norm of S, (m,)."""
    across = W - (W @ problem.u / problem.attainable)[:, None] * problem.direction
    return np.sqrt(np.maximum(0, np.einsum("ij,jk,ik->i", across, problem.S, across)))


def draw_network(
    rng: np.random.Generator, loss: Loss, units: int, size: int, equal: bool, condition: float = 4.0
) -> TanhNetwork:
    """θ_i from 0.5 to 2, all equal or of either sign; L/μ up to `condition`; uᵀS⁻¹u from 0.05 to 0.5."""
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    spectrum = condition ** rng.uniform(0, 1, size) * 10 ** rng.uniform(-1, 1)
    S = (basis * spectrum) @ basis.T
    v = rng.standard_normal(size)
    u = (basis * np.sqrt(spectrum)) @ (v / np.linalg.norm(v) * np.sqrt(rng.uniform(0.05, 0.5)))
    theta = rng.uniform(0.5, 2, units) * np.sign(rng.standard_normal(units))
    return TanhNetwork(Quadratic((S + S.T) / 2, u), np.full(units, abs(theta[0])) if equal else theta, loss)
