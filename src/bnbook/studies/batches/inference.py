"""One network, several answers: by which statistics of its batch norm it is asked."""

from __future__ import annotations

import copy
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.normalizers.batch import BatchNorm

CHUNK = 512  # examples of a forward pass where no statistics are taken


def layers_of(model: nn.Module) -> list[BatchNorm]:
    """Its batch norms, in order."""
    return [module for module in model.modules() if isinstance(module, BatchNorm)]


@torch.no_grad()
def precise(model: nn.Sequential, images: Tensor, members: int) -> nn.Sequential:
    """A copy whose batch norms answer by mean and variance over all of `images` (m, C, H, W).

    Layer by layer, E[x] and E[x²] - E[x]² of what reaches it while those before it stand at inference already: on
    these images the copy answers as the model does in training, with all of them in one batch.
    """
    model = copy.deepcopy(model).eval()
    for layer in layers_of(model):
        sums = torch.zeros(2, layer.features, dtype=torch.float64)
        count = [0]

        def add(
            module: nn.Module, inputs: tuple[Tensor], sums: Tensor = sums, count: list[int] = count
        ) -> None:
            values, exact = inputs[0], dict(dim=(0, 2, 3), dtype=torch.float64)
            sums[0] += values.sum(**exact)
            sums[1] += values.square().sum(**exact)
            count[0] += values[:, 0].numel()
            raise Stop

        hook = layer.register_forward_pre_hook(add)
        for part in images.split(CHUNK):
            with suppress(Stop):
                model(part.repeat(1, members, 1, 1))
        hook.remove()
        mean, square = sums / count[0]
        layer.running_mean.copy_(mean)
        layer.running_var.copy_(square - mean**2)
    return model


class Stop(Exception):
    """A layer has seen what it was asked about; those behind it need not run."""


@torch.no_grad()
def outputs(model: nn.Module, images: Tensor, members: int, batch: int = 0) -> Tensor:
    """Logits (S, m, classes): at inference, or in training mode in batches of `batch` examples, in their order.

    The model stays as it is; what does not fill the last batch is left out.
    """
    model = copy.deepcopy(model).train(bool(batch))
    whole = images[: len(images) // batch * batch] if batch else images
    parts = [model(part.repeat(1, members, 1, 1)) for part in whole.split(batch or CHUNK)]
    return torch.cat(parts).view(len(whole), members, -1).transpose(0, 1)


def error(logits: Tensor, labels: Tensor) -> np.ndarray:
    """Share of wrong answers of each member, (S, m, classes), (m,) → (S,)."""
    return (logits.argmax(-1) != labels[: logits.shape[1]]).double().mean(1).numpy()
