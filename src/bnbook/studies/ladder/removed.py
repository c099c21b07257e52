"""What batch norm would take from the gradient of a plain network, at the layers of Theorem 4.1."""

from __future__ import annotations

import numpy as np

from bnbook.models.vgg import HIDDEN
from bnbook.probes.over_steps import over_training
from bnbook.training.placed import PARTS, PlacedArm

Arrays = dict[str, np.ndarray]


def at_fully_connected(run: Arrays, arm: PlacedArm) -> Arrays:
    """Shares of ‖g‖² at the fully connected layers, mean over these and the steps, (S,) each.

    g_j (m,): gradient by what unit j hands on, over the m = B values of a batch. removed_fc_one: Σ_j
    <1, g_j>²/m over Σ_j ‖g_j‖²; removed_fc_values: Σ_j <ŷ_j, g_j>²/m over the same; each with _chance, as a
    multiple of 1/m, the mean share that a direction drawn at random would have; removed_fc_growth: the
    exponent with which <1, g_j>² grows from a quarter of a batch to the whole, 1 for numbers of random sign,
    2 for numbers that share theirs. Source: Santurkar et al. 2018, NeurIPS, Theorem 4.1.
    """
    layers, probe_step = slice(-len(HIDDEN), None), run["probe_step"][0]

    def share(name: str) -> np.ndarray:
        return over_training(run[f"removed_along_{name}"][..., layers].mean(-1), probe_step, mean=True)

    shares = {f"removed_fc_{name}": share(name) for name in ("one", "values")}
    found = shares | {f"{name}_chance": arm.batch_size * values for name, values in shares.items()}
    with np.errstate(divide="ignore"):
        grown = np.log(shares["removed_fc_one"] / share("one_part")) / np.log(PARTS)
    return found | {"removed_fc_growth": 2 + grown}
