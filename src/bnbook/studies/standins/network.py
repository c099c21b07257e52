"""Many fully connected networks side by side, with one of the layers of the table in each hidden layer."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from bnbook.studies.decay.network import pooled
from bnbook.studies.standins.layers import StandIn

__all__ = ["Network", "accuracy", "answers", "draw", "members", "mean_loss", "noise", "pooled", "trained"]

#: "weights", "gammas", "betas" and "alphas", a tensor for each hidden layer, and "readout", one.
Network = dict[str, list[Tensor]]
#: Santurkar et al. 2018, Algorithm 1: n_μ, n_σ - 1, r_μ, r_σ.
SHAKE = (0.5, 0.25, 0.1, 0.1)
#: Batches over which the statistics for inference are averaged.
SEEN = 32
#: Between the random numbers of two seeds' noise: more than a training has steps.
APART = 1_000_003


def draw(
    one: StandIn, widths: Sequence[int], seed: int, copies: int = 1, dtype: torch.dtype = torch.float32
) -> Network:
    """One network, M times: weights (M, I, N) from N(0, 2 / I), times the gain; γ, β (M, N), α (M, 1)."""
    generator = torch.Generator().manual_seed(seed)
    weights = []
    for inputs, units in zip(widths, widths[1:]):
        drawn = torch.randn(inputs, units, generator=generator, dtype=torch.float64) * (2 / inputs) ** 0.5
        weights.append((one.gain * drawn).to(dtype).repeat(copies, 1, 1))
    hidden = weights[:-1]
    ones = [torch.ones(copies, w.shape[2], dtype=dtype) for w in hidden]
    gammas = ones if one.weights is None or one.weights.__name__ != "weight_norm" else lengths(hidden)
    alphas = [torch.full((copies, 1), one.alpha or 0.0, dtype=dtype) for _ in hidden]
    betas = [torch.zeros_like(part) for part in ones]
    return {"weights": hidden, "gammas": gammas, "betas": betas, "alphas": alphas, "readout": weights[-1:]}


def lengths(weights: Sequence[Tensor]) -> list[Tensor]:
    """‖v‖ of each unit: weight norm with this γ is at first the network without it."""
    return [w.norm(dim=1) for w in weights]


def trained(network: Network, one: StandIn) -> list[tuple[str, int, Tensor]]:
    """What training changes and the answers depend on: name, number of the layer from 0, tensor."""
    depth = len(network["weights"])
    found = []
    for name, parts in network.items():
        for place, part in enumerate(parts):
            here = stands_in(one, place, depth)
            used = {
                "gammas": one.scaled and here and not one.frozen,
                "betas": not (one.frozen and here),
                "alphas": one.alpha is not None,
            }
            if used.get(name, True):
                found.append((name, depth if name == "readout" else place, part))
    return found


def stands_in(one: StandIn, place: int, depth: int) -> bool:
    """Whether the hidden layer at this place has the layer of the table."""
    return one.only is None or place == one.only % depth


def members(network: Network, chosen: Sequence[int]) -> Network:
    """Copies of these members, side by side."""
    return {name: [part.detach()[list(chosen)] for part in parts] for name, parts in network.items()}


def noise(one: StandIn, examples: int, widths: Sequence[int], key: int) -> list[tuple[Tensor, Tensor]]:
    """Scales and shifts (B, N) of one step for each hidden layer, the same for one key; none unless shaken.

    With k the strength: μ ~ U(-k n_μ, k n_μ) and σ ~ U(1, 1 + k (n_σ - 1)) a unit, then for each example
    s ~ N(σ, k r_σ), m ~ U(μ - k r_μ, μ + k r_μ).
    """
    if not one.shaken:
        return []
    generator = torch.Generator().manual_seed(key)
    n_mu, n_sigma, r_mu, r_sigma = (one.shaken * part for part in SHAKE)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator)

    found = []
    for units in widths[1:-1]:
        mu, sigma = n_mu * (2 * uniform(units) - 1), 1 + n_sigma * uniform(units)
        s = sigma + r_sigma * torch.randn(examples, units, generator=generator)
        found.append((s, mu + r_mu * (2 * uniform(examples, units) - 1)))
    return found


def answers(
    one: StandIn,
    network: Network,
    inputs: Tensor,
    shaken: Sequence[tuple[Tensor, Tensor]] = (),
    fixed: Sequence[tuple[Tensor, Tensor]] = (),
    used: list[tuple[Tensor, Tensor]] | None = None,
    seen: list[Tensor] | None = None,
) -> Tensor:
    """(B, values) -> (M, B, classes): h^l = relu(a), a = γ norm(h^{l-1} W^l) + β, and the linear readout.

    `fixed` statistics take the place of a batch's where examples meet. `used` takes those that were used,
    `seen` what each rectifier receives, (M, B, N), and then what the readout receives.
    """
    h, depth = inputs, len(network["weights"])
    for place in range(depth):
        weight, gamma, beta, alpha = (
            network[name][place] for name in ("weights", "gammas", "betas", "alphas")
        )
        here = stands_in(one, place, depth)
        scale, shift = gamma.unsqueeze(1), beta.unsqueeze(1)

        def norm(z: Tensor) -> Tensor:
            mean, divisor = fixed[place] if fixed and one.meet else one.statistics(z)
            if used is not None:
                used.append((mean, divisor))
            z = torch.addcmul(shift, z - mean, scale / divisor)
            return torch.addcmul(shaken[place][1], z, shaken[place][0]) if shaken else z

        z = h @ (one.weights(weight, gamma) if one.weights else weight)
        if here and one.alpha is not None:
            a = scale * torch.tanh(alpha.unsqueeze(1) * z) + shift
        elif here and one.statistics and not one.after:
            a = norm(z)
        elif here and one.after:
            a = z
        else:
            a = z + shift
            if used is not None:
                used.append((torch.zeros(()), torch.ones(())))
        if seen is not None:
            seen.append(a)
        h = F.relu(a)
        if here and one.after:
            h = norm(h)
    if seen is not None:
        seen.append(h)
    return h @ network["readout"][0]


def mean_loss(found: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each member, (M,), of its answers (M, B, classes)."""
    return (
        F.cross_entropy(found.flatten(0, 1), labels.repeat(len(found)), reduction="none")
        .view(len(found), -1)
        .mean(1)
    )


def accuracy(
    one: StandIn, network: Network, seen: Tensor, inputs: Tensor, labels: Tensor, size: int
) -> Tensor:
    """Share of right answers of each member, (M,), undisturbed.

    Where examples meet, by the statistics of training images `seen`, averaged over `SEEN` batches of the
    training's size (the largest value of a batch belongs to its size).
    """
    with torch.no_grad():
        fixed: list[tuple[Tensor, Tensor]] = []
        if one.meet:
            batches = []
            for batch in seen[: SEEN * size].split(size):
                batches.append([])
                answers(one, network, batch, used=batches[-1])
            fixed = [tuple(torch.stack(parts).mean(0) for parts in zip(*layer)) for layer in zip(*batches)]
        right = [
            answers(one, network, part, fixed=fixed).argmax(-1) == target
            for part, target in zip(inputs.split(1000), labels.split(1000))
        ]
        return torch.cat(right, 1).double().mean(1)
