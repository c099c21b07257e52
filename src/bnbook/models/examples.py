"""Three small networks to measure that are not the book's: a residual one, a transformer, a perceptron."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def perceptron(norm: bool, inputs: int, classes: int, width: int = 64, depth: int = 4) -> nn.Module:
    """Fully connected ReLU layers, each with batch norm or without."""
    layers: list[nn.Module] = [nn.Flatten()]
    for layer in range(depth):
        layers.append(nn.Linear(inputs if layer == 0 else width, width))
        layers += [nn.BatchNorm1d(width)] if norm else []
        layers.append(nn.ReLU())
    return nn.Sequential(*layers, nn.Linear(width, classes))


def residual(norm: bool, classes: int, stages: int = 4) -> nn.Module:
    """torchvision's residual network with one block a stage; without batch norm an identity in its place.

    Of its four stages the last may be left out: stage k has 32 · 2^k channels, so that most weights are there.
    """
    from torchvision.models.resnet import BasicBlock, ResNet

    network = ResNet(BasicBlock, [1] * 4, classes, norm_layer=None if norm else lambda _: nn.Identity())
    for stage in range(stages + 1, 5):
        setattr(network, f"layer{stage}", nn.Identity())
    network.fc = network.fc if stages == 4 else nn.Linear(32 * 2**stages, classes)
    return network


class Block(nn.Module):
    """Attention with one head and a perceptron on each place, each behind its layer norm or an identity."""

    def __init__(self, norm: bool, width: int) -> None:
        super().__init__()
        make = nn.LayerNorm if norm else lambda _: nn.Identity()
        self.before_attention, self.mix = make(width), nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.before_dense, self.up, self.down = (
            make(width),
            nn.Linear(width, 2 * width),
            nn.Linear(2 * width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, places, width) -> the same."""
        query, key, value = self.mix(self.before_attention(x)).chunk(3, -1)
        weights = (query @ key.transpose(1, 2) / key.shape[-1] ** 0.5).softmax(-1)
        x = x + self.out(weights @ value)
        return x + self.down(torch.relu(self.up(self.before_dense(x))))


class Transformer(nn.Module):
    """Patches of an image as a sequence, two blocks, and the mean over the places into a linear readout."""

    def __init__(self, norm: bool, channels: int, classes: int, patch: int = 4, width: int = 32) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, width, patch, patch)
        self.blocks = nn.Sequential(Block(norm, width), Block(norm, width))
        self.readout = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """(B, channels, H, W) -> (B, classes)."""
        return self.readout(self.blocks(self.patches(images).flatten(2).transpose(1, 2)).mean(1))
