"""What the chapter on gradient explosion measures in a network: growth per layer, by depth, and roughness."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.probes.functional import total_norm
from bnbook.probes.landscape import along_gradient
from bnbook.probes.layer_gradients import LayerGradients, measure

CLASSES = 10


def gaussian_batch(m: int, units: int, seed: int) -> tuple[Tensor, Tensor]:
    """m independent standard normal inputs (m, units) and labels (m,) drawn at random: nothing to learn,
    nothing alike."""
    generator = torch.Generator().manual_seed(10**6 + seed)
    return torch.randn(m, units, generator=generator), torch.randint(CLASSES, (m,), generator=generator)


def gradients(model: nn.Module, m: int, seed: int, statistics: str = "batch") -> LayerGradients:
    """Gradients of the cross-entropy on a `gaussian_batch`, layer by layer."""
    return measure(model, F.cross_entropy, gaussian_batch(m, _inputs(model), seed), statistics)


def fitted_growth(squares: np.ndarray, skip: int = 2) -> float:
    """The factor per layer downwards: exp(-slope) of log squares over the layers, `skip` left out at both
    ends.

    squares: (L,), first layer first. Below, the data are not yet mixed; on top, the gradient still knows the
    loss.
    """
    inside = np.arange(skip, len(squares) - skip)
    return float(np.exp(-np.polyfit(inside, np.log(squares[inside]), 1)[0]))


def depth_growth(first: np.ndarray, depths: np.ndarray | list[int]) -> np.ndarray:
    """The factor per added layer: exp(slope) of log first against the depths; first (S, depths) -> (S,)."""
    return np.exp(np.polyfit(depths, np.log(first).T, 1)[0])


def steadiness(first: np.ndarray, depths: np.ndarray | list[int]) -> np.ndarray:
    """What a layer adds to log first between the last two depths over what it adds between the first two, (S,
    depths) -> (S,): 1 for an exponential; for a power of the depth the first of the depths over the last but
    one."""
    added = np.diff(np.log(first), axis=1) / np.diff(depths)
    return added[:, -1] / added[:, 0]


def roughness(model: nn.Module, m: int, seed: int, shares: tuple[float, ...] = (1e-4, 1e-3, 1e-2)) -> float:
    """The largest change of the gradient per distance, ‖∇ℓ(θ) - ∇ℓ(θ_a)‖ / ‖θ - θ_a‖, along the gradient at
    θ.

    The distances are shares of ‖θ‖, the same for every network.
    """
    batch = gaussian_batch(m, _inputs(model), seed)
    size = total_norm([p.detach() for p in model.parameters() if p.requires_grad])
    slope = along_gradient(model, F.cross_entropy, batch, [1e-9]).start_norm
    steps = [float(share * size / slope) for share in shares]
    return float(along_gradient(model, F.cross_entropy, batch, steps).effective_smoothness)


def _inputs(model: nn.Module) -> int:
    return next(layer.in_features for layer in model.modules() if isinstance(layer, nn.Linear))
