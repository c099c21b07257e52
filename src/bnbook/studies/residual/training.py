"""Stochastic gradient descent on many residual networks at once, each at a rate of its own, and what is read of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bnbook.studies.decay.training import Rows
from bnbook.studies.residual.network import Arm, Images, Network, Statistics, answers, losses, trained

SEEN = 2_000  # training images by which a network is judged, and whose statistics a test uses
FAR = 16.0  # learning rates along the gradient


def gradients(
    network: Network, arms: Sequence[Arm], inputs: Tensor, labels: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """The members' losses (M,) and the gradient of each by its own trained parts; α only where it is learned."""
    leaves = {name: network[name].detach().requires_grad_() for name in trained(arms)}
    found = losses(answers(network | leaves, arms, inputs), labels)
    parts = dict(zip(leaves, torch.autograd.grad(found.sum(), list(leaves.values()))))
    if "alpha" in parts:
        parts["alpha"] = parts["alpha"] * parts["alpha"].new_tensor([float(arm.learned) for arm in arms])
    return found.detach(), parts


def by_member(name: str, values: Tensor, part: Tensor) -> Tensor:
    """values (M,) in the shape that multiplies a part of that name."""
    first = name in ("stem", "readout", "final_gamma", "final_beta")
    return values.view(-1, *[1] * (part.ndim - 1)) if first else values.view(1, -1, *[1] * (part.ndim - 2))


def lengths(parts: dict[str, Tensor]) -> Tensor:
    """The length of each member's gradient, all parts together, (M,)."""
    squares = [
        part.square().flatten(1).sum(1)
        if name in ("stem", "readout", "final_gamma", "final_beta")
        else part.square().transpose(0, 1).flatten(1).sum(1)
        for name, part in parts.items()
    ]
    return torch.stack(squares).sum(0).sqrt()


def moved(network: Network, parts: dict[str, Tensor], distance: Tensor) -> Network:
    """The network with member m at distance[m] times its gradient against it."""
    steps = {name: network[name] - by_member(name, distance, part) * part for name, part in parts.items()}
    return network | steps


def train(network: Network, arms: Sequence[Arm], rates: Sequence[float], rows: Rows, steps: int) -> Network:
    """So many steps θ ← θ - η ∇L, member m at rates[m] (η of all its parameters); all see the same batches."""
    eta = network["stem"].new_tensor(rates)
    for _ in range(steps):
        _, parts = gradients(network, arms, *next(rows))
        network = moved(network, parts, eta)
    return network


def judged(network: Network, arms: Sequence[Arm], data: Images) -> dict[str, np.ndarray]:
    """Of each member, (M,): "loss" on the first `SEEN` training images, whose statistics it uses, and
    "accuracy" on the test images by these statistics."""
    keep = Statistics()
    with torch.no_grad():
        inputs, labels = data.inputs[:SEEN], data.labels[:SEEN]
        loss = losses(answers(network, arms, inputs, keep), labels)
        given = keep or None
        right = [
            (answers(network, arms, part, given=given).argmax(1) == target)
            for part, target in zip(data.test_inputs.split(2000), data.test_labels.split(2000))
        ]
        accuracy = torch.cat(right, 1).double().mean(1)
    return {"loss": loss.double().numpy(), "accuracy": accuracy.numpy()}


def far_change(
    network: Network, arms: Sequence[Arm], rates: Sequence[float], inputs: Tensor, labels: Tensor
) -> np.ndarray:
    """‖∇L(θ - 16 η g) - g‖ / ‖g‖ of each member on one batch, (M,): how wrong a gradient is far along itself."""
    _, here = gradients(network, arms, inputs, labels)
    distance = FAR * network["stem"].new_tensor(rates)
    _, there = gradients(moved(network, here, distance), arms, inputs, labels)
    change = {name: there[name] - here[name] for name in here}
    return (lengths(change) / lengths(here)).numpy()
