"""ℓp normalization: centre every unit and divide by the average norm that its values had before."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bnbook.errors import BnbookError
from bnbook.normalizers.base import BatchNormalizer, batch_axes, rescaled, wide


def lp_statistics(x: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Each unit's mean, (C,), and its mean of |x|^p (p = 1, 2) or maximum of |x| (p = infinity), (C,)."""
    axes = batch_axes(x)
    if p == 1:
        return x.mean(axes), x.abs().mean(axes)
    return x.mean(axes), (x * x).mean(axes) if p == 2 else x.abs().amax(axes)


def lp_norm(power: Tensor, p: float, eps: float) -> Tensor:
    """The average norm, (mean |x|^p + eps)^(1/p); for infinity max |x| + eps."""
    return (power + eps).sqrt() if p == 2 else power + eps


class LpNorm(BatchNormalizer):
    """Centre every unit, divide by the average ℓp norm its values had before, scale by γ and shift by β.

    y = γ (x - μ) / n + β, n = (mean |x|^p + eps)^(1/p) for p = 1, 2, n = max |x| + eps for p = infinity; mean
    and maximum run over batch and positions. For p = 2 and centred input this is batch norm, eps included.
    Gradients flow through both statistics.
    Inference: running averages of μ and of mean |x|^p (of the batch's maximum for infinity), the root taken
    at the end. There is no m/(m-1): no estimated mean is subtracted inside, so the batch's mean of |x|^p is
    already right on average. A maximum is not: it grows with the batch, and the running one belongs to the
    batch size trained with.
    Source: Santurkar et al. 2018, section 3.4 (arXiv v1), 3.3 (NeurIPS), in this book's reading.
    """

    def __init__(
        self, features: int, dim: int = 0, p: float = 2, eps: float = 1e-5, momentum: float | None = 0.1
    ) -> None:
        if p not in (1, 2, math.inf):
            raise BnbookError(f"unknown p {p!r} of an lp normalization; expected 1, 2 or infinity")
        super().__init__(features, dim, eps, momentum)
        self.p = p
        self.register_buffer("running_power", torch.ones(features))

    @property
    def running_norm(self) -> Tensor:
        """The average norm used at inference, (C,), eps included."""
        return lp_norm(self.running_power, self.p, self.eps)

    def forward(self, x: Tensor) -> Tensor:
        self.check(x)
        if not self.training:
            return rescaled(x, self.running_mean, self.weight / self.running_norm, self.bias)
        y, mean, power = _LpTransform.apply(x, self.weight, self.bias, self.p, self.eps)
        new = self.next_average_weight()
        self.running_mean.mul_(1 - new).add_(new * mean.detach())
        self.running_power.mul_(1 - new).add_(new * power.detach())
        return y

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, p={self.p}"


class _LpTransform(torch.autograd.Function):
    """The training transform with its backward pass by hand: autograd's own takes two to three times as long.

    With m values a unit and G_y the incoming gradient: G_β = Σ G_y, G_γ = Σ G_y (x - μ) / n,
    G_μ = -(γ/n) G_β, G_n = -(γ/n) G_γ and G_x = (γ/n) G_y + G_μ / m + G_n ∂n/∂x, where ∂n/∂x is sign(x)/m for
    p = 1, x/(m n) for p = 2, and sign(x) shared evenly among the places of the maximum for infinity.
    """

    generate_vmap_rule = True  # torch.func may stack many members of one small network

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor, p: float, eps: float) -> tuple[Tensor, ...]:
        mean, power = lp_statistics(x, p)
        return rescaled(x, mean, weight / lp_norm(power, p, eps), bias), mean, power

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        x, weight, _, ctx.p, ctx.eps = inputs
        _, mean, power = output
        ctx.save_for_backward(x, weight, mean, power)
        ctx.mark_non_differentiable(mean, power)

    @staticmethod
    def backward(ctx, grad_y: Tensor, _mean: None, _power: None):
        x, weight, mean, power = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative they must be functions of x
            mean, power = lp_statistics(x, ctx.p)
        axes, m = batch_axes(x), x.numel() // x.shape[1]
        norm = lp_norm(power, ctx.p, ctx.eps)
        scale = weight / norm
        grad_bias = grad_y.sum(axes)
        grad_weight = ((grad_y * x).sum(axes) - mean * grad_bias) / norm
        grad_norm = -scale * grad_weight
        if ctx.p == 1:
            direction, factor = x.sign(), grad_norm / m
        elif ctx.p == 2:
            direction, factor = x, grad_norm / (m * norm)
        else:
            at_maximum = x.abs() == wide(power, x)
            direction, factor = x.sign() * at_maximum, grad_norm / at_maximum.sum(axes)
        through_statistics = torch.addcmul(wide(-scale * grad_bias / m, x), direction, wide(factor, x))
        return torch.addcmul(through_statistics, grad_y, wide(scale, x)), grad_weight, grad_bias, None, None
