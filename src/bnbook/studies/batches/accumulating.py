"""Gradients of one batch and of its parts added up."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.normalizers.batch import BatchNorm
from bnbook.studies.batches.networks import GhostBatchNorm, loss_of


def gradient(model: nn.Sequential, images: Tensor, labels: Tensor, members: int, part: int) -> Tensor:
    """∇ of the mean loss over one batch, added up over its parts of `part` examples: (S, P), all parameters.

    Every member sees images (B, C, H, W), labels (B,); B a multiple of `part`. The model keeps its state.
    """
    model = copy.deepcopy(model).train()
    for x, y in zip(images.split(part), labels.split(part), strict=True):
        loss = loss_of(model(x.repeat(1, members, 1, 1)), y[:, None].expand(-1, members))
        (loss * len(y) / len(labels)).backward()
    return torch.cat([p.grad.view(members, -1) for p in model.parameters()], 1)


def distance(found: Tensor, wanted: Tensor) -> np.ndarray:
    """‖found - wanted‖ / ‖wanted‖ of each member, (S, P) → (S,)."""
    return ((found - wanted).norm(dim=1) / wanted.norm(dim=1)).numpy()


def as_ghost(model: nn.Sequential, size: int) -> nn.Sequential:
    """A copy whose batch norms see `size` examples at a time."""
    layers = copy.deepcopy(model)
    return nn.Sequential(
        *[GhostBatchNorm(each, size) if isinstance(each, BatchNorm) else each for each in layers]
    )
