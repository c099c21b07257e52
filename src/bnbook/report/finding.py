"""Which layers of a foreign network normalize, which have weights, and along which axis their units lie."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from bnbook.normalizers.base import BatchNormalizer, Normalizer

_BATCH = (BatchNormalizer, nn.modules.batchnorm._NormBase)
_OWN = tuple(kind for kind in (nn.LayerNorm, getattr(nn, "RMSNorm", None), nn.LocalResponseNorm) if kind)
_INSTANCE = nn.modules.instancenorm._InstanceNorm
WEIGHTED = (nn.Linear, nn.modules.conv._ConvNd)


@dataclass(frozen=True)
class Found:
    """A layer that normalizes."""

    name: str  # as in `named_modules`
    kind: str  # its class
    over_batch: bool  # whether the examples of a batch meet in it
    training: bool  # whether it is in training mode


def normalizers(model: nn.Module) -> tuple[Found, ...]:
    """The normalizing layers in the order of registration.

    Known are torch's, the book's, and any class whose name ends in Norm, Norm1d, Norm2d or Norm3d; an
    `nn.Identity` or the book's "none" is no normalizer.
    """
    return tuple(
        Found(name, type(module).__name__, _over_batch(module), module.training)
        for name, module in model.named_modules()
        if is_normalizer(module)
    )


def is_normalizer(module: nn.Module) -> bool:
    known = isinstance(module, (*_BATCH, *_OWN, nn.GroupNorm, Normalizer))
    named = type(module).__name__.rstrip("123d").endswith("Norm")
    return known or (named and not list(module.children()))


def _over_batch(module: nn.Module) -> bool:
    return isinstance(module, _BATCH) and not isinstance(module, _INSTANCE)


def by_unit(module: nn.Module, values: Tensor) -> Tensor:
    """What a layer gets or gives, unit by unit: (units, values of the unit), float64.

    The unit is the last axis for layers that work on it (linear, layer norm, RMS norm) and for two axes,
    else axis 1 (channels).
    """
    last = values.dim() == 2 or isinstance(module, (nn.Linear, *_OWN))
    values = values.detach().double()
    return values.reshape(-1, values.shape[-1]).T if last else values.transpose(0, 1).flatten(1)


@torch.no_grad()
def orders(model: nn.Module, inputs: Tensor) -> tuple[list[str], list[str]]:
    """Names of the layers with weights that run, as they are registered and as they first run."""
    run: list[str] = []
    layers = {name: module for name, module in model.named_modules() if isinstance(module, WEIGHTED)}
    hooks = [
        module.register_forward_pre_hook(lambda _m, _a, name=name: run.append(name))
        for name, module in layers.items()
    ]
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        with torch.random.fork_rng(devices=[inputs.device] if inputs.is_cuda else []):
            functional_call(model, buffers, (inputs,))
    finally:
        for hook in hooks:
            hook.remove()
    first = list(dict.fromkeys(run))
    return [name for name in layers if name in first], first
