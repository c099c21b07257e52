"""Lanczos iteration: a symmetric matrix that is known by its products alone, in the space that they span."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bnbook.errors import BnbookError

Product = Callable[[Tensor], Tensor]  # u (N,) -> A u (N,), A symmetric


@dataclass(frozen=True)
class Krylov:
    """k steps of Lanczos iteration: A Q = Q T + β_k q_{k+1} e_k^T."""

    basis: Tensor  # (k, N)  orthonormal rows q_1, …, q_k: Q^T
    alphas: np.ndarray  # (k,)  diagonal of T
    betas: np.ndarray  # (k,)  T's second diagonal, and β_k, what is left at the end

    @property
    def eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of T, ascending (k,), and its eigenvectors in columns (k, k)."""
        off = self.betas[:-1]
        return np.linalg.eigh(np.diag(self.alphas) + np.diag(off, 1) + np.diag(off, -1))


def krylov(product: Product, start: Tensor, steps: int) -> Krylov:
    """Lanczos iteration from `start` (N,) with a basis that is kept orthogonal in full.

    A q_j = β_{j-1} q_{j-1} + α_j q_j + β_j q_{j+1}. It ends early where the space is invariant. Source: Golub and
    Van Loan, Matrix Computations, section 10.1. Errors: BnbookError for a start of length 0 or a product that is
    not finite.
    """
    if not float(start.norm()) > 0:
        raise BnbookError("a start of length 0; expected a vector that is not 0")
    q, rows, alphas, betas = start / start.norm(), [], [], []
    for _ in range(min(steps, len(start))):
        rows.append(q)
        r = _left(product, rows, alphas, betas)
        if not np.isfinite(betas[-1]):
            raise BnbookError("a product that is not finite; expected a training that has not diverged")
        if _spent(q, alphas, betas):
            break
        q = r / betas[-1]
    return Krylov(torch.stack(rows), np.array(alphas), np.array(betas))


@dataclass(frozen=True)
class Ritz:
    """What k steps of Lanczos iteration know of the eigenvalues of A."""

    values: np.ndarray  # (k,)  of T, ascending
    away: np.ndarray  # (k,)  ‖A v - θ v‖ of each
    left: float  # β_k: 0 where the space is invariant
    rows: list[Tensor]  # the basis, q_1, …, q_k
    weights: Tensor  # (k,)  of these in the v of the last one

    @property
    def vector(self) -> Tensor:
        """v of the last one, (N,), of length 1."""
        basis = torch.stack(self.rows)
        return basis.T @ self.weights.to(basis)


def ritz(product: Product, start: Tensor, steps: int) -> Iterator[Ritz]:
    """The same iteration, step by step, from a start that is mixed with a fixed random vector, so that it is orthogonal
    to no eigenvector. A start of n entries needs at most n steps. It ends with nan where a product is not finite."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(len(start), generator=generator, dtype=torch.float64).to(start)
    q = start / start.norm() + 0.3 * noise / noise.norm()
    rows, alphas, betas = [q / q.norm()], [], []
    for _ in range(min(steps, len(start))):
        r = _left(product, rows, alphas, betas)
        if not np.isfinite(betas[-1]):
            lost = np.full(len(rows), np.nan)
            yield Ritz(lost, lost, np.nan, rows, torch.from_numpy(lost))
            return
        tridiagonal = torch.diag(torch.tensor(alphas, dtype=torch.float64))
        off = torch.tensor(betas[:-1], dtype=torch.float64)
        tridiagonal += torch.diag(off, 1) + torch.diag(off, -1)
        values, vectors = torch.linalg.eigh(tridiagonal)
        weights = vectors[:, -1]
        left = 0.0 if _spent(q, alphas, betas) else betas[-1]
        yield Ritz(values.numpy(), betas[-1] * vectors[-1].abs().numpy(), left, rows, weights)
        if left == 0:
            return
        rows.append(r / betas[-1])


def lanczos(
    product: Product, start: Tensor, tolerance: float, max_iterations: int
) -> tuple[float, Tensor, float, int]:
    """Largest eigenvalue of a symmetric operator: value, unit vector, ‖A v - λ v‖ / λ, iterations.

    The iteration of `ritz`, until the residual is small. By hand: the basis stays on the model's device and in its
    precision, and the residual is part of the answer; SciPy's `eigsh` has neither. The value is nan where a product is
    not finite.
    """
    for iteration, found in enumerate(ritz(product, start, max_iterations), 1):
        value = float(found.values[-1])
        residual = float(found.away[-1]) / max(abs(value), 1e-300)
        if not residual > tolerance or found.left == 0 or iteration == len(start):
            return value, found.vector, residual, iteration
    raise BnbookError(
        f"the largest eigenvalue is known to {residual:.1e} after {iteration} iterations, {tolerance:g} was "
        "asked for; "
        "raise max_iterations or tolerance"
    )


def _spent(q: Tensor, alphas: list[float], betas: list[float]) -> bool:
    """Whether what is left is rounding: the space is invariant."""
    return betas[-1] <= 10 * torch.finfo(q.dtype).eps * max(map(abs, alphas))


def _left(product: Product, rows: list[Tensor], alphas: list[float], betas: list[float]) -> Tensor:
    """What is left of A q, q the last row, at right angles to all rows; its length and ⟨q, A q⟩ are added."""
    r = product(rows[-1])
    alphas.append(float(rows[-1] @ r))
    basis = torch.stack(rows)
    for _ in range(2):  # twice is enough
        r = r - basis.T @ (basis @ r)
    betas.append(float(r.norm()))
    return r
