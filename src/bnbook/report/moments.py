"""How far one update moves the first two moments of what layers receive, at three places of any network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from bnbook.probes.activations import moment_change
from bnbook.report.experiments import watch
from bnbook.report.finding import Anatomy, units_along
from bnbook.report.instruments import LeftOut
from bnbook.report.subject import Subject

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


def measure(
    subject: Subject, anatomy: Anatomy, gradient: Mapping[str, Tensor], learning_rate: float
) -> tuple[Moments, list[LeftOut]]:
    """Moments over the batch (and positions) of every unit before and after one step θ - η ∇L(θ) on it.

    A layer that runs several times in one pass is taken at its first. Source: the quantities of Santurkar et
    al. 2018, section 2, v1 Figure 8.
    """
    before = _look(subject, anatomy, {})
    moved = {n: subject.parameters[n] - learning_rate * g for n, g in gradient.items()}
    after = _look(subject, anatomy, moved)
    rows = []
    for place, (mean, variance) in before.items():
        if place not in after or after[place][0].shape != mean.shape:
            continue
        mean, variance = np.stack([mean, after[place][0]]), np.stack([variance, after[place][1]])
        (shift,), (spread,) = moment_change(mean, variance)
        rows.append((*place, np.abs(mean[0]).mean(), variance[0].mean(), shift, spread))
    places, layers, *numbers = zip(*rows) if rows else ((),) * 6
    seen = {name for _, name in before}
    out = [
        LeftOut("moments", each.name, "receives no features that can be told apart" if each.runs else _UNSEEN)
        for each in anatomy.layers
        if each.name not in seen
    ]
    out += [LeftOut("moments", each.name, _UNSEEN) for each in anatomy.normalizers if each.name not in seen]
    return Moments(places, layers, *(np.array(each, dtype=float) for each in numbers)), out


_UNSEEN = "is not seen to run by itself"


def _look(
    subject: Subject, anatomy: Anatomy, changed: Mapping[str, Tensor]
) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """(place, layer) -> mean and variance of each unit, at other parameters than the network's."""
    found: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}

    def keep(place: str, name: str, axis: int, values: object) -> None:
        if isinstance(values, Tensor) and values.dim() >= 2 and values.is_floating_point():
            units = units_along(axis, values)
            moments = units.mean(1), units.var(1, correction=0)
            found.setdefault((place, name), tuple(each.cpu().numpy() for each in moments))

    def first(got: tuple, more: dict) -> object:
        return next((v for v in [*got, *more.values()] if isinstance(v, Tensor)), None)

    with subject.twin(changed) as twin:
        modules = dict(twin.network.named_modules())
        for each in anatomy.normalizers:
            watch(
                modules[each.name],
                lambda _m, got, more, e=each: keep(PLACES[0], e.name, e.axis, first(got, more)),
                lambda _m, _got, gave, e=each: keep(PLACES[1], e.name, e.axis, gave),
            )
        for each in anatomy.layers:
            if each.axis is not None:
                watch(
                    modules[each.name],
                    lambda _m, got, more, e=each: keep(PLACES[2], e.name, e.axis, first(got, more)),
                    None,
                )
        twin.outputs()
    return found
