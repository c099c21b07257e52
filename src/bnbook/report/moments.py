"""How far one update moves the first two moments of what layers receive, at three places of any network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from bnbook.probes.activations import moment_change
from bnbook.probes.functional import Batch, Loss, loss_at
from bnbook.report.finding import WEIGHTED, by_unit, is_normalizer

#: Before a normalizer; behind it; what a layer with weights receives.
PLACES = ("before normalization", "behind normalization", "input of a weight layer")


@dataclass(frozen=True)
class Moments:
    """One entry a place: K places, in forward order; averages over the place's units, float64."""

    places: tuple[str, ...]  # (K,), one of PLACES
    names: tuple[str, ...]  # (K,), the layer's name
    mean: np.ndarray  # (K,)  mean over units of |mean_j|
    variance: np.ndarray  # (K,)  mean over units of variance_j
    mean_change: np.ndarray  # (K,)  |m' - m| / sqrt((v + v')/2 + (m' - m)²/4), in [0, 2]
    variance_change: np.ndarray  # (K,)  2 |v' - v| / (v + v'), in [0, 2]


def measure(model: nn.Module, loss: Loss, batch: Batch, learning_rate: float) -> Moments:
    """Moments over the batch (and positions) of every unit before and after one step θ - η ∇L(θ) on it.

    A layer that runs several times in one pass is taken at its first. The model runs in the mode it is in
    and stays bit-identical. Source: the quantities of Santurkar et al. 2018, section 2, v1 Figure 8.
    """
    with loss_at(model, loss, batch) as at:
        names = list(at.parameters)
        _, gradient = at({}, names)
        before = _look(at, {})
        moved = {n: at.parameters[n] - learning_rate * g for n, g in zip(names, gradient, strict=True)}
        after = _look(at, moved)
    rows = []
    for place, (mean, variance) in before.items():
        mean, variance = np.stack([mean, after[place][0]]), np.stack([variance, after[place][1]])
        (shift,), (spread,) = moment_change(mean, variance)
        rows.append((*place, np.abs(mean[0]).mean(), variance[0].mean(), shift, spread))
    places, layers, *numbers = zip(*rows) if rows else ((),) * 6
    return Moments(places, layers, *(np.array(each, dtype=float) for each in numbers))


def _look(at, changed: Mapping[str, Tensor]) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """(place, layer) -> mean and variance of each unit, at other parameters than the model's."""
    found: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}

    def keep(place: str, name: str, module: nn.Module, values: Tensor) -> None:
        if isinstance(values, Tensor) and values.dim() >= 2:
            units = by_unit(module, values)
            moments = units.mean(1), units.var(1, correction=0)
            found.setdefault((place, name), tuple(each.cpu().numpy() for each in moments))

    hooks = []
    for name, module in at.model.named_modules():
        if is_normalizer(module):
            hooks.append(module.register_forward_pre_hook(_before(keep, PLACES[0], name)))
            hooks.append(module.register_forward_hook(_behind(keep, PLACES[1], name)))
        elif isinstance(module, WEIGHTED):
            hooks.append(module.register_forward_pre_hook(_before(keep, PLACES[2], name)))
    buffers = {name: buffer.clone() for name, buffer in at.model.named_buffers()}
    try:
        with torch.no_grad():
            functional_call(at.model, at.parameters | dict(changed) | buffers, (at.batch[0],))
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _before(keep: Callable[..., None], place: str, name: str):
    return lambda module, arguments: keep(place, name, module, arguments[0] if arguments else None)


def _behind(keep: Callable[..., None], place: str, name: str):
    return lambda module, _arguments, output: keep(place, name, module, output)
