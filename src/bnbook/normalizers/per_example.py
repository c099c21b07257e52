"""Normalizers that treat every example alone: layer, group and instance normalization."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from bnbook.errors import BnbookError
from bnbook.normalizers.base import Normalizer, wide


class GroupNorm(Normalizer):
    """Fix each example's mean and biased variance over C/groups units and all positions; then γ and β.

    y = γ_c (x - μ_bg) / sqrt(σ²_bg + eps) + β_c, the same in training and at inference.
    Source: Wu and He 2018.
    Errors: BnbookError when groups does not divide the features, and for a group of one value.
    """

    def __init__(self, features: int, dim: int = 0, groups: int = 32, eps: float = 1e-5) -> None:
        super().__init__(features, dim)
        if groups < 1 or features % groups:
            raise BnbookError(f"{features} features in {groups} groups; expected a divisor; set groups=")
        self.groups = groups
        self.eps = eps
        self.add_affine()

    def forward(self, x: Tensor) -> Tensor:
        self.check(x)
        if x.numel() == x.shape[0] * self.groups:
            raise BnbookError(
                f"{type(self).__name__} got {'one value per example and group' if len(x) else 'no example'}, "
                f"shape {tuple(x.shape)}; expected two or more values in a group; use fewer groups or larger "
                "feature maps, and leave empty batches out"
            )
        return F.group_norm(x, self.groups, self.weight, self.bias, self.eps)


class LayerNorm(GroupNorm):
    """Group norm with one group: each example over all its units and positions, γ and β per unit.

    For (B, C) this is torch.nn.LayerNorm(C); for (B, C, H, W) the statistics are those of LayerNorm((C, H,
    W)), but γ and β are shared by all positions of a channel, as they are in batch norm. Source: Ba, Kiros
    and Hinton 2016.
    """

    def __init__(self, features: int, dim: int = 0, eps: float = 1e-5) -> None:
        super().__init__(features, dim, 1, eps)


class InstanceNorm(GroupNorm):
    """Group norm with one channel a group: each example and channel over its positions, γ, β per channel.

    The same in training and at inference. Source: Ulyanov, Vedaldi and Lempitsky 2016.
    Errors: BnbookError for dim 0, which has no positions.
    """

    def __init__(self, features: int, dim: int = 2, eps: float = 1e-5) -> None:
        if dim != 2:
            raise BnbookError("instance norm needs positions; expected dim=2; use layer norm for (B, C)")
        super().__init__(features, dim, features, eps)


class RmsNorm(Normalizer):
    """Divide each example by the root of its mean square over all units and positions; then γ and β per unit.

    y = γ_c x / sqrt(mean x² + eps) + β_c, the same in training and at inference. The source has no β; here it stands as
    it does in the other layers. Source: Zhang and Sennrich 2019.
    """

    def __init__(self, features: int, dim: int = 0, eps: float = 1e-5) -> None:
        super().__init__(features, dim)
        self.eps = eps
        self.add_affine()

    def forward(self, x: Tensor) -> Tensor:
        self.check(x)
        size = (x.square().mean(tuple(range(1, x.dim())), keepdim=True) + self.eps).sqrt()
        return wide(self.weight, x) * (x / size) + wide(self.bias, x)
