"""Batch normalization written out, nothing fused: the transform, its backward pass, its inference form.

Rows are data points, columns are units: x is (m, C). The functions use only arithmetic, `.mean` and `.sum`,
so they take PyTorch tensors and NumPy arrays alike.
Source: encyclopedia, "Batch normalization", section "Procedures".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bnbook.errors import BnbookError

Array = Any  # a PyTorch tensor or a NumPy array


@dataclass(frozen=True)
class Transformed:
    """The transform's output and what it passes through on the way."""

    y: Array  # (m, C)
    x_hat: Array  # (m, C)
    mean: Array  # (C,)
    variance: Array  # (C,), biased


def as_rows(x: Array) -> Array:
    """(B, C, H, W) → (B·H·W, C): every position of every example is a data point; (m, C) stays as it is."""
    return x.swapaxes(1, 2).swapaxes(2, 3).reshape(-1, x.shape[1]) if len(x.shape) == 4 else x


def batch_norm_forward(x: Array, gamma: Array, beta: Array, eps: float = 1e-5) -> Transformed:
    """y = γ x̂ + β, x̂ = (x - μ) / sqrt(σ² + eps), μ = Σ x / m, σ² = Σ (x - μ)² / m ("Transformation")."""
    _check_rows(x)
    mean = x.mean(0)
    variance = ((x - mean) ** 2).mean(0)
    x_hat = (x - mean) / (variance + eps) ** 0.5
    return Transformed(gamma * x_hat + beta, x_hat, mean, variance)


def batch_norm_backward(dl_dy: Array, x: Array, gamma: Array, eps: float = 1e-5) -> dict[str, Array]:
    """The six gradients of a loss ℓ from ∂ℓ/∂y, by the chain rule alone ("Backpropagation").

    Keys: x_hat (m, C), gamma, beta, variance, mean (C,), x (m, C). The gradient for the mean counts both ways
    in which ℓ depends on it, directly and through the variance (a term that is zero up to rounding).
    """
    _check_rows(x)
    m = x.shape[0]
    mean = x.mean(0)
    centred = x - mean
    variance = (centred**2).mean(0)
    deviation = (variance + eps) ** 0.5
    dl_dx_hat = dl_dy * gamma
    dl_dgamma = (dl_dy * centred / deviation).sum(0)
    dl_dbeta = dl_dy.sum(0)
    dl_dvariance = (dl_dy * centred).sum(0) * (-gamma / 2) * (variance + eps) ** -1.5
    dl_dmean = dl_dbeta * (-gamma / deviation) + dl_dvariance * (-2 * centred).sum(0) / m
    dl_dx = dl_dx_hat / deviation + dl_dvariance * 2 * centred / m + dl_dmean / m
    return {
        "x_hat": dl_dx_hat,
        "gamma": dl_dgamma,
        "beta": dl_dbeta,
        "variance": dl_dvariance,
        "mean": dl_dmean,
        "x": dl_dx,
    }


def population_statistics(batches: Iterable[Array]) -> tuple[Array, Array]:
    """Mean and variance of the population, E[μ_B] and m/(m-1) E[σ²_B], from mini-batches of one size m.

    batches: (m, C) or (B, C, H, W) each. Returns (C,), (C,). Source: "Inference".
    Errors: BnbookError for unequal sizes, m < 2, no batch.
    """
    rows = [as_rows(batch) for batch in batches]
    sizes = sorted({len(batch) for batch in rows})
    if len(sizes) != 1 or sizes[0] < 2:
        raise BnbookError(f"batches of {sizes or 'no'} values a unit; expected one size of at least 2")
    m = sizes[0]
    means = [batch.mean(0) for batch in rows]
    variances = [((batch - mean) ** 2).mean(0) for batch, mean in zip(rows, means)]
    return sum(means) / len(rows), m / (m - 1) * sum(variances) / len(rows)


def _check_rows(x: Array) -> None:
    if len(x.shape) != 2 or x.shape[0] < 2:
        raise BnbookError(f"batch norm of rows, shape {tuple(x.shape)}; expected (m, C), m >= 2; use as_rows")
