"""A quadratic problem, seen through the two moments of its data: S = E[x xᵀ] and u = E[-y x]."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bnbook.errors import BnbookError

#: Kinds of random problems with their first direction; all but the first are meant to be nasty.
KINDS = ("random", "u slowest", "u fastest", "w orthogonal", "round", "clusters", "plane", "scaled")


@dataclass(frozen=True)
class Quadratic:
    """f(w̃) = 2 uᵀw̃ + w̃ᵀSw̃, at least -uᵀS⁻¹u. BnbookError unless S is symmetric positive definite."""

    S: np.ndarray  # (d, d)
    u: np.ndarray  # (d,)

    def __post_init__(self) -> None:
        if self.S.shape != (len(self.u), len(self.u)) or not np.allclose(self.S, self.S.T, rtol=1e-10):
            raise BnbookError(
                f"S of shape {self.S.shape} for u of length {len(self.u)}; expected a symmetric (d, d)"
            )
        if not self.smallest > 0:
            raise BnbookError(
                f"the smallest eigenvalue of S is {self.smallest:.3g}; expected a positive definite S"
            )

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        return np.linalg.eigvalsh(self.S)  # (d,), smallest first

    @property
    def smallest(self) -> float:
        """μ"""
        return float(self.eigenvalues[0])

    @property
    def largest(self) -> float:
        """L"""
        return float(self.eigenvalues[-1])

    @property
    def rate(self) -> float:
        """1 - μ/L, never below 0 (rounding)."""
        return max(0.0, 1 - self.smallest / self.largest)

    @cached_property
    def direction(self) -> np.ndarray:
        """S⁻¹u (d,): the line on which the optimum -S⁻¹u lies."""
        return np.linalg.solve(self.S, self.u)

    @cached_property
    def whitening(self) -> np.ndarray:
        """S^(-1/2), (d, d): in whitened weights all directions are alike."""
        values, basis = np.linalg.eigh(self.S)
        return (basis / np.sqrt(values)) @ basis.T

    @cached_property
    def attainable(self) -> float:
        """uᵀS⁻¹u = -min f"""
        return float(self.u @ self.direction)

    def value(self, weight: np.ndarray) -> np.ndarray:
        """f(w̃) for w̃ (..., d)."""
        return 2 * weight @ self.u + np.einsum("...i,ij,...j->...", weight, self.S, weight)

    def gradient(self, weight: np.ndarray) -> np.ndarray:
        """∇f(w̃) = 2 (u + S w̃), (d,)."""
        return 2 * (self.u + self.S @ weight)

    def excess(self, weight: np.ndarray) -> np.ndarray:
        """f(w̃) - min f = ‖w̃ + S⁻¹u‖²_S without cancellation, for w̃ (..., d)."""
        error = weight + self.direction
        return np.einsum("...i,ij,...j->...", error, self.S, error)


def from_examples(x: np.ndarray, y: np.ndarray) -> Quadratic:
    """The problem of least squares on examples x (m, d), y (m,): E[(y - xᵀw̃)²] = E[y²] + f(w̃)."""
    if x.ndim != 2 or y.shape != (len(x),):
        raise BnbookError(f"x of shape {x.shape} and y of shape {y.shape}; expected (m, d) and (m,)")
    return Quadratic(x.T @ x / len(x), -(x.T @ y) / len(x))


def draw_quadratic(
    rng: np.random.Generator, kind: str, condition: float | None = None, size: int | None = None
):
    """A random problem and a first direction w₀ (d,) of one of KINDS; condition L/μ up to 10⁴, d = 2 to 30
    unless given.

    "u slowest/fastest": u is the eigenvector of μ or of L; "w orthogonal": uᵀw₀ is 10⁻⁶ of its largest
    possible value; "round": S is a multiple of the identity; "clusters": all eigenvalues μ or L; "scaled": S
    and u times 10^±3.
    """
    if kind not in KINDS:
        raise BnbookError(f"unknown kind of problem {kind!r}; expected one of {', '.join(KINDS)}")
    d = size or (2 if kind == "plane" else int(rng.integers(2, 31)))
    condition = condition or 10 ** rng.uniform(0, 4)
    spectrum = np.concatenate([[0.0, 1.0], rng.uniform(0, 1, d - 2)])
    if kind == "clusters":
        spectrum = np.round(spectrum)
    spectrum = np.ones(d) if kind == "round" else condition ** (spectrum - 1)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    scale = 10.0 ** rng.uniform(-3, 3) if kind == "scaled" else 1.0
    S = (basis * (scale * spectrum)) @ basis.T
    u, w = rng.standard_normal(d), rng.standard_normal(d)
    u = {"u slowest": basis[:, 0], "u fastest": basis[:, 1]}.get(kind, u) * (
        1000 * scale if kind == "scaled" else 1
    )
    problem = Quadratic((S + S.T) / 2, u)
    if kind == "w orthogonal":
        best = problem.direction / np.sqrt(problem.attainable)  # ‖best‖_S = 1
        w = w - (u @ w) / problem.attainable * problem.direction
        w = w / np.sqrt(w @ problem.S @ w) + 1e-6 * best
    return problem, w
