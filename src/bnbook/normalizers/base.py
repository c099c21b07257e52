"""What all normalizers share: the shape of their input, γ and β, and running averages for inference."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError


def wide(per_unit: Tensor, x: Tensor) -> Tensor:
    """View a value per unit, (C,), so that it broadcasts over x, (B, C) or (B, C, H, W)."""
    return per_unit.view((1, -1) + (1,) * (x.dim() - 2))


def batch_axes(x: Tensor) -> tuple[int, ...]:
    """The axes over which a unit's values are pooled: the batch, and every position of a feature map."""
    return (0,) + tuple(range(2, x.dim()))


def rescaled(x: Tensor, mean: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """scale (x - mean) + shift, a value of each per unit, (C,)."""
    return torch.addcmul(wide(shift - mean * scale, x), x, wide(scale, x))


class Normalizer(nn.Module):
    """A layer over (B, C), dim=0, or (B, C, H, W), dim=2; a unit is one of the C columns or channels.

    Errors: BnbookError for another shape.
    """

    def __init__(self, features: int, dim: int) -> None:
        super().__init__()
        self.features = features
        self.dim = dim

    def add_affine(self) -> None:
        """Give every unit a trained scale γ (`weight`, first 1) and shift β (`bias`, first 0)."""
        self.weight = nn.Parameter(torch.ones(self.features))
        self.bias = nn.Parameter(torch.zeros(self.features))

    def check(self, x: Tensor) -> None:
        """Refuse an input that has not this layer's shape."""
        if x.dim() != self.dim + 2 or x.shape[1] != self.features:
            expected = f"(B, {self.features})" if self.dim == 0 else f"(B, {self.features}, H, W)"
            raise BnbookError(
                f"{type(self).__name__} got an input of shape {tuple(x.shape)}; expected {expected}; "
                "give make_normalizer the features and the dim (0 or 2) of the layer before it"
            )

    def extra_repr(self) -> str:
        return f"{self.features}, dim={self.dim}"


class BatchNormalizer(Normalizer):
    """A normalizer that pools over the batch in training and keeps running averages for inference.

    After each training forward, with the statistic t of that batch, running ← (1 - w) running + w t;
    w is `momentum`, or 1/k at the k-th batch when momentum is None (the plain average of all batches so far).
    Errors: BnbookError for one value per unit in training: its deviation from its own mean is always 0.
    """

    def __init__(self, features: int, dim: int, eps: float, momentum: float | None) -> None:
        super().__init__(features, dim)
        if momentum is not None and not 0 < momentum <= 1:
            raise BnbookError(f"momentum {momentum} of running averages; expected 0 < momentum <= 1, or None")
        self.eps = eps
        self.momentum = momentum
        self.add_affine()
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def check(self, x: Tensor) -> None:
        super().check(x)
        if self.training and x.numel() == self.features:
            raise BnbookError(
                f"{type(self).__name__} got one value per unit, shape {tuple(x.shape)}, in training; "
                "expected two or more over batch and positions; use a larger batch, or model.eval()"
            )

    def next_average_weight(self) -> float:
        """Count one more training batch and return its weight w in the running averages."""
        self.num_batches_tracked.add_(1)
        return 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, eps={self.eps:g}, momentum={self.momentum}"
