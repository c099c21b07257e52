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
    """q^l = σ_b² + σ_w² q̂^{l-1}, and the same for pairs: equations 20, 21, 23, 24, 34 to 36, 39 to 41
    (left)."""
    return sigma_b2 + sigma_w2 * q_hat


def relu_forward(q: np.ndarray) -> np.ndarray:
    """q̂^l = q^l / 2: equations 20 and 34 (right)."""
    return q / 2


def relu_forward_pairs(q: np.ndarray, q_xy: np.ndarray) -> np.ndarray:
    """q̂_xy^l = q^l E[φ(a) φ(b)] at correlation c_xy: equations 21, 35 and 36 (right)."""
    return q * relu_product(correlation(q, q_xy))


def relu_backward(q_tilde: np.ndarray, sigma_w2: np.ndarray) -> np.ndarray:
    """q̃^l = σ_w² q̃^{l+1} / 2: equations 22 and 37 (left)."""
    return sigma_w2 * q_tilde / 2


def batch_forward(gamma: np.ndarray) -> np.ndarray:
    """q̂^l = γ²/2: equations 23 and 39 (right). It holds for any data: u has mean square 1 and a random
    sign."""
    return gamma**2 / 2


def batch_forward_pairs(gamma: np.ndarray, c: np.ndarray | float = 0.0) -> np.ndarray:
    """q̂_xy^l = γ² E[φ(a) φ(b)], γ²/2π at c = 0: equations 24, 40 and 41 (right), for u(x), u(y) of
    correlation c."""
    return gamma**2 * relu_product(np.asarray(c))


def batch_backward(
    q_tilde: np.ndarray, gamma: np.ndarray, sigma_w2: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """q̃^l = γ² σ_w² q̃^{l+1} / 2s²: equations 25 and 42 (left), which print q^l for the variance s² of layer
    l."""
    return gamma**2 * sigma_w2 * q_tilde / (2 * variance)


def batch_backward_pairs(
    q_tilde_xy: np.ndarray,
    gamma: np.ndarray,
    sigma_w2: np.ndarray,
    variance: np.ndarray,
    c: np.ndarray | float = 0.0,
) -> np.ndarray:
    """q̃_xy^l = γ² σ_w² q̃_xy^{l+1} E[φ'(a) φ'(b)] / s², 1/4 at c = 0: equations 25, 42 (right) and 43, s² as
    above."""
    return gamma**2 * sigma_w2 * q_tilde_xy * step_product(np.asarray(c)) / variance


def pooled_product(q_xy: np.ndarray, q_ab_xy: np.ndarray, positions: int) -> np.ndarray:
    """Mean of ⟨z_α(x), z_β(y)⟩/C over all places α, β and different inputs: the square of the mean that batch
    norm takes out.

    q_xy / |K| + (1 - 1/|K|) q_αβ,xy; in a fully connected layer (|K| = 1) q_xy. A convolution's batch norm
    pools all places of a channel; equation 28, with μ and s of every place, is read so.
    """
    return q_xy / positions + (1 - 1 / positions) * q_ab_xy if positions > 1 else q_xy


def data_variance(q: np.ndarray, pooled: np.ndarray, values: int | None) -> np.ndarray:
    """1 / E[1/s²], the variance that batch norm divides by: (q - pooled)(n-3)/n, or q - pooled for infinite
    n.

    Corrects equations 25 and 42. One unit sees z(x) = a + g(x) with the same a ~ N(0, q_xy) for every input
    and g(x) ~ N(0, q - q_xy) for each: the mean takes a out, so q_xy is no part of s². Over n values (m
    inputs, m |K| in a convolution) s² is (q - q_xy) χ²_{n-1}/n, independent of the direction of u, and
    E[1/χ²_{n-1}] = 1/(n-3).
    """
    return (q - pooled) * (1.0 if values is None else (values - 3) / values)


def pair_correlation(values: int | None) -> float:
    """Correlation of two different values of u, centred over n of them: -1/(n-1); 0 for infinite n (equation
    60).

    u is uniform on a sphere in the n-1 directions that centring leaves. Products of two ReLUs are homogeneous
    of degree 2, of two steps of degree 0, so the Gaussian integrals hold on the sphere exactly.
    """
    return 0.0 if values is None else -1.0 / (values - 1)


def centred_correlation(
    q: np.ndarray, q_other: np.ndarray, pooled: np.ndarray, values: int | None
) -> np.ndarray:
    """Correlation of two values of u whose pre-activations have the product q_other: (q_other - pooled)/(q -
    pooled).

    Equation 60 has 0: true on average over all pairs, and for every pair of inputs in a fully connected
    layer. Two inputs at the *same* place of a map have more if the images have something in common there, at
    two places less.
    """
    shared = (q_other - pooled) / (q - pooled)
    return np.clip(shared + pair_correlation(values), -1.0, 1.0)
