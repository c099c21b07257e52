"""Beside a critical learning rate: its steepest direction by layers, what training changes, best rates."""

from __future__ import annotations

import numpy as np
import torch

from bnbook.data import Dataset
from bnbook.probes.fisher import LargestEigenvalue, largest_eigenvalue
from bnbook.small_networks import PhaseArm, full_batch, train_model
from bnbook.studies.critical_rate import TOLERANCE

#: Points that are kept of a loss by step.
POINTS = 60


def weights_curvature(arm: PhaseArm, seed: int, dataset: Dataset) -> LargestEigenvalue:
    """λ_max over all outputs and the weights, through the batch, of the network and the batch of a seed."""
    images, _ = full_batch(arm, seed, dataset)
    network = arm.drawn(seed, dataset).train()
    return largest_eigenvalue(network, images, "all", "weights", tolerance=TOLERANCE)


def layer_shares(arm: PhaseArm, seed: int, dataset: Dataset, found: LargestEigenvalue) -> np.ndarray:
    """Shares of the layers' weights, (L,), in the eigenvector J^T v of the Fisher matrix, squares summed."""
    network = arm.drawn(seed, dataset).train()
    images, _ = full_batch(arm, seed, dataset)
    weights = [p for p in network.parameters() if p.ndim >= 2]
    gradients = torch.autograd.grad((network(images) * found.vector.to(images)).sum(), weights)
    squares = np.array([g.double().square().sum().item() for g in gradients])
    return squares / squares.sum()


def after_training(arm: PhaseArm, seed: int, dataset: Dataset) -> dict[str, float]:
    """What a training changed: log10 of λ_max (of the weights, all outputs, through the batch) over before,
    the spread of the hidden weights over before where it grew most, that of the readout, the root mean
    square of the last γ, and log10 of the loss of the last tenth of the steps over the first."""
    before = arm.drawn(seed, dataset)
    after, loss = train_model(arm, seed, dataset)
    images, _ = full_batch(arm, seed, dataset)
    top = largest_eigenvalue(after.train(), images, "all", "weights", tolerance=TOLERANCE).value
    pairs = zip(before.parameters(), after.parameters(), strict=True)
    *spread, readout = [float(q.detach().std() / p.detach().std()) for p, q in pairs if p.ndim >= 2]
    gamma = [module.weight for module in after.modules() if hasattr(module, "running_mean")][-1]
    with np.errstate(divide="ignore"):  # -inf: every unit died
        return {
            "curvature": np.log10(top / weights_curvature(arm, seed, dataset).value),
            "hidden": max(spread),
            "readout": readout,
            "gamma": float(gamma.detach().square().mean().sqrt()),
            "loss": np.log10(loss[-max(1, len(loss) // 10) :].mean() / loss[0]),
        }


def best_rates(losses: np.ndarray, log_rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest test loss of each restart at each γ and log10 of its rate, (S, γ) both.

    losses (S, γ, rates), NaN where a training exploded; log_rates (γ, rates). inf where all exploded.
    """
    known = np.where(np.isfinite(losses), losses, np.inf)
    place = known.argmin(axis=2)[..., None]
    every = np.broadcast_to(log_rates, losses.shape)
    return known.min(axis=2), np.take_along_axis(every, place, 2)[..., 0]


def kept_steps(steps: int) -> np.ndarray:
    """At most `POINTS` steps of so many, evenly from the first to the last, counted from 0."""
    return np.unique(np.linspace(0, steps - 1, min(POINTS, steps)).round().astype(int))
