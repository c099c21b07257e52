"""Which statistics a model's batch norm uses while a probe looks, and whether gradients flow through them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.normalizers.base import BatchNormalizer
from bnbook.normalizers.batch import BatchNorm

STATISTICS = ("batch", "detached", "population")


@contextmanager
def use_statistics(model: nn.Module, statistics: str) -> Iterator[dict[str, Tensor]]:
    """Put the model into the mode that `statistics` asks for; gives copies of its buffers to run on, restores
    the rest.

    "batch": mean and variance of the batch, gradients flow through them, as in training; "detached": the same
    values, constant in the gradient, as the mean-field theory assumes; "population": the running averages, as
    in inference. BnbookError for an unknown name; for "detached" with normalizers over the batch other than
    batch norm; for "population" before any training batch has filled the running averages.
    """
    if statistics not in STATISTICS:
        raise BnbookError(f"statistics {statistics!r} is unknown; expected one of {', '.join(STATISTICS)}")
    normalizers = batch_normalizers(model)
    hooks = []
    if statistics == "detached":
        for module in normalizers:
            if not isinstance(module, (BatchNorm, nn.BatchNorm1d, nn.BatchNorm2d)):
                raise BnbookError(
                    f"constant statistics are defined for batch norm, not for {type(module).__name__}; "
                    "expected norm 'none' or 'batch', or statistics='batch'"
                )
        hooks = [module.register_forward_hook(_hold_constant) for module in normalizers]
    elif statistics == "population" and any(not int(module.num_batches_tracked) for module in normalizers):
        raise BnbookError(
            "no population statistics yet; expected a model that has seen a batch in training mode"
        )
    modes = [(module, module.training) for module in model.modules()]
    # Buffers are updated in place: the pass works on copies, so even an error leaves the model as it was.
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        model.train(statistics != "population")
        with torch.enable_grad(), torch.random.fork_rng():
            yield buffers
    finally:
        for hook in hooks:
            hook.remove()
        for module, training in modes:
            module.training = training


def batch_normalizers(model: nn.Module) -> list[nn.Module]:
    """The layers in which the examples of a batch meet."""
    return [m for m in model.modules() if isinstance(m, (BatchNormalizer, nn.modules.batchnorm._NormBase))]


def _hold_constant(module: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """Give a batch norm layer's output the gradient that it has with mean and variance held constant."""
    (z,) = arguments
    others, shape = [axis for axis in range(z.ndim) if axis != 1], (-1, *[1] * (z.ndim - 2))
    fixed = z.detach()
    scale = (fixed.var(dim=others, correction=0) + module.eps).rsqrt()
    u = (z - fixed.mean(dim=others).view(shape)) * scale.view(shape)
    return u if module.weight is None else u * module.weight.view(shape) + module.bias.view(shape)
