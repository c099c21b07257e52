"""The six printed gradients against automatic differentiation, and that against finite differences."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from bnbook.normalizers.formulas import batch_norm_backward, batch_norm_forward

#: What the six formulas differentiate by, as `batch_norm_backward` names it.
FORMULAS = ("x_hat", "gamma", "beta", "variance", "mean", "x")


def loss_of(y: Tensor, w: Tensor) -> Tensor:
    """Σ w log cosh y of each unit (and a constant), written so that no y overflows; (m, C) -> (C,)."""
    return (w * (F.softplus(2 * y) - y)).sum(0)


def by_autograd(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: Tensor, w: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """∂ℓ/∂y and the six gradients of `loss_of` by automatic differentiation of the transform's definition."""
    x, gamma, beta = (value.clone().requires_grad_() for value in (x, gamma, beta))
    mean = x.mean(0)
    variance = ((x - mean) ** 2).mean(0)
    x_hat = (x - mean) / (variance + eps).sqrt()
    y = gamma * x_hat + beta
    steps = (x_hat, gamma, beta, variance, mean, x)
    dl_dy, *grads = torch.autograd.grad(loss_of(y, w).sum(), [y, *steps])
    return dl_dy, dict(zip(FORMULAS, grads))


def sizes_of_terms(dl_dy: Tensor, x: Tensor, gamma: Tensor, eps: Tensor) -> dict[str, Tensor]:
    """For each formula the sum of the absolute values of its terms: what its rounding error is proportional
    to."""
    m, centred = len(x), (x - x.mean(0)).abs()
    deviation = ((centred**2).mean(0) + eps) ** 0.5
    dl_dx_hat = (dl_dy * gamma).abs()
    variance = (dl_dx_hat * centred).sum(0) / 2 / deviation**3
    mean = dl_dx_hat.sum(0) / deviation + variance * 2 * centred.sum(0) / m
    dl_dx = dl_dx_hat / deviation + variance * 2 * centred / m + mean / m
    dl_dgamma, dl_dbeta = (dl_dy.abs() * centred).sum(0) / deviation, dl_dy.abs().sum(0)
    return dict(zip(FORMULAS, (dl_dx_hat, dl_dgamma, dl_dbeta, variance, mean, dl_dx)))


def slope_errors(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: Tensor, w: Tensor, dl_dx: Tensor, size: Tensor, g: Generator
) -> Tensor:
    """Error of each unit's slope along a random direction against a central difference, relative to the
    terms, (C,)."""
    x = x - x.mean(0)  # same slope; a large offset would round the small step away
    step = torch.randn(x.shape, generator=g, dtype=x.dtype) * (x.var(0, correction=0) + eps) ** 0.5
    ahead, behind = (loss_of(batch_norm_forward(x + h * step, gamma, beta, eps).y, w) for h in (1e-5, -1e-5))
    return ((ahead - behind) / 2e-5 - (dl_dx * step).sum(0)) / (size * step.abs()).sum(0)


def single_precision_errors(x: Tensor, gamma: Tensor, beta: Tensor, eps: Tensor, w: Tensor) -> Tensor:
    """Error of the formula for ∂ℓ/∂x with all arithmetic in float32, relative to its terms, (m, C)."""
    x, gamma, beta, eps, w = (value.float() for value in (x, gamma, beta, eps, w))
    dl_dy, auto = by_autograd(x, gamma, beta, eps, w)
    return (batch_norm_backward(dl_dy, x, gamma, eps)["x"] - auto["x"]) / sizes_of_terms(
        dl_dy, x, gamma, eps
    )["x"]
