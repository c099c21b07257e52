"""The spectrum of a symmetric operator that is known by its products alone, and the Hessian and the Gauss-Newton
matrix of a network as such operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.functional import Batch, Loss
from bnbook.probes.krylov import Krylov, Product
from bnbook.probes.statistics import copied

MATRICES = ("hessian", "gauss_newton")


@dataclass(frozen=True)
class Top:
    """The largest eigenvalues as a Krylov space has them, the largest first."""

    values: np.ndarray  # (K,)
    vectors: Tensor  # (K, N)  orthonormal rows
    residuals: np.ndarray  # (K,)  ‖A v - λ v‖


def quadrature(found: Krylov) -> tuple[np.ndarray, np.ndarray]:
    """Nodes θ_i and weights w_i (k,) with Σ w_i p(θ_i) = q^T p(A) q for polynomials p of degree below 2k.

    q is the start at length 1, θ_i are T's eigenvalues, w_i the squares of the first entries of its eigenvectors.
    Source: Golub and Welsch 1969; Golub and Meurant, Matrices, Moments and Quadrature, chapter 6.
    """
    values, vectors = found.eigen
    return values, vectors[0] ** 2


def density(nodes: np.ndarray, weights: np.ndarray, places: np.ndarray, width: float) -> np.ndarray:
    """Spectral density at `places` (X,) on the axis x = asinh(λ / width): mean over probes of Σ w_i g(x - x_i).

    nodes and weights (V, k) of V probes; the axis is linear near 0 and logarithmic beyond. g is Gaussian, its standard
    deviation the distance of two places, so that the sum over evenly spaced places times that distance is 1. Source:
    Lin, Saad and Yang 2016, section 3.2 (stochastic Lanczos quadrature), here on another axis.
    """
    spread = float(places[1] - places[0])
    away = (places[:, None, None] - np.arcsinh(nodes / width)) / spread
    peaks = np.exp(-(away**2) / 2) / (spread * np.sqrt(2 * np.pi))
    return (peaks * weights).sum(axis=2).mean(axis=1)


def top(found: Krylov, count: int) -> Top:
    """The `count` largest Ritz values, their vectors, and ‖A v - λ v‖ = β_k |s_k|, s the eigenvector of T.

    Errors: BnbookError for a space of fewer dimensions.
    """
    if len(found.alphas) < count:
        raise BnbookError(f"{count} eigenvalues of {len(found.alphas)} steps; expected more steps")
    values, vectors = found.eigen
    chosen = vectors[:, ::-1][:, :count]
    rows = torch.as_tensor(chosen.T.copy()).to(found.basis) @ found.basis
    return Top(values[::-1][:count].copy(), rows, found.betas[-1] * np.abs(chosen[-1]))


def share(vector: Tensor, vectors: Tensor) -> float:
    """‖V v‖² / ‖v‖², the share of v (N,) in the span of orthonormal rows V (K, N); NaN for a v of length 0."""
    square = float(vector.double() @ vector.double())
    return float((vectors.double() @ vector.double()).square().sum()) / square if square else float("nan")


def trace(product: Product, basis: Tensor, probes: Tensor, within: float | None = None) -> float:
    """tr A = tr Q^T A Q + tr P A P, P = I - Q Q^T; the first exact, the second by probes z, mean of (Pz)^T A P z.

    basis (k, N): orthonormal rows Q^T; probes (V, N): entries ±1, drawn apart from the basis, so that the estimate
    has no bias. within: tr Q^T A Q where it is known, such as the sum of a `Krylov`'s alphas. Source: Meyer, Musco,
    Musco and Woodruff 2021, Algorithm 1 (Hutch++), with a basis that is given.
    """
    if within is None:
        within = sum(float(q.double() @ product(q).double()) for q in basis)
    outside = [z - basis.T @ (basis @ z) for z in probes]
    return within + sum(float(z.double() @ product(z).double()) for z in outside) / len(probes)


def signs(count: int, size: int, seed: int) -> Tensor:
    """Probes (count, size) of independent ±1."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, (count, size), generator=generator).float() * 2 - 1


@dataclass(frozen=True)
class Curvature:
    """Second derivatives of a network's loss at its parameters θ (N,), as products."""

    gradient: Tensor  # (N,)  ∇L
    loss: float
    product: Product  # u -> A u


@contextmanager
def curvature(
    model: nn.Module,
    loss: Loss,
    batch: Batch,
    matrix: str = "hessian",
    statistics: str = "batch",
    parts: int = 1,
) -> Iterator[Curvature]:
    """The Hessian ∇²L or the Gauss-Newton matrix J^T (∇²ℓ) J of a batch's loss, over all trained parameters.

    H u = ∇⟨∇L, u⟩ (Pearlmutter 1994); G u = J^T (∇²ℓ(z) (J u)) (Schraudolph 2002), z (B, outputs) the network's
    answers, J their Jacobian over θ, ℓ the loss as a function of z. statistics: "batch", "detached" or "population" as in
    `bnbook.probes.statistics.copied`; with "batch" both matrices hold what flows through mean and
    variance. parts: the batch is cut into as many, and gradient, loss and products are means over them: without
    batch norm the same matrix, with it that of smaller batches. The model is left as it was.
    Errors: BnbookError for an unknown matrix, parts that the batch does not have, a loss that is not finite.
    """
    if matrix not in MATRICES:
        raise BnbookError(f"matrix {matrix!r} is unknown; expected one of {', '.join(MATRICES)}")
    inputs, targets = batch
    if len(inputs) % parts:
        raise BnbookError(f"{parts} parts of {len(inputs)} examples; expected a divisor")
    with copied(model, statistics, loss) as [twin, own]:
        leaves = [p for p in twin.parameters() if p.requires_grad]
        size = len(inputs) // parts
        built = []
        for x, y in zip(inputs.split(size), targets.split(size)):
            found = twin(x)
            built.append(_Graph(leaves, found, own(found, y), own, y, matrix))

        def product(u: Tensor) -> Tensor:
            return sum(one.product(u) for one in built) / parts

        value = sum(float(one.value.detach()) for one in built) / parts
        if not np.isfinite(value):
            raise BnbookError(f"a loss of {value}; expected a finite number")
        yield Curvature(sum(one.gradient.detach() for one in built) / parts, value, product)


class _Graph:
    """First derivatives of one batch, on a graph that is built once."""

    def __init__(
        self, leaves: list[Tensor], outputs: Tensor, value: Tensor, loss: Loss, targets: Tensor, matrix: str
    ) -> None:
        self.leaves, self.outputs, self.value, self.matrix = leaves, outputs, value, matrix
        gradients = self._grad(value, None, create_graph=matrix == "hessian", retain_graph=True)
        self.gradient = _flat(gradients)
        if matrix == "gauss_newton":
            self.answers = outputs.detach().requires_grad_()
            (self.slope,) = torch.autograd.grad(loss(self.answers, targets), self.answers, create_graph=True)
            self.weight = torch.zeros_like(outputs, requires_grad=True)
            self.pulled = _flat(self._grad(outputs, self.weight, create_graph=True))  # J^T w

    def _grad(self, of: Tensor, by: Tensor | None, **more: bool) -> list[Tensor]:
        found = torch.autograd.grad(of, self.leaves, by, allow_unused=True, **more)
        return [torch.zeros_like(p) if g is None else g for p, g in zip(self.leaves, found)]

    def product(self, u: Tensor) -> Tensor:
        """A u, (N,)."""
        if self.matrix == "hessian":
            return _flat(self._grad(self.gradient, u, retain_graph=True))
        (pushed,) = torch.autograd.grad(self.pulled, self.weight, u, retain_graph=True)  # J u
        (weighed,) = torch.autograd.grad(self.slope, self.answers, pushed, retain_graph=True)
        return _flat(self._grad(self.outputs, weighed, retain_graph=True))


def _flat(pieces: Sequence[Tensor]) -> Tensor:
    return torch.cat([piece.flatten() for piece in pieces])
