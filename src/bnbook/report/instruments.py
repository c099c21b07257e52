"""Landscape, covariate shift and gradients by layer, each pass on a fresh copy of the network.

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
from bnbook.probes.covariate_shift import CovariateShift
from bnbook.probes.functional import total_norm
from bnbook.probes.landscape import Landscape
from bnbook.probes.layer_gradients import LayerGradients
from bnbook.report.experiments import watch
from bnbook.report.finding import Anatomy
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
