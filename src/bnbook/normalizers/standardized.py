"""Weight standardization, a layer's other half: the weights are normalized, and no example or batch is looked at."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bnbook.normalizers.base import BatchNormalizer, batch_axes, rescaled

EPS = 1e-5
#: 1 / deviation of max(0, z), z ~ N(0, 1): a rectified unit times this has variance 1 (Brock et al. 2021, section 4.1).
RECTIFIED = math.sqrt(2 / (1 - 1 / math.pi))


class WeightStandardization(nn.Module):
    """A unit's weights with mean 0 and squares that sum to 1: w ← (v - mean v) / sqrt(I var v + ε), v its I weights.

    For `torch.nn.utils.parametrize.register_parametrization`. The source divides by the deviation, √I times as much;
    Brock et al. 2021 by this, so that uncorrelated inputs of variance 1 give outputs of variance 1. ε = 1e-5.
    Source: Qiao et al. 2019.
    """

    def forward(self, v: Tensor) -> Tensor:
        centred = v - v.mean(tuple(range(1, v.dim())), keepdim=True)
        return centred / (centred.square().sum(tuple(range(1, v.dim())), keepdim=True) + EPS).sqrt()


class Affine(BatchNormalizer):
    """y = g (γ (z - μ) + β), g = sqrt(2 / (1 - 1/π)): scale and shift behind standardized weights.

    μ is 0 or, `centred`, the mean of each unit over the batch and all positions, at inference its running average:
    batch norm without the division. A rectifier passes g on, so that its output has variance 1 where z is N(0, 1).
    Sources: Brock et al. 2021 for g; Salimans and Kingma 2016, section 4, for the mean alone.
    """

    def __init__(
        self, features: int, dim: int = 0, centred: bool = False, momentum: float | None = 0.1
    ) -> None:
        super().__init__(features, dim, EPS, momentum)
        self.centred = centred

    def forward(self, x: Tensor) -> Tensor:
        self.check(x)
        mean = torch.zeros_like(self.running_mean)
        if self.centred and self.training:
            mean = x.mean(batch_axes(x))
            self.running_mean.lerp_(mean.detach(), self.next_average_weight())
        elif self.centred:
            mean = self.running_mean
        return rescaled(x, mean, RECTIFIED * self.weight, RECTIFIED * self.bias)
