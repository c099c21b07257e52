"""How large the gradient is in each layer: with respect to its weights and to its pre-activations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from bnbook.errors import BnbookError
from bnbook.probes.functional import Batch, Loss
from bnbook.probes.statistics import copied


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
    outputs: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        def look(_module: nn.Module, _arguments: tuple[Tensor, ...], output: Tensor) -> None:
            if name in outputs:
                raise BnbookError(
                    f"layer {name} runs twice in one pass; its gradient by its output is not one tensor"
                )
            outputs[name] = output

        return look

    with (
        copied(model, statistics, loss) as [twin, own],
        parametrize.cached(),
    ):  # one weight, looked at and used
        layers = {name: m for name, m in twin.named_modules() if isinstance(m, (nn.Linear, nn.Conv2d))}
        if not layers:
            raise BnbookError("the model has no linear or convolutional layer; expected at least one")
        for name, module in layers.items():
            module.weight.requires_grad_()
            module.register_forward_hook(keep(name))
        value = own(twin(inputs.clone()), targets)
        order = list(outputs)
        current = [layers[name].weight for name in order]
        gradients = torch.autograd.grad(value, current + [outputs[name] for name in order])
    by_weight, by_output = gradients[: len(order)], gradients[len(order) :]
    return LayerGradients(
        tuple(order),
        _norms(by_weight),
        _norms(by_output),
        _norms(current),
        np.array([float((w.detach().double() * g.double()).sum()) for w, g in zip(current, by_weight)]),
    )


def _norms(tensors: list[Tensor] | tuple[Tensor, ...]) -> np.ndarray:
    return np.array([float(tensor.detach().double().norm()) for tensor in tensors])
