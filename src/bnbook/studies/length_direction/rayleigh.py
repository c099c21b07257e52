"""Gradient ascent on the generalized Rayleigh quotient ρ(w) = wᵀBw / wᵀAw, and how fast it is said to be.

With λ1 ≥ λ2 ≥ ... ≥ λmin and q(w) = (λ1 - ρ(w)) / (ρ(w) - λ2), one step takes q to at most
    printed    (1 - (λ1 - λ2) / (λ1 - λmin))^{2t} q(w_t), the λ of B alone; a parenthesis is misplaced in
    q(w_{t+1}); corrected  (1 - (μ/L) (λ1 - λ2) / (λ1 - λmin))² q(w_t), the λ of the pair (B, A), μ and L of
    A,
for λ2 < ρ(w_t) < λ1 and the step size wᵀAw / (2 L (ρ(w) - λmin)), which for B = uuᵀ is the printed one.
Source: the encyclopedia's article, "Least-square problem"; for A = I the corrected step is a shifted power
iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh


@dataclass(frozen=True)
class Pencil:
    """A pair of symmetric matrices, A positive definite, and the eigenvalues that the bounds need."""

    B: np.ndarray  # (d, d)
    A: np.ndarray  # (d, d)
    of_B: np.ndarray  # (d,), smallest first
    of_pair: np.ndarray  # (d,), of B v = λ A v
    of_A: np.ndarray  # (d,)


def make_pencil(B: np.ndarray, A: np.ndarray) -> Pencil:
    """The pair with its eigenvalues."""
    return Pencil(B, A, np.linalg.eigvalsh(B), eigh(B, A, eigvals_only=True), np.linalg.eigvalsh(A))


def quotient(w: np.ndarray, pencil: Pencil) -> float:
    """ρ(w) = wᵀBw / wᵀAw"""
    return float(w @ pencil.B @ w) / float(w @ pencil.A @ w)


def fixed_step(w: np.ndarray, pencil: Pencil) -> np.ndarray:
    """w + (Bw - ρ(w) A w) / (L (ρ(w) - λmin)): gradient ascent with the step size named above."""
    value = quotient(w, pencil)
    ascent = pencil.B @ w - value * (pencil.A @ w)
    return w + ascent / (pencil.of_A[-1] * (value - pencil.of_pair[0]))


def best_step(w: np.ndarray, pencil: Pencil) -> np.ndarray:
    """The step along the gradient that makes ρ as large as it can be: no step size does better."""
    ascent = pencil.B @ w - quotient(w, pencil) * (pencil.A @ w)
    plane = np.linalg.qr(np.stack([w, ascent], axis=1))[0]
    _, vectors = eigh(plane.T @ pencil.B @ plane, plane.T @ pencil.A @ plane)
    found = plane @ vectors[:, -1]
    return found * np.sign(found @ pencil.A @ w or 1.0)


def shortfall(value: float, eigenvalues: np.ndarray) -> float:
    """q = (λ1 - ρ) / (ρ - λ2)"""
    return (eigenvalues[-1] - value) / (value - eigenvalues[-2])


def printed_factor(pencil: Pencil, t: int) -> float:
    """(1 - (λ1 - λ2) / (λ1 - λmin))^{2t} with the eigenvalues of B."""
    smallest, second, first = pencil.of_B[0], pencil.of_B[-2], pencil.of_B[-1]
    return max(0.0, 1 - (first - second) / (first - smallest)) ** (2 * t)


def corrected_factor(pencil: Pencil) -> float:
    """(1 - (μ/L) (λ1 - λ2) / (λ1 - λmin))² with the eigenvalues of the pair."""
    smallest, second, first = pencil.of_pair[0], pencil.of_pair[-2], pencil.of_pair[-1]
    return max(0.0, 1 - pencil.of_A[0] / pencil.of_A[-1] * (first - second) / (first - smallest)) ** 2


def draw_pencil(rng: np.random.Generator, kind: str) -> tuple[Pencil, np.ndarray]:
    """A random pair and first w (d,), d = 3 to 12: "rank one", "identity" (A) or "general"."""
    d = int(rng.integers(3, 13))
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    A = np.eye(d) if kind == "identity" else (basis * 10 ** rng.uniform(-1, 1, d)) @ basis.T
    u, G = rng.standard_normal(d), rng.standard_normal((d, d))
    B = np.outer(u, u) if kind == "rank one" else (G + G.T) / 2
    pencil = make_pencil(B, (A + A.T) / 2)
    w = rng.standard_normal(d)
    while quotient(w, pencil) <= pencil.of_pair[-2]:  # the bound is said of ρ(w) above λ2 only
        w = best_step(w, pencil) + 1e-3 * rng.standard_normal(d)
    return pencil, w
