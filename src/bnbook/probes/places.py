"""The first two moments at the three places of a layer: before its normalizer, behind it, and at the next
layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.activations import by_unit, moment_change, points_of
from bnbook.probes.statistics import copied, seen_in

#: What the normalizer receives; what the nonlinearity receives (behind noise, where there is some), in a
#: network without normalizer the same; and what the next layer receives, behind nonlinearity and pooling.
PLACES = ("before_normalization", "before_nonlinearity", "next_input")

Moments = list[
    list[Tensor]
]  # of each layer, at each of the PLACES: mean and variance of its units, (2, units)


def measure(model: nn.Module, inputs: Tensor, layers: Sequence[int]) -> Moments:
    """Mean and variance of every unit at the three places of layers `layers` (1 is the first), over a batch.

    Per unit j: m_j = E[y_j], v_j = E[(y_j - m_j)²], E over the batch (B, C) or over batch, height and width
    (B, C, H, W), summed in float64. The statistics are those of this batch; the noise is that of the next
    training forward; parameters, running statistics, mode and random state stay bit-identical. BnbookError
    for a layer that the model does not have, and for one without a layer behind it. Source: Santurkar et al.
    2018, section 2 ("layer inputs") and Figure 2 (before the nonlinearity), which are two places.
    """
    points = points_of(model, layers)
    behind = [_following(model, point) for point in points]
    with copied(model) as twin, torch.no_grad():
        seen = seen_in({name: twin.get_submodule(name) for name in {*points, *behind}})
        twin(inputs)
    return [[*map(_of, seen[point]), _of(seen[after][0])] for point, after in zip(points, behind)]


def change(one: Moments, other: Moments) -> Tensor:
    """How far mean and variance moved from one to the other, averaged over units, (L, places, 2).

    The mean in standard deviations, the variance as a share of itself, each within [0, 2]
    (`bnbook.probes.activations.moment_change`).
    """
    rows = [
        [np.concatenate(moment_change(*(torch.stack(pair, 1).cpu().numpy()))) for pair in zip(*layers)]
        for layers in zip(one, other, strict=True)
    ]
    return torch.tensor(np.array(rows))


def median_variance(moments: Moments) -> Tensor:
    """Variance of a layer's middle unit at each place, (L, places)."""
    return torch.stack([torch.stack([place[1].median() for place in layer]) for layer in moments])


def _following(model: nn.Module, point: str) -> str:
    """Name of the layer with weights that comes after a normalizer."""
    modules = dict(model.named_modules())
    after = [*modules][[*modules].index(point) :]
    layers = [name for name in after if isinstance(modules[name], (nn.Conv2d, nn.Linear))]
    if not layers:
        raise BnbookError(f"no layer behind {point}; expected one, whose input is looked at")
    return layers[0]


def _of(values: Tensor) -> Tensor:
    """(B, C) or (B, C, H, W) -> mean and variance of each unit, (2, C)."""
    variance, mean = torch.var_mean(by_unit(values), 1, correction=0)
    return torch.stack([mean, variance])
