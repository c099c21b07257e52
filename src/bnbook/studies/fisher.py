"""The largest Fisher eigenvalue of fresh networks, in the four ways to treat the statistics of batch norm."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bnbook.meanfield import Convolutional, FullyConnected
from bnbook.models import cnn, mlp
from bnbook.probes.fisher import LargestEigenvalue, largest_eigenvalue

#: Name -> normalizer, statistics of the probe, and the equations that are right for it.
CASES = {
    "none": ("none", "batch", "corrected"),
    "detached": ("batch", "detached", "corrected"),
    "population": ("batch", "population", "corrected"),
    "through": ("batch", "batch", "through_batch"),
}
#: Batches that population statistics are averaged over.
PARTS = 4
TOLERANCE = 1e-4  # of λ_max by the Lanczos iteration, relative


def drawn(architecture: FullyConnected | Convolutional, norm: str, seed: int, gamma: float) -> nn.Module:
    """The network that the paper draws (equations 12, 16 and 27) from this seed."""
    torch.manual_seed(seed)
    if isinstance(architecture, FullyConnected):
        return mlp(architecture.widths, norm, "meanfield", gamma=gamma)
    return cnn(architecture.image, architecture.channels, norm=norm, gamma=gamma)


def see_population(network: nn.Module, inputs: Tensor) -> None:
    """Leave in the network the plain averages of the statistics of `PARTS` large batches."""
    for module in network.modules():
        if hasattr(module, "momentum"):
            module.momentum = None
    network.train()
    with torch.no_grad():
        for part in inputs.split(len(inputs) // PARTS):
            network(part)


def eigenvalue_in(
    case: str,
    architecture: FullyConnected | Convolutional,
    seed: int,
    inputs: Tensor,
    further: Tensor | None = None,
    *,
    outputs: int | str = 0,
    gamma: float = 1.0,
) -> LargestEigenvalue:
    """λ_max of the weights' Fisher matrix of a fresh network, for a case of `CASES`.

    inputs (m, ...): those of the matrix; further (n, ...): those of the population's statistics.
    """
    norm, statistics, _ = CASES[case]
    network = drawn(architecture, norm, seed, gamma)
    if statistics == "population":
        see_population(network, further)
    return largest_eigenvalue(network, inputs, outputs, statistics=statistics, tolerance=TOLERANCE)
