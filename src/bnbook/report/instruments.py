"""Landscape, covariate shift, gradients and moments by layer, each pass on a fresh copy of the network.

The numbers are those of `bnbook.probes`, whose functions swap parameters while the network runs; here the copy
owns its parameters, so that recomputation (activation checkpoints) and parametrizations see what they should.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.activations import moment_change
from bnbook.probes.covariate_shift import CovariateShift
from bnbook.probes.functional import total_norm
from bnbook.probes.landscape import Landscape
from bnbook.probes.layer_gradients import LayerGradients
from bnbook.report.experiments import watch
from bnbook.report.finding import Anatomy, units_along
from bnbook.report.subject import Subject, dense


@dataclass(frozen=True)
class LeftOut:
    """A layer that an instrument leaves out, and why."""

    instrument: str
    layer: str
    why: str


Gradient = Mapping[str, Tensor]


def landscape(subject: Subject, start_loss: Tensor, gradient: Gradient, steps: Sequence[float]) -> Landscape:
    """As `bnbook.probes.landscape.along_gradient`."""
    lengths = torch.as_tensor(steps, dtype=torch.float64).flatten()
    if not len(lengths) or not (lengths > 0).all():
        raise BnbookError(f"steps {lengths.tolist()} along the gradient; expected at least one, each above 0")
    start, rows = total_norm(list(gradient.values())), []
    for a in lengths.tolist():
        loss, there = subject.gradient(_stepped(subject, gradient, a))
        far = [torch.zeros_like(g) if there[n] is None else there[n] for n, g in gradient.items()]
        distance = total_norm([g - h for g, h in zip(gradient.values(), far, strict=True)])
        rows.append(torch.stack([loss, distance, total_norm(far)]))
    loss, distance, norm = torch.stack(rows).T
    lengths = lengths.to(start.device)
    return Landscape(lengths, loss, distance, distance / (lengths * start), norm, start_loss, start)


def _stepped(subject: Subject, gradient: Gradient, a: float) -> dict[str, Tensor]:
    return {n: torch.add(subject.parameters[n], g, alpha=-a) for n, g in gradient.items()}


def shift(
    subject: Subject, anatomy: Anatomy, gradient: Gradient, unused: Sequence[str], learning_rate: float
) -> tuple[CovariateShift, list[LeftOut]]:
    """As `bnbook.probes.covariate_shift.measure`, over the layers whose weights have a gradient.

    The cosine of a layer whose gradient is zero here or there is not defined: nan.
    """
    layers: dict[str, list[str]] = {}
    weights = {name for each in anatomy.layers for name in each.parameters}
    for name in subject.parameters:
        if name in weights:
            layers.setdefault(name.replace("parametrizations.", "").partition(".original")[0], []).append(
                name
            )
    if not layers:
        raise BnbookError("the network has no layer with trained weights")
    out = [
        LeftOut("covariate shift", layer, "does not reach the loss")
        for layer, own in layers.items()
        if all(name in unused for name in own)
    ]
    kept = {layer: own for layer, own in layers.items() if layer not in [each.layer for each in out]}
    if not kept:
        raise BnbookError("no layer's weights reach the loss")
    updated, names, rows = _stepped(subject, gradient, learning_rate), list(subject.parameters), []
    for own in kept.values():
        before = [gradient[name] for name in own]
        preceding = [n for n in names[: names.index(own[0])] if _owner(n) != _owner(own[0])]
        after = before
        if preceding:
            _, there = subject.gradient({n: updated[n] for n in preceding}, own)
            after = [
                torch.zeros_like(g) if there[n] is None else there[n]
                for n, g in zip(own, before, strict=True)
            ]
        one, other = total_norm(before), total_norm(after)
        distance = total_norm([g - h for g, h in zip(before, after, strict=True)])
        inner = sum((g.double() * h.double()).sum() for g, h in zip(before, after, strict=True))
        cosine = inner / (one * other) if preceding else torch.where(one > 0, 1.0, torch.nan).to(one)
        rows.append(torch.stack([distance, cosine, one]))
    return CovariateShift(*torch.stack(rows).T, tuple(kept)), out


def _owner(name: str) -> str:
    """The module that a parameter belongs to: a parametrized weight is registered after its own bias."""
    return (
        name.partition(".parametrizations.")[0] if ".parametrizations." in name else name.rpartition(".")[0]
    )


def by_layer(subject: Subject, anatomy: Anatomy, start_loss: Tensor) -> tuple[LayerGradients, list[LeftOut]]:
    """As `bnbook.probes.layer_gradients.measure`, in the mode that the network is in, for every layer with
    weights that runs once and hands on one tensor; a parametrized weight is taken as the layer uses it."""
    gave: dict[str, list[Tensor]] = {}
    used: dict[str, tuple[Tensor, list[Tensor]]] = {}
    runs: dict[str, int] = {}
    chosen = {each.name: each for each in anatomy.layers}

    def before(name: str, module: nn.Module) -> None:
        runs[name] = runs.get(name, 0) + 1
        weight = getattr(module, "weight", None)
        if runs[name] == 1 and isinstance(weight, Tensor) and weight.requires_grad and not weight.is_leaf:
            caught: list[Tensor] = []
            weight.register_hook(caught.append)
            used[name] = weight.detach(), caught

    def behind(name: str, output: object) -> None:
        if isinstance(output, Tensor) and output.requires_grad and runs[name] == 1:
            gave[name] = []  # a tensor's hook sees its gradient also where it is changed in place later
            output.register_hook(gave[name].append)

    with subject.twin() as twin, nn.utils.parametrize.cached():
        modules = dict(twin.network.named_modules())
        for name in chosen:
            watch(
                modules[name],
                lambda m, _got, _more, name=name: before(name, m),
                lambda _m, _got, output, name=name: behind(name, output),
            )
        value = twin.value()
        value.backward()
        named = dict(nn.Module.named_parameters(twin.network))  # all, whatever the network says of itself
    same = bool((value.detach().double() - start_loss).abs() <= 1e-6 * start_loss.abs() + 1e-12)
    rows, out, taken = [], [], {}
    for name, layer in chosen.items():
        own = [named[each] for each in layer.parameters]
        weight, caught = used.get(name, (None, []))
        if weight is not None:
            pairs = [(weight, caught[0])] if caught and same else []
        else:
            pairs = [(p.detach(), dense(p.grad)) for p in own if p.grad is not None]
        output = gave.get(name, [])
        why = (
            "is frozen"
            if not any(p.requires_grad for p in own)
            else f"shares its weights with {taken[layer.parameters[0]]}"
            if layer.parameters[0] in taken
            else "is not seen to run by itself"
            if not runs.get(name)
            else f"runs {runs[name]} times in one pass"
            if runs[name] > 1 and name not in gave or runs[name] > 1
            else "hands on no single tensor"
            if name not in gave
            else "does not reach the loss"
            if not output
            else "computes its weights anew in the middle of a pass"
            if not pairs
            else ""
        )
        taken.setdefault(layer.parameters[0], name)
        if why:
            out.append(LeftOut("gradients by layer", name or layer.kind, why))
            continue
        weights, slopes = ([each.double() for each in side] for side in zip(*pairs, strict=True))
        along = sum((w * g).sum() for w, g in zip(weights, slopes, strict=True))
        rows.append((name, total_norm(slopes), total_norm([output[0]]), total_norm(weights), along))
    if not rows:
        reasons = ", ".join(f"{each.layer} {each.why}" for each in out[:3])
        raise BnbookError(f"no layer with weights can be watched{f': {reasons}' if reasons else ''}")
    names, *numbers = zip(*rows, strict=True)
    return LayerGradients(names, *(np.array([float(x.detach()) for x in each]) for each in numbers)), out


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


def moments(
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
