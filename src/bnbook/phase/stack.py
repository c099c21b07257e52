"""Many small networks as one: every parameter has a leading axis of S members, every layer is one batched product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EPS = 1e-5  # of batch norm, as in `bnbook.normalizers`
Statistics = list[tuple[Tensor, Tensor]]  # mean and variance of each batch norm, (S, units) each


@dataclass
class Stack:
    """Parameters of S networks of one shape, and their forward pass."""

    weights: list[Tensor]  # (S, outputs, inputs) each; a filter's inputs are C·k·k
    biases: list[Tensor]  # (S, outputs)
    gammas: list[Tensor]  # (S, units); empty without batch norm
    betas: list[Tensor]  # (S, units)
    kernel: int | None  # of the convolutions; None: fully connected
    stride: int

    @property
    def parameters(self) -> list[Tensor]:
        return [*self.weights, *self.biases, *self.gammas, *self.betas]

    def __call__(self, images: Tensor, statistics: Statistics | None = None) -> tuple[Tensor, Statistics]:
        """Outputs (S, B, classes) for images (S, B, C, H, W), and the statistics that were used.

        statistics None: those of this batch, gradients flow through them, as in training; else the given ones.
        """
        used: Statistics = []
        h = images
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases)):
            last = layer == len(self.weights) - 1
            members, batch = h.shape[:2]
            if self.kernel is not None and not last:
                side = [(size - self.kernel) // self.stride + 1 for size in h.shape[3:]]
                patches = F.unfold(h.flatten(0, 1), self.kernel, stride=self.stride)  # (S B, C k k, places)
                inputs = patches.view(members, batch, *patches.shape[1:]).transpose(2, 3).flatten(1, 2)
            else:
                side, inputs = [], h.flatten(2)
            z = torch.baddbmm(bias[:, None], inputs, weight.transpose(1, 2))  # (S, B·places, outputs)
            if last:
                return z, used
            if self.gammas:
                known = None if statistics is None else statistics[layer]
                mean, variance = (z.mean(1), z.var(1, correction=0)) if known is None else known
                used.append((mean.detach(), variance.detach()))
                scale = self.gammas[layer] * (variance + EPS).rsqrt()
                z = z * scale[:, None] + (self.betas[layer] - mean * scale)[:, None]
            h = F.relu(z)
            if side:
                h = h.view(members, batch, side[0] * side[1], -1).transpose(2, 3).reshape(members, batch, -1, *side)
        raise AssertionError("a stack has a readout")


def stack_models(models: Sequence[nn.Sequential]) -> Stack:
    """The parameters of networks of one shape (`bnbook.models.mlp` or `cnn`), copied side by side."""
    layers = [[m for m in model if isinstance(m, (nn.Linear, nn.Conv2d))] for model in models]
    norms = [[m for m in model if hasattr(m, "running_mean")] for model in models]

    def side_by_side(of: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        return [torch.stack([t.detach().flatten(1) if t.ndim > 1 else t.detach() for t in one]) for one in zip(*of)]

    first = layers[0][0]
    return Stack(
        side_by_side([[m.weight for m in own] for own in layers]), side_by_side([[m.bias for m in own] for own in layers]),
        side_by_side([[m.weight for m in own] for own in norms]), side_by_side([[m.bias for m in own] for own in norms]),
        first.kernel_size[0] if isinstance(first, nn.Conv2d) else None, first.stride[0] if isinstance(first, nn.Conv2d) else 1,
    )  # fmt: skip
