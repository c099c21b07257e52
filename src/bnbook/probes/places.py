"""The first two moments at the three places of a layer: before its normalizer, behind it, and at the next
layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.models import activation_points
from bnbook.probes.activations import moment_change
from bnbook.probes.statistics import copied

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
    points, following = activation_points(model), _following(model)
    missing = [layer for layer in layers if not 1 <= layer <= len(points)]
    if missing:
        raise BnbookError(f"no layer {missing[0]} to look at; this model has {len(points)}; choose from 1 on")
    found: Moments = [[torch.empty(0)] * len(PLACES) for _ in layers]
    with copied(model) as twin, torch.no_grad():
        for row, layer in zip(found, layers, strict=True):
            normalizer = twin.get_submodule(points[layer - 1])
            behind = twin.get_submodule(following[points[layer - 1]])
            normalizer.register_forward_pre_hook(lambda _m, given, row=row: row.__setitem__(0, _of(given[0])))
            normalizer.register_forward_hook(lambda _m, _g, made, row=row: row.__setitem__(1, _of(made)))
            behind.register_forward_pre_hook(lambda _m, given, row=row: row.__setitem__(2, _of(given[0])))
        twin(inputs)
    return found


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


def _following(model: nn.Module) -> dict[str, str]:
    """Name of each normalizer -> name of the layer with weights that comes next."""
    names = [name for name, _ in model.named_modules()]
    layers = [name for name, module in model.named_modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    following = {}
    for point in activation_points(model):
        behind = [name for name in layers if names.index(name) > names.index(point)]
        if not behind:
            raise BnbookError(f"no layer behind {point}; expected one, whose input is looked at")
        following[point] = behind[0]
    return following


def _of(values: Tensor) -> Tensor:
    """(B, C) or (B, C, H, W) -> mean and variance of each unit, (2, C), in float64: float32 loses the
    variance of a nearly dead unit."""
    by_unit = values.detach().transpose(0, 1).flatten(1).double()
    variance, mean = torch.var_mean(by_unit, 1, correction=0)
    return torch.stack([mean, variance])
