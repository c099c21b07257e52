"""Gradient descent on a few hundred images, full batch or mini-batch, on a stack of seeds and learning
rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook import models
from bnbook.data import Dataset, normalise
from bnbook.small_networks.descent import member_loss
from bnbook.small_networks.stack import Stack, stack_models

POOL = 4  # pixels to a side that are averaged into one: 32 × 32 images become 8 × 8
SIGMA_W2 = 0.5  # small enough for each rate to begin below the edge without batch norm; no network dies
BATCHES = 2_000_003  # of the seeds of the mini-batches


@dataclass
class Members:
    """Networks side by side: a stack, the images (S, m, C, H, W) and labels (S, m) of each, its rate (S,)."""

    stack: Stack
    images: Tensor
    labels: Tensor
    rates: Tensor
    twin: nn.Sequential  # of the same shape, to put one member's parameters in

    def model(self, member: int) -> nn.Sequential:
        """One member as a network of torch's own layers, in training mode; the next call overwrites it."""
        layers = [m for m in self.twin if isinstance(m, nn.Linear)]
        norms = [m for m in self.twin if hasattr(m, "running_mean")]
        with torch.no_grad():
            for layer, weight, bias in zip(layers, self.stack.weights, self.stack.biases, strict=True):
                layer.weight.copy_(weight[member].T)
                layer.bias.copy_(bias[member])
            for layer, gamma, beta in zip(norms, self.stack.gammas, self.stack.betas):
                layer.weight.copy_(gamma[member])
                layer.bias.copy_(beta[member])
        return self.twin.train()

    def batch(self, member: int, chosen: Tensor | slice = slice(None)) -> tuple[Tensor, Tensor]:
        """Images and one-hot targets of one member."""
        return self.images[member, chosen], F.one_hot(self.labels[member, chosen], 10).to(self.images)

    def length(self) -> Tensor:
        """‖W‖ of the hidden layers' weights together, (S,)."""
        return sum(w.square().sum((1, 2)) for w in self.stack.weights[:-1]).sqrt()

    def fastest(self, factor: float) -> Members:
        """A copy of those at the largest rate, at `factor` times that rate; it goes its own way."""
        where, own = self.rates == self.rates.max(), self.stack
        groups = ([p.detach()[where] for p in g] for g in (own.weights, own.biases, own.gammas, own.betas))
        stack = Stack(*groups, own.kernel, own.stride)
        return Members(stack, self.images[where], self.labels[where], factor * self.rates[where], self.twin)


def squared(outputs: Tensor, targets: Tensor) -> Tensor:
    """Half the squared error to the one-hot targets, mean over the examples."""
    return 0.5 * (outputs - targets).square().sum() / len(outputs)


def drawn(
    norm: str,
    rates: Sequence[float],
    seeds: Sequence[int],
    dataset: Dataset,
    examples: int,
    hidden: Sequence[int],
) -> Members:
    """Members for every rate and seed, rates first; a seed has one set of images and one set of first
    weights, N(0, SIGMA_W2 / fan-in), whatever its norm and rate."""
    networks, images, labels = [], [], []
    for seed in seeds:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            order = torch.randperm(len(dataset.train_labels))[:examples]
            own = F.avg_pool2d(normalise(dataset.train_images[order], dataset), POOL)
            networks.append(models.mlp((own[0].numel(), *hidden, 10), norm, "meanfield", SIGMA_W2, 0.0))
        images.append(own)
        labels.append(dataset.train_labels[order])
    return Members(
        stack_models(networks * len(rates)),
        torch.stack(images * len(rates)),
        torch.stack(labels * len(rates)),
        torch.tensor([rate for rate in rates for _ in seeds]),
        networks[0],
    )


def descend(
    members: Members,
    steps: int,
    looks: Sequence[int],
    momentum: float = 0.0,
    batch_size: int = 0,
    seeds: Sequence[int] = (),
) -> Iterator[int]:
    """θ ← θ - η v, v ← μ v + ∇L(θ), in place; gives each step of `looks` before its update, the last being
    `steps`.

    batch_size 0: all images at each step; else as many, drawn anew at each step by the member's own
    generator, from `seeds` (S,).
    """
    draw = [torch.Generator().manual_seed(BATCHES + seed) for seed in seeds]
    velocity = [torch.zeros_like(p) for p in members.stack.parameters]
    count = members.labels.shape[1]
    images, labels = members.images, members.labels
    rows = torch.arange(len(members.rates))[:, None]
    for step in range(steps + 1):
        if step in looks:
            yield step
        if step == steps:
            return
        if batch_size:
            chosen = torch.stack([torch.randperm(count, generator=one)[:batch_size] for one in draw])
            images, labels = members.images[rows, chosen], members.labels[rows, chosen]
        leaves = [p.requires_grad_() for p in members.stack.parameters]
        loss = member_loss(members.stack(images)[0], labels, "squared").sum()
        gradients = torch.autograd.grad(loss, leaves)
        for p, v, g in zip(leaves, velocity, gradients):
            p.requires_grad_(False)
            torch.add(g, v, alpha=momentum, out=v)
            p.addcmul_(v, members.rates.view(-1, *[1] * (p.ndim - 1)), value=-1)
