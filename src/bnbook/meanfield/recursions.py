"""One function per equation: how the six order parameters pass one layer of a wide random ReLU network.

Letters: q, q_xy of pre-activations z; q̂, q̂_xy of activations h; q̃, q̃_xy of gradients δ = ∂f/∂z. The plain
letter is the mean over one input x, the index xy the mean over pairs of different inputs. Arguments are
arrays over settings and broadcast.
"""

from __future__ import annotations

import numpy as np


def relu_product(c: np.ndarray) -> np.ndarray:
    """E[φ(a) φ(b)] = (√(1-c²) + cπ/2 + c arcsin c) / 2π, φ = ReLU, a and b standard normal of correlation c.

    The integral of equation 133, whose value is equation 134 without q.
    """
    return (np.sqrt(1 - c * c) + c * (np.pi / 2 + np.arcsin(c))) / (2 * np.pi)


def step_product(c: np.ndarray) -> np.ndarray:
    """E[φ'(a) φ'(b)] = (π/2 + arcsin c) / 2π: the chance that both of a, b of correlation c are positive.

    The integral behind equation 22 (right); at c = 0 it is the 1/4 of equation 25.
    """
    return (np.pi / 2 + np.arcsin(c)) / (2 * np.pi)


def correlation(q: np.ndarray, q_xy: np.ndarray) -> np.ndarray:
    """c_xy = q_xy / q of equations 21 and 22, with rounding beyond ±1 cut off."""
    return np.clip(q_xy / q, -1.0, 1.0)


def preactivation(q_hat: np.ndarray, sigma_w2: np.ndarray, sigma_b2: np.ndarray) -> np.ndarray:
    """q^l = σ_b² + σ_w² q̂^{l-1}, and the same for pairs: equations 20, 21, 23 and 24 (left)."""
    return sigma_b2 + sigma_w2 * q_hat


def relu_forward(q: np.ndarray) -> np.ndarray:
    """q̂^l = q^l / 2: equation 20 (right)."""
    return q / 2


def relu_forward_pairs(q: np.ndarray, q_xy: np.ndarray) -> np.ndarray:
    """q̂_xy^l = q^l E[φ(a) φ(b)] at correlation c_xy: equation 21 (right)."""
    return q * relu_product(correlation(q, q_xy))


def relu_backward(q_tilde: np.ndarray, sigma_w2: np.ndarray) -> np.ndarray:
    """q̃^l = σ_w² q̃^{l+1} / 2: equation 22 (left)."""
    return sigma_w2 * q_tilde / 2


def relu_backward_pairs(
    q_tilde_xy: np.ndarray, q: np.ndarray, q_xy: np.ndarray, sigma_w2: np.ndarray
) -> np.ndarray:
    """q̃_xy^l = σ_w² q̃_xy^{l+1} E[φ'(a) φ'(b)] at the correlation of layer l: equation 22 (right)."""
    return sigma_w2 * q_tilde_xy * step_product(correlation(q, q_xy))


def batch_forward(gamma: np.ndarray) -> np.ndarray:
    """q̂^l = γ²/2: equation 23 (right). It holds for any data: u has mean square 1 and a random sign."""
    return gamma**2 / 2


def batch_forward_pairs(gamma: np.ndarray, c: float = 0.0) -> np.ndarray:
    """q̂_xy^l = γ² E[φ(a) φ(b)], γ²/2π at c = 0: equation 24 (right), for u(x), u(y) of correlation c."""
    return gamma**2 * relu_product(np.asarray(c))


def batch_backward(
    q_tilde: np.ndarray, gamma: np.ndarray, sigma_w2: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """q̃^l = γ² σ_w² q̃^{l+1} / 2s²: equation 25 (left), which prints q^l for the variance s² of layer l."""
    return gamma**2 * sigma_w2 * q_tilde / (2 * variance)


def batch_backward_pairs(
    q_tilde_xy: np.ndarray, gamma: np.ndarray, sigma_w2: np.ndarray, variance: np.ndarray, c: float = 0.0
) -> np.ndarray:
    """q̃_xy^l = γ² σ_w² q̃_xy^{l+1} E[φ'(a) φ'(b)] / s², 1/4 at c = 0: equation 25 (right), s² as above."""
    return gamma**2 * sigma_w2 * q_tilde_xy * step_product(np.asarray(c)) / variance


def data_variance(q: np.ndarray, q_xy: np.ndarray, batch: int | None) -> np.ndarray:
    """1 / E[1/s²], the variance that batch norm divides by: (q - q_xy)(m-3)/m, or q - q_xy for infinite m.

    Corrects equation 25. One unit sees z(x) = a + g(x) with the same a ~ N(0, q_xy) for every input and
    g(x) ~ N(0, q - q_xy) for each: the mean takes a out, so q_xy is no part of s². Over m inputs s² is
    (q - q_xy) χ²_{m-1}/m, independent of the direction of u, and E[1/χ²_{m-1}] = 1/(m-3).
    """
    return (q - q_xy) * (1.0 if batch is None else (batch - 3) / batch)


def pair_correlation(batch: int | None) -> float:
    """Correlation of u(x) and u(y), x ≠ y, centred over m inputs: -1/(m-1); 0 for infinite m (equation 60).

    u is uniform on a sphere in the m-1 directions that centring leaves. Products of two ReLUs are homogeneous
    of degree 2, of two steps of degree 0, so the Gaussian integrals hold on the sphere exactly.
    """
    return 0.0 if batch is None else -1.0 / (batch - 1)
