"""What a nonlinearity receives: its distribution over a batch, unit by unit, and how far it moves in
training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.models import activation_points
from bnbook.probes.statistics import copied, seen_in

#: 241 bins of equal width in asinh(100 y), the same for every arm, layer and step: about 0.0007 wide at zero
#: and 7 % of the value far out, because layers without normalization may work at a hundredth of the scale of
#: those with it.
EDGES: np.ndarray = np.sinh(np.linspace(-math.asinh(3000.0), math.asinh(3000.0), 242)) / 100


@dataclass(frozen=True)
class Activations:
    """Inputs of the chosen nonlinearities over a batch (and positions), one entry a layer."""

    mean: tuple[Tensor, ...]  # (units,) each
    variance: tuple[Tensor, ...]  # (units,) each, divided by the count, as batch norm does
    histogram: Tensor  # (layers, shown units, bins): shares of the values, the outermost bins take the rest


def measure(
    model: nn.Module,
    inputs: Tensor,
    layers: Sequence[int],
    units: Sequence[int] = (0,),
    edges: np.ndarray = EDGES,
) -> Activations:
    """Distribution of the inputs of nonlinearities `layers` (1 is the first), with the statistics of this
    batch.

    In a linear network: of what enters the next layer (`bnbook.models.activation_points`).

    Per unit j: mean_j = E[y_j], variance_j = E[(y_j - mean_j)^2], E over the batch (B, C) or over batch,
    height and width (B, C, H, W). `units` says whose histograms are taken (modulo the layer's width). The
    model runs in training mode on copies of its buffers: parameters, running statistics, mode and random
    state stay bit-identical. BnbookError for a layer that the model does not have. Source: Santurkar et al.
    2018, appendix A.2.1.
    """
    points = points_of(model, layers)
    with copied(model) as twin, torch.no_grad():
        seen = seen_in({point: twin.get_submodule(point) for point in points})
        twin(inputs)
    inner = torch.as_tensor(edges[1:-1], dtype=torch.float64, device=inputs.device)
    values = [by_unit(seen[point][1]).contiguous() for point in points]
    return Activations(
        mean=tuple(y.mean(1) for y in values),
        variance=tuple(y.var(1, correction=0) for y in values),
        histogram=torch.stack([torch.stack([_shares(y[j % len(y)], inner) for j in units]) for y in values]),
    )


def quantiles(histogram: np.ndarray, levels: Sequence[float], edges: np.ndarray = EDGES) -> np.ndarray:
    """Quantiles of histograms (..., bins) -> (..., levels), values taken as spread evenly over their bin."""
    below = np.concatenate([np.zeros((*histogram.shape[:-1], 1)), np.cumsum(histogram, axis=-1)], axis=-1)

    def one(cumulated: np.ndarray) -> np.ndarray:
        finite = np.isfinite(cumulated).all()
        return np.interp(levels, cumulated, edges) if finite else np.full(len(levels), np.nan)

    return np.apply_along_axis(one, -1, below)


def moment_change(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far the first two moments move between successive checkpoints, averaged over units, each within [0,
    2].

    mean, variance: (T, units) -> two arrays (T - 1,):
    |m' - m| / sqrt((v + v') / 2 + (m' - m)^2 / 4), the denominator being the standard deviation of both
    checkpoints' values thrown together, and 2 |v' - v| / (v' + v). Both ignore the unit's scale, count a unit
    that does not move as 0 and stay bounded where a unit dies. Source: the quantities of Santurkar et al.
    2018, section 2 and v1 Figure 8, for which the paper gives no formula.
    """
    shift, spread = np.abs(np.diff(mean, axis=0)), np.abs(np.diff(variance, axis=0))
    total = variance[1:] + variance[:-1]
    return _ratio(shift, np.sqrt(total / 2 + shift**2 / 4)).mean(1), _ratio(2 * spread, total).mean(1)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below with 0 / 0 = 0; NaN stays NaN."""
    return np.where(above == 0, 0.0, above / np.where(below == 0, 1.0, below))


def points_of(model: nn.Module, layers: Sequence[int]) -> list[str]:
    """Names of the places before nonlinearities `layers` (1 is the first); BnbookError for one that is not there."""
    points = activation_points(model)
    missing = [layer for layer in layers if not 1 <= layer <= len(points)]
    if missing:
        raise BnbookError(f"no layer {missing[0]} to look at; this model has {len(points)}; choose from 1 on")
    return [points[layer - 1] for layer in layers]


def by_unit(values: Tensor) -> Tensor:
    """(B, C) or (B, C, H, W) -> (C, B) or (C, B H W), in float64: float32 loses the variance of a nearly dead
    unit."""
    return values.detach().transpose(0, 1).flatten(1).double()


def _shares(values: Tensor, inner: Tensor) -> Tensor:
    counts = torch.bincount(torch.bucketize(values, inner), minlength=len(inner) + 1).double()
    return torch.where(torch.isfinite(values).all(), counts / counts.sum(), torch.nan)
