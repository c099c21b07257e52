"""The first γ of batch norm: the curvature at the start, and learning curves short enough to keep."""

from __future__ import annotations

import numpy as np
import torch

from bnbook.data import Dataset, normalise
from bnbook.probes.fisher import largest_eigenvalue
from bnbook.studies.mean_field import sample_inputs
from bnbook.training.curves import moving_mean
from bnbook.training.first_gamma import ScaleArm

#: Steps that a learning curve is averaged over, and points of it that are kept.
WINDOW, POINTS = 25, 100
#: Of λ_max by the Lanczos iteration, relative.
TOLERANCE = 1e-3


def tag(network: str, gamma: float) -> str:
    """What names of results end in: ("vgg16", 0.1) -> "vgg16.g0_1"."""
    return f"{network}.g" + f"{gamma:g}".replace(".", "_")


def first_eigenvalue(arm: ScaleArm, seed: int, dataset: Dataset, inputs: int) -> float:
    """λ_max of the untrained network's Fisher matrix: one output, weights, gradients through the batch of
    `inputs` images, other images for every seed."""
    torch.manual_seed(seed)
    model = arm.model(dataset).train()
    images = sample_inputs(dataset.train_images, (), seed, inputs)
    found = largest_eigenvalue(
        model, normalise(images, dataset), outputs=0, statistics="batch", tolerance=TOLERANCE
    )
    return float(found)


def learning_curve(accuracy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moving mean over `WINDOW` steps of the batch accuracy (S, T), at most `POINTS` points of it: the steps,
    counted from 1, and the means (S, points)."""
    steps = accuracy.shape[1]
    smooth = moving_mean(accuracy, min(WINDOW, max(1, steps // 3)))
    kept = np.unique(np.linspace(0, steps - 1, min(POINTS, steps)).round().astype(int))
    return kept + 1, smooth[:, kept]
