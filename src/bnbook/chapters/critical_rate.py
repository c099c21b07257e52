"""Critical learning rates of one small network and its batch: of its whole linear regime, of its readout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from bnbook.data import Dataset
from bnbook.probes.fisher import LargestEigenvalue, largest_eigenvalue
from bnbook.small_networks import PhaseArm, full_batch

#: A loss so many times the first has exploded, as in `bnbook.small_networks.descent`.
EXPLOSION = 1e6
#: Of λ_max by the Lanczos iteration, relative.
TOLERANCE = 1e-4


def largest(arm: PhaseArm, seed: int, dataset: Dataset) -> LargestEigenvalue:
    """λ_max over all outputs and parameters, through the batch, of the network and the batch of a seed."""
    images, _ = full_batch(arm, seed, dataset)
    return largest_eigenvalue(arm.drawn(seed, dataset).train(), images, "all", "all", tolerance=TOLERANCE)


def log_rate(arm: PhaseArm, curvature: float) -> float:
    """log10 of 2 (1 + μ) / λ_max, equation 7."""
    return float(np.log10(2 * (1 + arm.momentum) / curvature))


def readout_rates(arm: PhaseArm, seed: int, dataset: Dataset, gammas: Sequence[float]) -> np.ndarray:
    """log10 critical rates of the readout alone, (γ,): of its weights and biases, all other parameters held.

    Its matrix is (1/B) (γ² H H^T + 1), H (B, N) the activations before it at γ = 1, the ones those of the
    bias. arm.gamma has to be 1.
    """
    images, _ = full_batch(arm, seed, dataset)
    with torch.no_grad():
        before = arm.drawn(seed, dataset).train()[:-1](images).flatten(1).double().numpy()
    gram = before @ before.T
    tops = [np.linalg.eigvalsh(gamma**2 * gram + 1)[-1] / len(gram) for gamma in gammas]
    return np.array([log_rate(arm, top) for top in tops])


def explosion_step(loss: np.ndarray) -> float:
    """First step whose loss (T,) is no number or `EXPLOSION` times the first; inf if there is none."""
    with np.errstate(invalid="ignore"):
        broken = ~(loss <= EXPLOSION * loss[0])
    return float(broken.argmax()) if broken.any() else np.inf


def brightness(arm: PhaseArm, seed: int, dataset: Dataset, found: LargestEigenvalue) -> float:
    """|correlation| over the batch of an eigenvector, summed over outputs by its first singular vector, with
    the mean of the images' pixels."""
    images, _ = full_batch(arm, seed, dataset)
    left, _, _ = torch.linalg.svd(found.vector.double(), full_matrices=False)
    return float(np.abs(np.corrcoef(left[:, 0].numpy(), images.flatten(1).mean(1).numpy())[0, 1]))


# ---- Figures ----------------------------------------------------------------------------------------------

SETS = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar10-auto": "CIFAR-10"}
NETS = {"fc": "fully connected", "conv": "convolutional"}
Panels = Mapping[tuple[str, str], str]  # (set, network) -> what names end in
