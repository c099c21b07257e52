"""The networks of all seeds side by side in one, and plain SGD on batches of any size and order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from bnbook.data import Dataset, normalise
from bnbook.errors import BnbookError
from bnbook.normalizers import make_normalizer

CHANNELS = (16, 32, 64)  # of the 3×3 convolutions, stride 2: maps of 8×8, 4×4 and 2×2 positions
HIDDEN = 64  # units of the fully connected layer behind them, which have one value an example
PER_GROUP = 8  # channels of one group of group norm


@dataclass(frozen=True)
class Recipe:
    """All that decides a training but its seed and its images."""

    norm: str  # "none", "batch" or "group"
    batch: int  # m
    rate: float  # η of plain SGD
    ghost: int = 0  # batch norm over so many examples at a time; 0: over the whole batch
    by_class: bool = False  # every batch holds one class
    dense: bool = True  # with the fully connected layer, whose units have one value an image


class GhostBatchNorm(nn.Module):
    """Batch norm in which only `size` examples meet: each part of a training batch by its own statistics.

    y = [BN(x_1), ..., BN(x_k)], x = [x_1, ..., x_k]; at inference the running averages over all parts.
    Source: Hoffer, Hubara and Soudry 2017, Algorithm 1 (the ghost batches; here the averages weight each part).
    """

    def __init__(self, norm: nn.Module, size: int) -> None:
        super().__init__()
        self.norm, self.size = norm, size

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.norm(part) for part in x.split(self.size)]) if self.training else self.norm(x)


def shrink(images: Tensor, dataset: Dataset) -> Tensor:
    """uint8 (m, C, H, W) to normalised float32 (m, C, H/2, W/2): means over 2×2 pixels."""
    parts = [F.avg_pool2d(normalise(part, dataset), 2) for part in images.split(4096)]
    return torch.cat(parts)


def network(recipe: Recipe, seeds: Sequence[int], image: Sequence[int], classes: int = 10) -> nn.Sequential:
    """S networks in one, (B, S·C, H, W) → (B, S·classes, 1, 1): every layer has S groups that never meet.

    Per seed: three 3×3 convolutions of stride 2 and a fully connected layer, each with the recipe's normalizer and
    ReLU, and a linear readout; weights N(0, 2 / fan_in), biases 0, the same whatever the normalizer.
    """
    members, (features, height, _), layers = len(seeds), image, []
    generators = [Generator().manual_seed(seed) for seed in seeds]
    for units in CHANNELS:
        layer = nn.Conv2d(members * features, members * units, 3, stride=2, padding=1, groups=members)
        layers += [drawn(layer, generators), normalizer(recipe, members * units), nn.ReLU()]
        features, height = units, -(-height // 2)
    if recipe.dense:  # its kernel is the whole map
        layer = nn.Conv2d(members * features, members * HIDDEN, height, groups=members)
        layers += [drawn(layer, generators), normalizer(recipe, members * HIDDEN), nn.ReLU()]
        features, height = HIDDEN, 1
    layers += [drawn(nn.Conv2d(members * features, members * classes, height, groups=members), generators)]
    return nn.Sequential(*layers).train()


@torch.no_grad()
def drawn(layer: nn.Conv2d, generators: Sequence[Generator]) -> nn.Conv2d:
    """Each member's weights from its own generator."""
    scale = math.sqrt(2 / layer.weight[0].numel())
    for weights, generator in zip(layer.weight.view(len(generators), -1), generators):
        weights.copy_(scale * torch.randn(weights.shape, generator=generator))
    layer.bias.zero_()
    return layer


def normalizer(recipe: Recipe, features: int) -> nn.Module:
    """The recipe's, for `features` channels of all members: in none of the three do channels of two members meet."""
    if recipe.norm == "group":
        return make_normalizer("group", features, 2, groups=features // PER_GROUP)
    layer = make_normalizer(recipe.norm, features, 2)
    return GhostBatchNorm(layer, recipe.ghost) if recipe.ghost else layer


def orders(recipe: Recipe, seeds: Sequence[int], labels: Tensor, count: int) -> Tensor:
    """Which images each step of each seed sees, (T, m, S): the first `count` of the seed's own permutation.

    In batches of one class they are sorted by class, cut, what is left of a class dropped, and the batches mixed.
    """
    found = []
    for seed in seeds:
        generator = Generator().manual_seed(1_000_003 + seed)  # another than the weights'
        order = torch.randperm(len(labels), generator=generator)[:count]
        if recipe.by_class:
            own = [order[labels[order] == label] for label in labels.unique()]
            whole = [each[: len(each) // recipe.batch * recipe.batch] for each in own]
            batches = torch.cat(whole).view(-1, recipe.batch)
            order = batches[torch.randperm(len(batches), generator=generator)].flatten()
        found.append(order)
    steps = min(map(len, found)) // recipe.batch
    if not steps:
        raise BnbookError(f"no batch of {recipe.batch} in {count} images; expected more images")
    return torch.stack([order[: steps * recipe.batch] for order in found], -1).view(steps, recipe.batch, -1)


def loss_of(outputs: Tensor, targets: Tensor) -> Tensor:
    """Σ_s mean_i of the cross-entropy, (B, S·classes, 1, 1), (B, S) → (): each member's gradient is its own."""
    members = targets.shape[1]
    logits = outputs.view(len(targets), members, -1)
    return members * F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(
    recipe: Recipe, seeds: Sequence[int], images: Tensor, labels: Tensor, count: int, classes: int = 10
) -> nn.Sequential:
    """One pass over `count` images a seed by θ ← θ - η ∇L(θ), L of a batch of m; the trained networks."""
    model = network(recipe, seeds, images.shape[1:], classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.rate, foreach=True)
    for chosen in orders(recipe, seeds, labels, count):  # (m, S): images (m, S, C, H, W) → (m, S·C, H, W)
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(images[chosen].flatten(1, 2)), labels[chosen]).backward()
        optimizer.step()
    return model
