"""Many small fully connected networks at once, batch norm or nothing in each hidden layer, and their images."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from bnbook.data import Dataset, normalise

#: "weights", "gammas" and "betas", a tensor for each hidden layer, and "readout", one.
Network = dict[str, list[Tensor]]
#: In place of ε = 0, which torch refuses: below the rounding error of any variance, so that a layer is blind
#: to the length of its weights to the last digit.
NO_EPS = 1e-30


def draw(widths: Sequence[int], seed: int, members: int, dtype: torch.dtype = torch.float32) -> Network:
    """One network, M times: weights (M, inputs, units) from N(0, 2 / inputs), γ = 1 and β = 0 (M, units).

    There are no biases: batch norm takes them out, and without it β is one.
    """
    generator = torch.Generator().manual_seed(seed)
    weights = []
    for inputs, units in zip(widths, widths[1:]):
        drawn = torch.randn(inputs, units, generator=generator, dtype=torch.float64) * (2 / inputs) ** 0.5
        weights.append(drawn.to(dtype).repeat(members, 1, 1))
    ones = [torch.ones(members, units, dtype=dtype) for units in widths[1:-1]]
    betas = [torch.zeros_like(one) for one in ones]
    return {"weights": weights[:-1], "gammas": ones, "betas": betas, "readout": weights[-1:]}


def trained(network: Network, norm: str) -> list[tuple[str, Tensor]]:
    """All parameters that the answers depend on, each with the name of its group: γ is batch norm's."""
    return [
        (name, part)
        for name, parts in network.items()
        if name != "gammas" or norm != "none"
        for part in parts
    ]


def copied(network: Network, members: Sequence[int]) -> Network:
    """Copies of these members, side by side."""
    return {name: [part.detach()[list(members)] for part in parts] for name, parts in network.items()}


def answers(
    network: Network,
    inputs: Tensor,
    norm: str = "batch",
    eps: float = NO_EPS,
    statistics: Sequence[tuple[Tensor, Tensor]] | None = None,
    used: list[tuple[Tensor, Tensor]] | None = None,
) -> Tensor:
    """(B, values) -> (M, B, classes): h^l = relu(γ (z - μ) / sqrt(σ² + eps) + β), z = h^{l-1} W^l.

    Without batch norm (norm "none") h^l = relu(z + β); the readout is linear. μ and σ² are those of the batch,
    which `used` then takes (with divisor B - 1, as for inference), or the given `statistics`.
    """
    members, h = len(network["readout"][0]), inputs
    for place, (weight, gamma, beta) in enumerate(
        zip(network["weights"], network["gammas"], network["betas"])
    ):
        if place == 0:  # the same images for all: one product
            z = h @ weight.transpose(0, 1).flatten(1)
        else:
            z = torch.bmm(h, weight).transpose(0, 1).flatten(1)  # (B, M units)
        if norm == "none":
            z = z + beta.flatten()
        elif statistics:
            mean, variance = statistics[place]
            z = F.batch_norm(z, mean, variance, gamma.flatten(), beta.flatten(), eps=eps)
        else:
            running = [torch.zeros_like(z[0]), torch.zeros_like(z[0])] if used is not None else [None, None]
            z = F.batch_norm(z, *running, gamma.flatten(), beta.flatten(), True, 1.0, eps)
            if used is not None:
                used.append(tuple(running))
        h = F.relu(z).view(len(inputs), members, -1).transpose(0, 1)
    return torch.bmm(h, network["readout"][0])


def mean_loss(found: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each member, (M,), of its answers (M, B, classes)."""
    flat = F.cross_entropy(found.flatten(0, 1), labels.repeat(len(found)), reduction="none")
    return flat.view(len(found), -1).mean(1)


def accuracies(network: Network, norm: str, seen: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
    """Share of right answers of each member, (M,), by the statistics of the training images `seen`."""
    with torch.no_grad():
        used: list[tuple[Tensor, Tensor]] = []
        answers(network, seen, norm, used=used)
        right = [
            answers(network, part, norm, statistics=used).argmax(-1) == target
            for part, target in zip(inputs.split(2000), labels.split(2000))
        ]
    return torch.cat(right, 1).double().mean(1)


def pooled(dataset: Dataset, split: str, pool: int) -> tuple[Tensor, Tensor]:
    """Normalised images of a split, each pixel the mean over pool × pool, as rows (m, values), and labels."""
    images, labels = (
        (dataset.train_images, dataset.train_labels)
        if split == "train"
        else (dataset.test_images, dataset.test_labels)
    )
    parts = [F.avg_pool2d(normalise(part, dataset), pool).flatten(1) for part in images.split(5000)]
    return torch.cat(parts), labels
