"""Stochastic gradient descent with weight decay on many members at once, with what is read on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bnbook.studies.decay.network import Network, accuracies, answers, mean_loss, trained

#: What a recipe may decay: the hidden layers' weights; those of all layers; γ and β, too.
DECAYED = {
    "hidden": ("weights",),
    "weights": ("weights", "readout"),
    "all": ("weights", "readout", "gammas", "betas"),
}
#: AdamW's β₁, β₂ and ε, as in torch.
FIRST, SECOND, SMALL = 0.9, 0.999, 1e-8
#: The training images whose statistics a test uses; the test is the mean over this many looks, a tenth of the
#: training apart, the last at its end.
SEEN, LOOKS = 5_000, 3


@dataclass(frozen=True)
class Recipe:
    """How one member is trained."""

    rate: float  # η, of all parameters
    decay: float  # λ
    momentum: float = 0.0  # α
    decayed: str = "hidden"  # a name of `DECAYED`
    norm: str = "batch"
    optimizer: str = "sgd"

    @property
    def angle(self) -> float:
        """The angle a step that is expected at equilibrium: √(2ηλ / (1 + α)), √(2ηλ (1 - β₁) / (1 + β₁))."""
        slower = 1 + self.momentum if self.optimizer == "sgd" else (1 + FIRST) / (1 - FIRST)
        return (2 * self.rate * self.decay / slower) ** 0.5


def angles(before: Tensor, after: Tensor) -> Tensor:
    """The angle between two sets of weights (M, inputs, units) of a layer, taken as one vector a member, (M,).

    2 atan2(‖a - b‖, ‖a + b‖) of the unit vectors a and b (Kahan): an arc cosine loses half the digits of a
    small angle.
    """
    a, b = (w.flatten(1) / w.flatten(1).norm(dim=1, keepdim=True) for w in (before, after))
    return 2 * torch.atan2((a - b).norm(dim=1), (a + b).norm(dim=1))


class Rows:
    """Batches of rows without an end, a fresh order an epoch."""

    def __init__(self, inputs: Tensor, labels: Tensor, size: int, seed: int) -> None:
        self.inputs, self.labels, self.size = inputs, labels, size
        self.generator, self.left = torch.Generator().manual_seed(1_000_003 + seed), torch.empty(0)

    def __next__(self) -> tuple[Tensor, Tensor]:
        if len(self.left) < self.size:
            self.left = torch.randperm(len(self.labels), generator=self.generator)
        chosen, self.left = self.left[: self.size], self.left[self.size :]
        return self.inputs[chosen], self.labels[chosen]


def train(
    network: Network,
    recipes: Sequence[Recipe],
    rows: Rows,
    steps: int,
    every: int,
    test: tuple[Tensor, Tensor] | None = None,
) -> dict[str, np.ndarray]:
    """Train the members in place, one recipe each, of one norm and optimizer; all see the same batches.

    SGD: v ← α v + ∇L + λ w, w ← w - η v, which without momentum is w ← (1 - ηλ) w - η ∇L, decay coupled or
    not. AdamW: w ← (1 - ηλ) w - η m̂ / (√v̂ + ε).

    - angle (M, L, T / every): of each hidden layer's weights, before against after every `every`-th step
    - norm (M, L, T / every): ‖W^l‖ before that step
    - accuracy (M,): on the test images, mean of `LOOKS` looks; only with `test`
    """
    norm, kind = recipes[0].norm, recipes[0].optimizer
    rate, decay, momentum = (
        torch.tensor([getattr(one, name) for one in recipes], dtype=network["readout"][0].dtype)
        for name in ("rate", "decay", "momentum")
    )
    parameters = trained(network, norm)
    decays = {
        name: decay * torch.tensor([name in DECAYED[one.decayed] for one in recipes]) for name in network
    }
    memory = [(torch.zeros_like(part), torch.zeros_like(part)) for _, part in parameters]
    looks = {steps - look * (steps // 10) for look in range(LOOKS)}
    turned, lengths, seen = [], [], []
    for step in range(steps):
        inputs, labels = next(rows)
        leaves = [part.requires_grad_() for _, part in parameters]
        gradients = torch.autograd.grad(mean_loss(answers(network, inputs, norm), labels).sum(), leaves)
        looking = (step + 1) % every == 0
        with torch.no_grad():
            before = [w.clone() for w in network["weights"]] if looking else []
            for (name, part), gradient, (first, second) in zip(parameters, gradients, memory):
                shape = (-1, *[1] * (part.ndim - 1))
                eta, lam, alpha = rate.view(shape), decays[name].view(shape), momentum.view(shape)
                part.requires_grad_(False)
                if kind == "sgd":
                    first.mul_(alpha).add_(gradient).addcmul_(part, lam)
                    part.addcmul_(first, eta, value=-1)
                else:
                    first.lerp_(gradient, 1 - FIRST)
                    second.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
                    size = (second / (1 - SECOND ** (step + 1))).sqrt_().add_(SMALL)
                    part.mul_(1 - eta * lam)
                    part.sub_(eta * first / (1 - FIRST ** (step + 1)) / size)
            if looking:
                turned.append([angles(*pair) for pair in zip(before, network["weights"])])
                lengths.append([w.flatten(1).norm(dim=1) for w in before])
            if test and step + 1 in looks:
                seen.append(accuracies(network, norm, rows.inputs[:SEEN], *test))
    found = {"angle": turned, "norm": lengths}
    found = {
        name: torch.stack([torch.stack(row) for row in rows]).permute(2, 1, 0) for name, rows in found.items()
    }
    if test:
        found["accuracy"] = torch.stack(seen).mean(0)
    return {name: values.double().numpy() for name, values in found.items()}
