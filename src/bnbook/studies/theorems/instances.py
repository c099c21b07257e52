"""Random layers with batch norm and a loss above them, and their derivatives by automatic differentiation.

A fully connected layer y = X W with two units, z = γ ŷ + β, and any loss L of all outputs of the batch. Two
networks share it: the plain one has the loss L(X W), the other one L(z). Letters: m data points, I inputs, J
units. Source: Santurkar et al. 2018, section 4.1 (NeurIPS), appendix C (v1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

KINDS = (
    "convex",
    "indefinite",
    "cross-entropy",
    "network",
    "linear",
    "aligned",
    "constant",
    "mirrored",
    "tiny-batch",
    "outlier",
)
#: Those whose loss is linear in the layer's outputs.
LINEAR = ("linear", "aligned", "constant", "mirrored")


@dataclass(frozen=True)
class Instance:
    """A layer, its batch, and the loss above it."""

    x: np.ndarray  # (m, I)
    w: np.ndarray  # (I, J)
    gamma: np.ndarray  # (J,)
    beta: np.ndarray  # (J,)
    loss: Callable[[Tensor], Tensor]  # (m, J) -> ()
    kind: str

    @property
    def y(self) -> np.ndarray:
        """The layer's outputs, (m, J)."""
        return self.x @ self.w


@dataclass(frozen=True)
class Derivatives:
    """First derivatives by automatic differentiation."""

    through: np.ndarray  # (m, J) ∂L̂/∂y, of the network with batch norm
    weights: np.ndarray  # (I, J) ∂L̂/∂W
    shared: (
        np.ndarray
    )  # (m, J) ∂L/∂(layer's output) at z: what the layers above send down in the network with batch norm
    own: np.ndarray  # (m, J) the same at y: what they send down in the plain network


def draw(rng: np.random.Generator, number: int, *, centred: bool = False) -> Instance:
    """Instance `number`: its kind and batch size go round, all else is random.

    γ/σ spans about five decades, γ has either sign, inputs have offsets unless `centred`. Adversarial kinds
    send down a gradient along ŷ ("aligned"), along 1 ("constant") or the mirror image of an input
    ("mirrored").
    """
    kind = KINDS[number % len(KINDS)]
    m = (2, 3)[number // len(KINDS) % 2] if kind == "tiny-batch" else (3, 4, 8, 16)[number // len(KINDS) % 4]
    x = rng.standard_normal((m, 3))
    if kind == "outlier":
        x[0] *= 30
    x = x - x.mean(0) if centred else x + rng.standard_normal(3)
    w = rng.standard_normal((3, 2)) * 10 ** rng.uniform(-1.5, 1.5)
    gamma = rng.choice((-1.0, 1.0), 2) * 10 ** rng.uniform(-1, 1, 2)
    return Instance(x, w, gamma, rng.standard_normal(2), _loss(rng, kind, x, w), kind)


def standardized(instance: Instance) -> Instance:
    """The same with γ = 1 and β = 0, the layer of version 1."""
    return replace(instance, gamma=np.ones(2), beta=np.zeros(2))


def restoring(instance: Instance) -> Instance:
    """The same with γ = σ and β = mean: z = y, so that both networks agree (Observation 4.3)."""
    return replace(instance, gamma=instance.y.std(0), beta=instance.y.mean(0))


def batch_norm(
    y: Tensor, gamma: np.ndarray, beta: np.ndarray, eps: float = 0.0, unbiased: bool = False
) -> Tensor:
    """z = γ (y - μ) / sqrt(σ² + eps) + β over the first axis."""
    variance = y.var(0, correction=int(unbiased))
    return torch.as_tensor(gamma) * (y - y.mean(0)) / (variance + eps).sqrt() + torch.as_tensor(beta)


def differentiate(instance: Instance, eps: float = 0.0, unbiased: bool = False) -> Derivatives:
    """All first derivatives of one instance; nothing is simplified by hand."""
    w = torch.tensor(instance.w, requires_grad=True)
    y = torch.tensor(instance.x) @ w
    z = batch_norm(y, instance.gamma, instance.beta, eps, unbiased)
    through, weights, shared = torch.autograd.grad(instance.loss(z), (y, w, z))
    plain = y.detach().requires_grad_()
    (own,) = torch.autograd.grad(instance.loss(plain), plain)
    return Derivatives(*(part.numpy() for part in (through, weights, shared, own)))


def hessian(function: Callable[[Tensor], Tensor], at: np.ndarray) -> np.ndarray:
    """Dense Hessian of a scalar function of an (m, J) array: (m, J, m, J)."""
    return torch.func.hessian(function)(torch.tensor(at)).detach().numpy()


def linear_loss(slope: np.ndarray) -> Callable[[Tensor], Tensor]:
    """The loss whose gradient is `slope` (m, J) everywhere."""
    fixed = torch.tensor(slope)
    return lambda z: (fixed * z).sum()


def _loss(rng: np.random.Generator, kind: str, x: np.ndarray, w: np.ndarray) -> Callable[[Tensor], Tensor]:
    m, units = len(x), w.shape[1]
    size = m * units
    y = x @ w
    y_hat = (y - y.mean(0)) / y.std(0)
    noise = rng.standard_normal((m, units))
    if kind in LINEAR:
        toward = {
            "linear": noise,
            "aligned": rng.choice((-1.0, 1.0), units) * y_hat + 0.1 * noise,
            "constant": 1 + 0.1 * noise,
            "mirrored": _mirror_of(x[:, 0], y_hat),
        }[kind]
        return linear_loss(toward * 10 ** rng.uniform(-1, 1))
    if kind == "cross-entropy":
        head = torch.tensor(rng.standard_normal((units, 3)))
        labels = torch.tensor(rng.integers(3, size=m))
        return lambda z: torch.nn.functional.cross_entropy(z @ head, labels)
    if kind in ("network", "tiny-batch"):
        first, second = torch.tensor(rng.standard_normal((units, 4))), torch.tensor(rng.standard_normal(4))
        target = torch.tensor(rng.standard_normal(m))
        return lambda z: ((torch.tanh(z @ first) @ second - target) ** 2).mean()
    root = rng.standard_normal((size, size))
    matrix = root @ root.T if kind in ("convex", "outlier") else root + root.T
    curvature, target = torch.tensor(matrix / size), torch.tensor(noise).flatten()

    def quadratic(z: Tensor) -> Tensor:
        """½ (z - t)ᵀ Q (z - t): couples the units and the examples of the batch."""
        away = z.flatten() - target
        return away @ curvature @ away / 2

    return quadratic


def _mirror_of(input_: np.ndarray, y_hat: np.ndarray) -> np.ndarray:
    """(2 P - I) x of each unit, (m, J)."""
    m = len(input_)
    kept = input_[:, None] - input_.mean() - y_hat * (y_hat * input_[:, None]).sum(0) / m
    return 2 * kept - input_[:, None]
