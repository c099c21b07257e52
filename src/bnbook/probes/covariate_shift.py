"""Internal covariate shift as Santurkar et al. define it: what a layer's gradient owes to the layers before
it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.functional import Batch, Loss, LossAt, loss_at, total_norm


@dataclass(frozen=True)
class CovariateShift:
    """How each layer's gradient changes when the layers before it are updated, L layers in forward order."""

    distance: Tensor  # (L,): ‖G_i - G'_i‖
    cosine: Tensor  # (L,): of the angle between G_i and G'_i
    norm: Tensor  # (L,): ‖G_i‖
    names: tuple[str, ...]  # of the layers' weights


def measure(model: nn.Module, loss: Loss, batch: Batch, learning_rate: float) -> CovariateShift:
    """Change of every layer's gradient by an SGD update of the layers before it, on the same batch.

    G_i = ∇_{W_i} L(W_1, ..., W_k), G'_i = ∇_{W_i} L(W'_1, ..., W'_{i-1}, W_i, ..., W_k), W' = W - a ∇L(W).
    A layer is a trained parameter with two or more axes, in the order of registration, which is forward order
    in the book's models (the two parameters of a weight-normalized layer together are one). Updated before
    layer i are all trained parameters registered before it: earlier weights, biases, γ and β. Its own bias,
    its normalizer and all that follows stay. Layer 1 has distance 0 and cosine 1. inputs, targets, mode,
    noise and what is left untouched: as in `bnbook.probes.landscape.along_gradient`. Costs at most L
    forward-backward passes. Errors: BnbookError for a learning rate not above 0, a model without such a
    layer. Source: Santurkar et al. 2018, Definition 2.1 (NeurIPS), the definition of section 2.2 (v1).
    """
    if not learning_rate > 0:
        raise BnbookError(f"learning rate {learning_rate!r} of an update; expected a number above 0")
    at = loss_at(model, loss, batch)
    names = list(at.parameters)
    layers = layers_of(at.parameters)
    if not layers:
        raise BnbookError("a model without a layer; expected a trained parameter with two or more axes")
    return changes(at, layers, dict(zip(names, at({}, names)[1], strict=True)), learning_rate)


def changes(
    at: LossAt, layers: dict[str, list[str]], gradient: Mapping[str, Tensor], learning_rate: float
) -> CovariateShift:
    """The same of some layers, where the gradient is known; the cosine of a gradient of zero is nan."""
    names = list(at.parameters)
    updated = {n: torch.add(at.parameters[n], gradient[n], alpha=-learning_rate) for n in names}
    rows = []
    for layer in layers.values():
        before = [gradient[name] for name in layer]
        own = _owner(layer[0])  # a parametrized weight is registered after its own bias
        preceding = [n for n in names[: names.index(layer[0])] if _owner(n) != own]
        after = at({n: updated[n] for n in preceding}, layer)[1] if preceding else before
        one, other = total_norm(before), total_norm(after)
        distance = total_norm([g - h for g, h in zip(before, after, strict=True)])
        inner = sum((g.double() * h.double()).sum() for g, h in zip(before, after, strict=True))
        cosine = inner / (one * other) if preceding else torch.where(one > 0, 1.0, torch.nan).to(one)
        rows.append(torch.stack([distance, cosine, one]))
    return CovariateShift(*torch.stack(rows).T, tuple(layers))


def layers_of(parameters: dict[str, Tensor]) -> dict[str, list[str]]:
    """Name of the weight -> names of its parameters: one, or the several of a parametrized weight."""
    layers: dict[str, list[str]] = {}
    for name, parameter in parameters.items():
        if parameter.dim() >= 2:
            layers.setdefault(name.replace("parametrizations.", "").partition(".original")[0], []).append(
                name
            )
    return layers


def _owner(name: str) -> str:
    """The module that a parameter belongs to."""
    return (
        name.partition(".parametrizations.")[0] if ".parametrizations." in name else name.rpartition(".")[0]
    )
