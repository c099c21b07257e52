"""Layers under a quadratic loss with a chosen gradient and a chosen Hessian at the normalized values.

L(z) = <a, z - z₀> + ½ (z - z₀)ᵀ Q (z - z₀), z₀ the layer's own output: so g = a and H = Q there, whatever is
chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from bnbook.studies.theorems.instances import Instance, batch_norm

FAMILIES = ("any", "rank-one", "isotropic", "any", "reaching")


@dataclass(frozen=True)
class Curved:
    """An instance together with what was chosen."""

    instance: Instance
    slope: np.ndarray  # (m, J) the gradient at z
    curvature: np.ndarray  # (m, J, m, J) the Hessian at z
    family: str

    @property
    def equal_cosines(self) -> bool:
        """Whether it meets v1's assumption on d: an input has the same cosine with every column of H."""
        signs = self.family == "isotropic" and bool((np.abs(self.instance.x) == 1).all())
        return signs or self.family == "rank-one"


def draw_curved(rng: np.random.Generator, number: int, *, gamma: float | None = None) -> Curved:
    """Instance `number` with centred inputs; families of Hessians go round.

    "rank-one": every pair of units has H = a bᵀ, the case in which v1's step from d to the plain network is
    right; with m = 16 it is nearly flat. "isotropic": H = h I for every pair, and with m = 4, 8 inputs of ±1
    only, which meet v1's assumption on d exactly. "reaching": x = x2 = g = ŷ/√3 + √(2/3) p, where the second
    term is as large as it can be. `gamma` None: at random.
    """
    family = FAMILIES[number % len(FAMILIES)]
    m = (4, 8, 3, 16)[number // len(FAMILIES) % 4]
    x = rng.standard_normal((m, 3))
    if family == "isotropic" and m in (4, 8):
        x = _signs(m)[:, rng.choice(np.arange(1, m), 3, replace=False)] * rng.choice((-1.0, 1.0), 3)
    x = x - x.mean(0)
    w = rng.standard_normal((3, 2)) * 10 ** rng.uniform(-1, 1)
    slope = rng.standard_normal((m, 2)) * 10 ** rng.uniform(-2, 1)
    if family == "reaching":
        u = rng.standard_normal((m, 2))
        u = u - u.mean(0)
        u = u / np.sqrt((u * u).sum(0))
        p = rng.standard_normal(m)
        p = p - p.mean() - u[:, 0] * (u[:, 0] @ p)
        x[:, 0] = x[:, 1] = (u[:, 0] + np.sqrt(2 / (p @ p)) * p) / np.sqrt(3)
        x[:, 2] = u[:, 0] - 0.7 * x[:, 0]  # so that y_0 can be u_0
        w[:, 0] = (0.3, 0.4, 1.0)
        slope[:, 0] = x[:, 0] * 10 ** rng.uniform(-1, 1)
    scales = rng.choice((-1.0, 1.0), 2) * 10 ** rng.uniform(-1, 1, 2) if gamma is None else np.full(2, gamma)
    shifts = rng.standard_normal(2) if gamma is None else np.zeros(2)
    curvature = _curvature(rng, family, m) * 10 ** rng.uniform(-2, 2)
    if family == "rank-one" and m == 16:
        curvature = curvature / 1000  # flat beside its slope
    z0 = batch_norm(torch.tensor(x @ w), scales, shifts)
    a, q = torch.tensor(slope), torch.tensor(curvature)

    def loss(z: torch.Tensor) -> torch.Tensor:
        away = z - z0
        return (a * away).sum() + torch.einsum("bj,bjqk,qk->", away, q, away) / 2

    return Curved(Instance(x, w, scales, shifts, loss, family), slope, curvature, family)


def _curvature(rng: np.random.Generator, family: str, m: int) -> np.ndarray:
    size = 2 * m
    if family == "rank-one":
        a = rng.standard_normal(size)
        return rng.choice((-1.0, 1.0)) * np.outer(a, a).reshape(m, 2, m, 2) / size
    if family == "isotropic":
        pair = rng.standard_normal((2, 2))
        return np.einsum("bq,jk->bjqk", np.identity(m), pair + pair.T)
    root = rng.standard_normal((size, size))
    return ((root + root.T) / size).reshape(m, 2, m, 2)


def _signs(m: int) -> np.ndarray:
    """Columns of ±1 at right angles, the first constant."""
    one = np.array([[1.0]])
    while len(one) < m:
        one = np.block([[one, one], [one, -one]])
    return one
