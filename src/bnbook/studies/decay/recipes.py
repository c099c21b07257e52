"""Two recipes side by side in float64: are they one training?"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bnbook.studies.decay.network import NO_EPS, Network, answers, mean_loss, trained
from bnbook.studies.decay.training import Rows


def answers_by_step(
    network: Network,
    rows: Rows,
    rates: np.ndarray,
    decays: np.ndarray,
    other_rate: float,
    norm: str = "batch",
    eps: float = NO_EPS,
) -> Tensor:
    """The answers to each batch before its step, (T, M, B, classes); trains the members in place.

    Hidden weights: w ← (1 - η_t λ) w - η_t ∇L with `rates` η_t (T, M) and `decays` λ (M,); readout, γ and β:
    θ ← θ - η ∇L with `other_rate`, no decay.
    """
    parameters = trained(network, norm)
    found = []
    for eta in torch.as_tensor(rates):
        inputs, labels = next(rows)
        leaves = [part.requires_grad_() for _, part in parameters]
        given = answers(network, inputs, norm, eps)
        gradients = torch.autograd.grad(mean_loss(given, labels).sum(), leaves)
        found.append(given.detach())
        with torch.no_grad():
            for (name, part), gradient in zip(parameters, gradients):
                part.requires_grad_(False)
                if name == "weights":
                    own, keep = eta.view(-1, 1, 1), (1 - eta * torch.as_tensor(decays)).view(-1, 1, 1)
                    part.mul_(keep).sub_(own * gradient)
                else:
                    part.sub_(other_rate * gradient)
    return torch.stack(found)


def scaled(network: Network, factors: np.ndarray) -> Network:
    """The network with the weights of hidden layer l of member m multiplied by factors[m, l], (M, L)."""
    by_layer = torch.as_tensor(factors).T
    weights = [w * c.view(-1, 1, 1).to(w) for w, c in zip(network["weights"], by_layer)]
    return network | {"weights": weights}


def apart(found: Tensor) -> np.ndarray:
    """‖answers of member 1 - answers of member 0‖ / ‖answers of member 0‖ by step, (T,)."""
    one, other = found[:, 0].flatten(1), found[:, 1].flatten(1)
    return ((other - one).norm(dim=1) / one.norm(dim=1)).numpy()
