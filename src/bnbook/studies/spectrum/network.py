"""A small residual network of any depth, with batch norm or nothing, and its training."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.normalizers import make_normalizer
from bnbook.studies.decay.training import Rows

SIGMA_W2 = (
    0.5  # of first weights N(0, σ_w² / fan-in): at He's 2 a pilot of the deep plain network learnt nothing
)
MOMENTUM = 0.9  # as is usual; the rate is in the chapter
WARM = 50  # batches that fill the running averages of a network that has not learnt: 0.9⁵⁰ is half a per cent


class Block(nn.Module):
    """relu(x + norm2(conv2(relu(norm1(conv1(x)))))), (B, C, H, W) to the same shape.

    Source: He et al. 2016, "Deep residual learning for image recognition", figure 2.
    """

    def __init__(self, channels: int, norm: str) -> None:
        super().__init__()
        self.conv1, self.conv2 = (convolution(channels, channels, norm) for _ in range(2))
        self.norm1, self.norm2 = (make_normalizer(norm, channels, 2) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.norm1(self.conv1(x)))
        return F.relu(x + self.norm2(self.conv2(inner)))


def convolution(inputs: int, channels: int, norm: str, stride: int = 1) -> nn.Conv2d:
    """A 3×3 convolution; a bias only where no batch norm follows, whose β is one."""
    return nn.Conv2d(inputs, channels, 3, stride, padding=1, bias=norm == "none")


def residual(depth: int, channels: int, norm: str, seed: int) -> nn.Sequential:
    """(B, 3, 8, 8) → (B, 10): a convolution of stride 2, (depth - 2) / 2 blocks, a mean over positions, a readout.

    Weights N(0, SIGMA_W2 / fan-in), the same whatever the norm; biases 0. Errors: BnbookError for a depth that is
    odd or below 4.
    """
    if depth < 4 or depth % 2:
        raise BnbookError(f"depth {depth} of the residual network; expected an even number from 4 on")
    blocks = [Block(channels, norm) for _ in range((depth - 2) // 2)]
    stem = [convolution(3, channels, norm, stride=2), make_normalizer(norm, channels, 2), nn.ReLU()]
    model = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                spread = (SIGMA_W2 / layer.weight[0].numel()) ** 0.5
                layer.weight.copy_(spread * torch.randn(layer.weight.shape, generator=generator))
                if layer.bias is not None:
                    layer.bias.zero_()
    return model.train()


def images(rows: Tensor) -> Tensor:
    """Rows of pooled pixels (B, 192) as images (B, 3, 8, 8)."""
    side = round((rows.shape[1] / 3) ** 0.5)
    return rows.view(-1, 3, side, side)


@torch.no_grad()
def warm(model: nn.Module, rows: Rows) -> None:
    """Fill the running averages with `WARM` batches, nothing else changes."""
    for _ in range(WARM):
        model.train()(images(next(rows)[0]))


def train(model: nn.Module, rows: Rows, steps: int, rate: float) -> Tensor:
    """v ← 0.9 v + ∇L, θ ← θ - η v on the cross-entropy of each batch, in place; the losses (steps,)."""
    parameters = list(
        model.parameters()
    )  # by hand: torch.optim takes seconds to import, as long as a smoke run
    velocity = [torch.zeros_like(p) for p in parameters]
    losses = []
    for _ in range(steps):
        inputs, labels = next(rows)
        loss = F.cross_entropy(model(images(inputs)), labels)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, v, g in zip(parameters, velocity, gradients):
                p.sub_(v.mul_(MOMENTUM).add_(g), alpha=rate)
        losses.append(loss.detach())
    return torch.stack(losses)
