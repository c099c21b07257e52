"""How large the gradient is in each layer: with respect to its weights and to its pre-activations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from bnbook.errors import BnbookError
from bnbook.probes.functional import Batch, Loss
from bnbook.probes.statistics import copied, seen_in


@dataclass(frozen=True)
class LayerGradients:
    """Norms by layer, in forward order, float64; a layer is a linear or convolutional module."""

    names: tuple[str, ...]  # (L,)
    weight: np.ndarray  # (L,)  ‖∂ℓ/∂W^l‖
    preactivation: (
        np.ndarray
    )  # (L,)  (Σ_x ‖∂ℓ/∂z^l(x)‖²)^(1/2), z^l what the layer hands on, x the examples of the batch
    size: np.ndarray  # (L,)  ‖W^l‖
    along: np.ndarray  # (L,)  ⟨W^l, ∂ℓ/∂W^l⟩: 0 where a normalizer makes the loss blind to the size of W^l

    @property
    def scale_free(self) -> np.ndarray:
        """‖W^l‖ ‖∂ℓ/∂W^l‖, (L,): what stays when a normalized layer's weights are multiplied by a number."""
        return self.size * self.weight

    def turn(self, learning_rate: float) -> np.ndarray:
        """η ‖∂ℓ/∂W^l‖ / ‖W^l‖, (L,): the share of its own size by which a step of gradient descent moves each
        layer."""
        return learning_rate * self.weight / self.size


def measure(model: nn.Module, loss: Loss, batch: Batch, statistics: str = "batch") -> LayerGradients:
    """Measure the gradient of loss(model(inputs), targets) layer by layer; batch: inputs and targets.

    statistics: "batch" (as in training), "detached" (constant in the gradient) or "population", see
    `bnbook.probes.statistics`. Parameters, buffers, .grad, mode and random state stay bit-identical.
    Errors: BnbookError for a model without linear or convolutional layers or with one that runs twice.
    """
    inputs, targets = batch
    with copied(model, statistics, loss) as [twin, own], parametrize.cached():  # a weight is computed once
        layers = {name: m for name, m in twin.named_modules() if isinstance(m, (nn.Linear, nn.Conv2d))}
        if not layers:
            raise BnbookError("the model has no linear or convolutional layer; expected at least one")
        for module in layers.values():
            module.weight.requires_grad_()
        seen = seen_in(layers)
        value = own(twin(inputs.clone()), targets)
        weights = [layers[name].weight for name in seen]
        gradients = torch.autograd.grad(value, weights + [made for _, made in seen.values()])
    by_weight, by_output = gradients[: len(seen)], gradients[len(seen) :]
    along = [float((w.detach().double() * g.double()).sum()) for w, g in zip(weights, by_weight)]
    return LayerGradients(tuple(seen), _norms(by_weight), _norms(by_output), _norms(weights), np.array(along))


def _norms(tensors: list[Tensor] | tuple[Tensor, ...]) -> np.ndarray:
    return np.array([float(tensor.detach().double().norm()) for tensor in tensors])
