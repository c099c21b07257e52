"""Which statistics a model's batch norm uses while a probe looks, and whether gradients flow through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.normalizers.base import BatchNormalizer
from bnbook.normalizers.batch import BatchNorm
from bnbook.probes.copies import Copies

STATISTICS = ("batch", "detached", "population")


@contextmanager
def copied(model: nn.Module, statistics: str = "batch", *functions: Callable) -> Iterator[Any]:
    """A copy of the model in the mode that `statistics` asks for; with functions beside it, [copy, *their copies].

    "batch": mean and variance of the batch, gradients flow through them, as in training; "detached": the same
    values, constant in the gradient, as the mean-field theory assumes; "population": the running averages, as
    in inference. The model itself is not touched: see `bnbook.probes.copies.Copies`. Errors: BnbookError for an
    unknown name; for "detached" with normalizers over the batch other than batch norm; for "population" before any
    training batch has filled the running averages, or where there are none.
    """
    if statistics not in STATISTICS:
        raise BnbookError(f"statistics {statistics!r} is unknown; expected one of {', '.join(STATISTICS)}")
    with Copies(model, *functions).fresh() as [twin, *others]:
        twin.train(statistics != "population")
        for module in batch_normalizers(twin):
            if statistics == "detached":
                _require_batch_norm(module)
                module.register_forward_hook(_hold_constant, with_kwargs=True)
            if statistics == "population" and not _filled(module):
                raise BnbookError(
                    "no population statistics yet; expected a model that has seen a batch in training mode"
                )
        yield [twin, *others] if functions else twin


def seen_in(modules: Mapping[str, nn.Module]) -> dict[str, tuple[Tensor, Tensor]]:
    """What these modules of a copy are given and hand on in the next pass, in the order in which it reaches them.

    Errors: in that pass, BnbookError for a module that runs twice.
    """
    seen: dict[str, tuple[Tensor, Tensor]] = {}

    def look(name: str, _module: nn.Module, given: tuple[Tensor, ...], named: dict, made: Tensor) -> None:
        if name in seen:
            raise BnbookError(f"layer {name} runs twice in one pass; expected layers that run once")
        seen[name] = (*given, *named.values())[0], made

    for name, module in modules.items():
        module.register_forward_hook(partial(look, name), with_kwargs=True)
    return seen


def batch_normalizers(model: nn.Module) -> list[nn.Module]:
    """The layers in which the examples of a batch meet."""
    return [m for m in model.modules() if isinstance(m, (BatchNormalizer, nn.modules.batchnorm._BatchNorm))]


def _require_batch_norm(module: nn.Module) -> None:
    if not isinstance(module, (BatchNorm, nn.modules.batchnorm._BatchNorm)):
        raise BnbookError(
            f"constant statistics are defined for batch norm, not for {type(module).__name__}; "
            "expected norm 'none' or 'batch', or statistics='batch'"
        )


def _filled(module: nn.Module) -> bool:
    """Whether running averages are kept and have seen a batch; without a counter, as in old checkpoints, they have."""
    counter = getattr(module, "num_batches_tracked", None)
    return getattr(module, "running_mean", None) is not None and (counter is None or int(counter) > 0)


def _hold_constant(module: nn.Module, arguments: tuple[Tensor, ...], named: dict, output: Tensor) -> Tensor:
    """Give a batch norm layer's output the gradient that it has with mean and variance held constant."""
    (z,) = (*arguments, *named.values())
    others, shape = [axis for axis in range(z.ndim) if axis != 1], (-1, *[1] * (z.ndim - 2))
    fixed = z.detach()
    scale = (fixed.var(dim=others, correction=0) + module.eps).rsqrt()
    u = (z - fixed.mean(dim=others).view(shape)) * scale.view(shape)
    return u if module.weight is None else u * module.weight.view(shape) + module.bias.view(shape)
