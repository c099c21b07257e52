"""What is measured of one network on the way: along its gradient, in its layers, of its curvature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bnbook.probes.fisher import lanczos
from bnbook.studies.standins.layers import StandIn
from bnbook.studies.standins.network import Network, answers, mean_loss, trained

#: Steps along the gradient, in units of the learning rate: near, those of the paper, and far.
NEAR, WITHIN, FAR = 1 / 20, (1 / 2, 1.0, 2.0, 4.0), 16.0
#: Of the largest curvature: the residual asked for, and iterations.
TOLERANCE, ITERATIONS = 0.02, 200


def gradients(
    one: StandIn, network: Network, batch: tuple[Tensor, Tensor], shaken: Sequence = ()
) -> tuple[Tensor, list[Tensor]]:
    """Loss of each member, (M,), and the gradient of each part that is trained, in its shape (M, ...)."""
    leaves = [part.requires_grad_() for _, _, part in trained(network, one)]
    losses = mean_loss(answers(one, network, batch[0], shaken), batch[1])
    found = torch.autograd.grad(losses.sum(), leaves)
    for leaf in leaves:
        leaf.requires_grad_(False)
    return losses.detach(), list(found)


def walk(
    one: StandIn, network: Network, batch: tuple[Tensor, Tensor], rate: float, shaken: Sequence = ()
) -> dict[str, float]:
    """One network (M = 1) at one step: what lies along its gradient, and how its layers move one another.

    With Δg(a) = ‖∇L(θ - a g) - g‖ and η the rate:
    - far: Δg(16η) / ‖g‖; near: Δg(η/20) / (η/20 ‖g‖); beta: the largest Δg(a) / (a ‖g‖), a from η/2 to 4η
    - range: largest less smallest loss, a from η/2 to 4η
    - shift_distance, shift_cosine: ‖G_i - G'_i‖ and the cosine of the two, mean over layers i from the second
      to the readout; G_i the gradient of the weights of layer i, G'_i that after the step of all parameters of the
      layers before it
    Everything is one stack: members that stand along the gradient, and one for each layer i.
    Source: Santurkar et al. 2018, section 3.2 and Definition 2.1.
    """
    parts = [(name, place) for name, place, _ in trained(network, one)]
    _, gradient = gradients(one, network, batch, shaken)
    lengths = [NEAR, *WITHIN, FAR]
    depth = len(network["weights"])
    stacked: Network = {
        name: [part.detach().repeat(len(lengths) + depth, *[1] * (part.ndim - 1)) for part in own]
        for name, own in network.items()
    }
    for (name, place), g in zip(parts, gradient, strict=True):
        steps = lengths + [1.0 if place < layer else 0.0 for layer in range(1, depth + 1)]
        moved = stacked[name][0 if name == "readout" else place]
        moved -= rate * torch.tensor(steps, dtype=g.dtype).view(-1, *[1] * (g.ndim - 1)) * g
    losses, there = gradients(one, stacked, batch, shaken)
    norm = flat(gradient).norm()
    apart = (flat(there)[: len(lengths)] - flat(gradient)).norm(dim=1) / norm
    slopes = apart / (rate * torch.tensor(lengths, dtype=apart.dtype))
    within = losses[1 : 1 + len(WITHIN)]
    distances, cosines = [], []
    for layer in range(1, depth + 1):
        row = parts.index(("readout", depth) if layer == depth else ("weights", layer))
        before, after = gradient[row][0].flatten(), there[row][len(lengths) + layer - 1].flatten()
        distances.append((after - before).norm())
        cosines.append(before @ after / (before.norm() * after.norm()))
    found = {
        "far": apart[-1],
        "near": slopes[0],
        "beta": slopes[1:-1].max(),
        "range": within.max() - within.min(),
        "shift_distance": torch.stack(distances).mean(),
        "shift_cosine": torch.stack(cosines).mean(),
    }
    return {name: float(value) for name, value in found.items()}


def flat(parts: Sequence[Tensor]) -> Tensor:
    """Tensors (M, ...) as rows (M, P), in float64."""
    return torch.cat([part.flatten(1) for part in parts], 1).double()


def moments(one: StandIn, network: Network, inputs: Tensor, shaken: Sequence = ()) -> tuple[Tensor, Tensor]:
    """Mean and variance over the batch of what each rectifier receives, one network: (L N,) twice."""
    seen: list[Tensor] = []
    with torch.no_grad():
        answers(one, network, inputs, shaken, seen=seen)
    values = torch.cat([a[0].double() for a in seen[:-1]], 1)
    return values.mean(0), values.var(0, correction=0)


def growth(one: StandIn, network: Network, batch: tuple[Tensor, Tensor], shaken: Sequence = ()) -> float:
    """Factor a layer by which the squared gradient of what rectifiers receive grows from the last to the first."""
    seen: list[Tensor] = []
    leaf = network["weights"][0].requires_grad_()  # so that there is a graph
    loss = mean_loss(answers(one, network, batch[0], shaken, seen=seen), batch[1]).sum()
    first, last = torch.autograd.grad(loss, [seen[0], seen[-2]])
    leaf.requires_grad_(False)
    ratio = float(first.double().square().sum() / last.double().square().sum())
    return ratio ** (1 / max(len(seen) - 2, 1))


def curvature(one: StandIn, network: Network, batch: tuple[Tensor, Tensor], shaken: Sequence = ()) -> float:
    """Largest eigenvalue of the Hessian of one network, through the statistics of the batch (Pearlmutter 1994)."""
    leaves = [part.requires_grad_() for _, _, part in trained(network, one)]
    losses = mean_loss(answers(one, network, batch[0], shaken), batch[1])
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(losses.sum(), leaves, create_graph=True)])

    def product(u: Tensor) -> Tensor:
        return torch.cat([g.flatten() for g in torch.autograd.grad(gradient @ u, leaves, retain_graph=True)])

    value = lanczos(product, gradient.detach(), TOLERANCE, ITERATIONS)[0]
    for leaf in leaves:
        leaf.requires_grad_(False)
    return value


def readout_rate(one: StandIn, network: Network, inputs: Tensor, shaken: Sequence = ()) -> float:
    """2 / λ_max of the readout's block of the Hessian, all other parameters held: its critical rate.

    With p the softmax of an example and h what the readout receives, the block is
    (1/B) Σ h hᵀ ⊗ (diag p - p pᵀ).
    """
    seen: list[Tensor] = []
    with torch.no_grad():
        p = answers(one, network, inputs, shaken, seen=seen)[0].double().softmax(1)
    h = seen[-1][0].double()

    def product(u: Tensor) -> Tensor:
        of_answers = h @ u.view(h.shape[1], -1)
        of_answers = p * (of_answers - (p * of_answers).sum(1, keepdim=True))
        return (h.T @ of_answers).flatten() / len(h)

    start = torch.ones(h.shape[1] * p.shape[1], dtype=h.dtype)
    start += torch.linspace(0, 1, len(start), dtype=h.dtype)  # equal entries a row are an eigenvector of 0
    return 2 / lanczos(product, start, TOLERANCE, ITERATIONS)[0]


def weight_length(network: Network) -> np.ndarray:
    """Length of all hidden weights of each member, (M,)."""
    return flat(network["weights"]).norm(dim=1).numpy()
