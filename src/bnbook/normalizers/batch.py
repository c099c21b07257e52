"""Batch normalization, on PyTorch's fused kernel."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bnbook.normalizers.base import BatchNormalizer


class BatchNorm(BatchNormalizer):
    """Fix the mean and the variance of every unit over the batch, then scale by γ and shift by β.

    Training: y = γ (x - μ) / sqrt(σ² + eps) + β, with μ and the biased variance σ² (divided by m) over the m
    values of a unit in the batch, positions counted in. Inference: the running mean and the running variance
    instead; the latter averages m/(m-1) σ², since σ² comes out too small by (m-1)/m on average.
    Source: encyclopedia, "Batch normalization", "Transformation" and "Inference".
    """

    def __init__(self, features: int, dim: int = 0, eps: float = 1e-5, momentum: float | None = 0.1) -> None:
        super().__init__(features, dim, eps, momentum)
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x: Tensor) -> Tensor:
        self.check(x)
        # The fused kernel updates both running averages itself, with the m/(m-1) for the variance.
        average_weight = self.next_average_weight() if self.training else 0.0
        running = self.running_mean, self.running_var
        return F.batch_norm(x, *running, self.weight, self.bias, self.training, average_weight, self.eps)
