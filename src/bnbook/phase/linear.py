"""The critical rate of the linear regime, measured: the same network and batch, with targets so near that nothing bends."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from bnbook.data import Dataset, normalise
from bnbook.phase.arm import PhaseArm

#: The share of the way from the first outputs to the targets; what is left is small against where the network bends.
CLOSENESS = 1e-3
STEPS = 30


def full_batch(arm: PhaseArm, seed: int, dataset: Dataset) -> tuple[Tensor, Tensor]:
    """Images (B, C, H, W) and labels (B,) that a training on one full batch of `arm.batch_size` has from this seed."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(dataset.train_labels), generator=generator)[: arm.batch_size]
    return normalise(dataset.train_images[chosen], dataset), dataset.train_labels[chosen]


def linear_growth(
    arm: PhaseArm, seed: int, dataset: Dataset, *, steps: int = STEPS, closeness: float = CLOSENESS, dtype: torch.dtype = torch.float32
) -> float:
    """‖f_T - y'‖ / ‖f_0 - y'‖ after T steps on half the squared error to y' = f_0 + closeness (y - f_0), one full batch.

    As closeness goes to 0 the network becomes f_0 + J (θ - θ_0), and the residual evolves by I - η J J^T / B and momentum: it
    grows beyond all bounds for η > 2 (1 + μ) / λ_max (mean-field paper, section 2), λ_max that of all parameters and outputs
    through the batch, and shrinks below. inf where the residual is no number any more.
    """
    torch.manual_seed(seed)
    model = arm.model(tuple(dataset.train_images.shape[1:]), len(dataset.classes)).to(dataset.device, dtype).train()
    images, labels = full_batch(arm, seed, dataset)
    images = images.to(dtype)
    parameters = list(model.parameters())
    velocity = [torch.zeros_like(p) for p in parameters]
    with torch.no_grad():
        first = model(images)
        targets = first + closeness * (F.one_hot(labels, first.shape[1]).to(dtype) - first)
    for _ in range(steps):
        loss = 0.5 * (model(images) - targets).square().sum() / len(labels)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, v, g in zip(parameters, velocity, gradients):
                p.sub_(v.mul_(arm.momentum).add_(g), alpha=arm.learning_rate)
    with torch.no_grad():
        left = float((model(images) - targets).norm() / (first - targets).norm())
    return left if math.isfinite(left) else math.inf
