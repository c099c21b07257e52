"""The factor by which one layer of a wide random batch-norm network multiplies the squared gradient, for any
batch size.

Letters: m examples; u one unit's normalized values, uniform on the sphere of radius √m in the n = m - 1
directions that centring leaves; φ the nonlinearity; c = -1/(m-1) the correlation of two values of u; G = 1 -
11ᵀ/m centring.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from bnbook.errors import BnbookError
from bnbook.meanfield.recursions import relu_product, step_product
from bnbook.studies.gradient_growth.activations import Function, activation

PANELS, ORDER = 48, 8  # Gauss-Legendre points: spectral where φ is smooth, about 1e-5 where it has kinks


@dataclass(frozen=True)
class Growth:
    """What one layer does to the squared gradient on its way down, and to the spread of the batch on its way
    up."""

    through: float  # λ: ‖δ^l‖² / ‖δ^(l+1)‖², gradients flow through mean and variance
    constant: float  # the same with mean and variance held constant
    spread: float  # V = E φ(u_1)² - E φ(u_1) φ(u_2): what centring leaves of a unit's output

    @property
    def of_norm(self) -> float:
        """√λ: the factor for the norm itself."""
        return math.sqrt(self.through)


def growth(
    phi: str | Function,
    m: int | None = None,
    gamma: float = 1.0,
    beta: float = 0.0,
    panels: int = PANELS,
    kinks: tuple[float, ...] = (),
) -> Growth:
    """λ_m of the nonlinearity x ↦ φ(γ x + β) for batches of m, or for infinitely large ones (m None).

    λ_m = m/(m-3) · {E φ'₁² - E φ'₁²(1 + u₁²)/m + E φ'₁φ'₂(1 + u₁u₂)/m} / (E φ₁² - E φ₁φ₂), by quadrature;
    λ_∞ = E φ'(g)² / Var φ(g), g standard normal. σ_w², σ_b² and the width cancel. Derivation: chapter
    batch-norm/gradient-explosion. panels, kinks:
    more points, and where φ' jumps, for a φ that needs them. Errors: BnbookError for m below 4 (E 1/s² is
    infinite), a constant φ, an unknown name.
    """
    if m is not None and (not isinstance(m, int) or m < 4):
        raise BnbookError(
            f"batch size {m!r}; expected a whole number of at least 4 (below, E 1/s² is infinite), or None"
        )
    function = activation(phi)
    if m is None:
        x, weight = _normal_nodes(kinks)
        value, slope = _value_and_slope(function, x, gamma, beta)
        spread = float(weight @ value**2 - (weight @ value) ** 2)
        through = constant = float(weight @ slope**2)
        factor = 1.0
    else:
        first, second, weight, inner = _sphere_nodes(m, panels, kinks)
        value, slope = _value_and_slope(function, first, gamma, beta)
        other, other_slope = _value_and_slope(function, second, gamma, beta)
        spread = float(weight @ (value**2 - value * (other @ inner)))
        pairs = weight @ (slope * (other_slope @ inner + first * ((other_slope * second) @ inner)))
        constant = float(weight @ slope**2)
        through = constant + float(pairs - weight @ (slope**2 * (1 + first**2))) / m
        factor = m / (m - 3)
    if not spread > 1e-14 * max(1.0, float(weight @ value**2)):
        raise BnbookError(
            "the nonlinearity is constant on these inputs: no gradient to speak of; expected another"
        )
    return Growth(factor * through / spread, factor * constant / spread, spread)


def linear_growth(m: np.ndarray | int) -> np.ndarray:
    """(m-2)/(m-3): a network without nonlinearity, and the least that any nonlinearity can have (Poincaré's
    inequality)."""
    m = np.asarray(m, dtype=float)
    return (m - 2) / (m - 3)


def relu_growth(m: np.ndarray | int) -> np.ndarray:
    """ReLU: m/(m-3) · {1/2 - 1/m + (k₀(c) + k₁(c))/m} / (1/2 - k₁(c)), → π/(π-1).

    k₀, k₁: the means of the product of two steps and of two ReLUs (`step_product`, `relu_product`). They are
    Gaussian integrals that hold on the sphere, for a product of ReLUs is homogeneous of degree 2 and one of
    steps of degree 0.
    """
    m = np.asarray(m, dtype=float)
    c = -1 / (m - 1)
    return m / (m - 3) * (0.5 - 1 / m + (step_product(c) + relu_product(c)) / m) / (0.5 - relu_product(c))


def residual_profile(one: Growth, depth: int, start: float = 1.0) -> np.ndarray:
    """‖δ^l‖²/‖δ^L‖² for x^(l+1) = x^l + W φ(BN(x^l)), l = 1 … L: a power of the depth in place of an
    exponential.

    v_l = start + (l-1) V is the centred variance of x^l in units of σ_w², and each layer multiplies by 1 + λ
    V / v_l, so that the product grows like L^λ. start: the centred mean square of the input.
    """
    below = start + np.arange(depth - 1) * one.spread
    steps = np.log1p(one.through * one.spread / below)
    return np.exp(np.append(np.cumsum(steps[::-1])[::-1], 0.0))


def _value_and_slope(
    function: Function, x: np.ndarray, gamma: float, beta: float
) -> tuple[np.ndarray, np.ndarray]:
    """φ(γx + β) and its derivative by x, from autograd: no derivative is written down twice."""
    at = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    value = function(gamma * at + beta)
    if not value.requires_grad:
        return value.numpy(), np.zeros_like(x)
    (slope,) = torch.autograd.grad(value.sum(), at)
    return value.detach().numpy(), slope.numpy()


def _panels(edge: float, panels: int, kinks: np.ndarray, order: int = ORDER) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Gauss and Legendre on panels of (-edge, edge), equal ones but that none has a
    kink inside."""
    x, w = np.polynomial.legendre.leggauss(order)
    edges = np.unique(np.concatenate([np.linspace(-edge, edge, panels + 1), kinks[np.abs(kinks) < edge]]))
    half = np.diff(edges)[:, None] / 2
    return ((edges[:-1, None] + half) + half * x).ravel(), (half * w).ravel()


def _normal_nodes(kinks: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    x, w = _panels(12.0, 40 * PANELS, np.array(kinks))
    w = w * np.exp(-x * x / 2)
    return x, w / w.sum()


def _coordinate(power: int, panels: int, kinks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One coordinate sin θ of a point on a sphere, density cos^power θ: power = dimension of the space -
    2."""
    angles = np.arcsin(kinks[np.abs(kinks) < 1])
    theta, w = _panels(min(math.pi / 2, 12 / math.sqrt(power + 1)), panels, angles)
    w = w * np.cos(theta) ** power
    return np.sin(theta), w / w.sum()


def _sphere_nodes(
    m: int, panels: int, kinks: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """u_1 (P,), u_2 given it (P, Q), and their weights (P,), (Q,): two values of one unit over a batch of
    m."""
    radius, c = math.sqrt(m - 1), -1 / (m - 1)
    t, weight = _coordinate(m - 3, panels, np.array(kinks) / radius)
    r, inner = _coordinate(m - 4, panels, np.array(()))
    second = c * t[:, None] + math.sqrt(1 - c * c) * np.sqrt(1 - t * t)[:, None] * r
    return radius * t, radius * second, weight, inner
