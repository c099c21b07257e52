"""What becomes of the looks at a training: its last third, the effective β of each look, and a case that is
spent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.probes.functional import Batch, Loss
from bnbook.studies.edge.looking import LENGTHS, Looks

REACH = (0.5, 4.0)  # learning rates, as in appendix A.2.2 of Santurkar et al. 2018
STEEPEST = 100.0  # times 2/η, the largest curvature of a case that is spent


def last_third(values: np.ndarray, looks: Sequence[int]) -> np.ndarray:
    """Median over the looks in the last third of a training, (S, P, ...) -> (S, ...)."""
    steps = np.asarray(looks)
    return np.median(values[:, 3 * steps >= 2 * steps[-1]], axis=1)


def effective_smoothness(change: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """max_a ‖∇L(θ) - ∇L(θ_a)‖ / (a ‖∇L(θ)‖) over a in REACH, from changes (S, P, LENGTHS) and rates (S,)."""
    lengths = np.array(LENGTHS)
    within = (lengths >= REACH[0]) & (lengths <= REACH[1])
    return (change / lengths)[..., within].max(-1) / rates[:, None]


def joined(first: Looks, second: Looks) -> Looks:
    """Two stretches of one training; the look at the seam comes once."""
    return {name: np.concatenate([first[name], second[name][:, 1:]], axis=1) for name in first}


def spent_case(seed: int, rate: float) -> tuple[nn.Module, Loss, Batch]:
    """A linear unit with the squared hinge loss ½ max(0, 1 - w^T x)² on one example, at w^T x = 0, float64.

    The only curvature is ‖x‖² ≥ 2/η, log-uniform up to STEEPEST times that: a step of η/2 along the gradient
    reaches w^T x ≥ 1, where the loss is flat and the gradient 0.
    """
    draw = np.random.default_rng(seed)
    x = draw.normal(size=5)
    x *= np.sqrt(np.exp(draw.uniform(0, np.log(STEEPEST))) * 2 / rate * (1 + 1e-9)) / np.linalg.norm(x)
    unit = nn.Linear(5, 1, bias=False).double()
    with torch.no_grad():
        unit.weight.zero_()
    return unit, squared_hinge, (torch.from_numpy(x)[None], torch.ones(1, 1, dtype=torch.float64))


def squared_hinge(outputs: Tensor, targets: Tensor) -> Tensor:
    """½ max(0, 1 - y f)², mean over the examples."""
    return 0.5 * (1 - targets * outputs).clamp(min=0).square().mean()
