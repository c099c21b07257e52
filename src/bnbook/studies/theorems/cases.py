"""One unit of an instance with every derivative that a theorem names, all by automatic differentiation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from bnbook.studies.theorems.instances import Instance, batch_norm, differentiate, hessian
from bnbook.studies.theorems.one_unit import Unit, normalize


@dataclass(frozen=True)
class Case:
    """Unit j of an instance under one definition of the layer: ŷ, σ and γ, and the derivatives."""

    instance: Instance
    j: int
    unit: Unit
    gamma: float
    g: np.ndarray  # (m,) ∂L/∂z at z, from the layers above in the network with batch norm
    own: np.ndarray  # (m,) ∂L/∂y at y, from the layers above in the plain network
    v: np.ndarray  # (m,) ∂L̂/∂y
    weights: np.ndarray  # (I,) ∂L̂/∂w
    eps: float
    unbiased: bool

    @property
    def y(self) -> np.ndarray:
        return self.instance.y[:, self.j]

    @property
    def reach(self) -> float:
        """(γ²/σ²) ‖g‖²: the size of the terms that ‖v‖² is made of (for m = 2 they cancel)."""
        return (self.gamma / self.unit.sigma) ** 2 * (self.g @ self.g)

    @property
    def moved(self) -> torch.Tensor:
        """The gradient v in the place of its unit, (m, J)."""
        direction = torch.zeros(self.instance.y.shape, dtype=torch.float64)
        direction[:, self.j] = torch.tensor(self.v)
        return direction

    def layer(self, y: torch.Tensor) -> torch.Tensor:
        """z of the layer's outputs y, (m, J)."""
        return batch_norm(y, self.instance.gamma, self.instance.beta, self.eps, self.unbiased)

    @cached_property
    def above(self) -> np.ndarray:
        """H = ∂²L/∂z∂z at the network's own z, (m, m)."""
        layer = self.instance
        z = batch_norm(torch.tensor(layer.y), layer.gamma, layer.beta, self.eps, self.unbiased)
        return hessian(layer.loss, z.numpy())[:, self.j, :, self.j]

    @cached_property
    def through(self) -> np.ndarray:
        """∂²L̂/∂y∂y, (m, m)."""
        layer = self.instance
        loss = lambda y: layer.loss(batch_norm(y, layer.gamma, layer.beta, self.eps, self.unbiased))
        return hessian(loss, layer.y)[:, self.j, :, self.j]


def look(instance: Instance, j: int, eps: float = 0.0, unbiased: bool = False) -> Case:
    """Unit j of an instance, with batch norm's ε and variance as given."""
    found = differentiate(instance, eps, unbiased)
    unit, gamma = normalize(instance.y[:, j], eps, unbiased), instance.gamma[j]
    columns = (part[:, j] for part in (found.shared, found.own, found.through, found.weights))
    return Case(instance, j, unit, gamma, *columns, eps, unbiased)
