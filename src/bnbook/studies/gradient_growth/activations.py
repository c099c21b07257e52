"""Nonlinearities by name, as functions of a tensor; any other function of a tensor may take their place."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError

Function = Callable[[Tensor], Tensor]

KINK, STEEPNESS, HEIGHT = 2.7, 20.0, 0.5  # of `zigzag`


def identity(x: Tensor) -> Tensor:
    """φ(x) = x: the linear network."""
    return x


def zigzag(x: Tensor) -> Tensor:
    """The identity up to |x| = 2.7, then a saw of slope ±20 and height 1/2, odd: |φ(x)| ≤ min(|x|, 2.7).

    Made against the sentence that larger batches always explode less: over a batch of m no normalized value
    exceeds √(m-1), so that up to m = 8 (√7 ≈ 2.65) a network cannot tell it from a linear one.
    """
    size = x.abs()
    phase = torch.remainder(STEEPNESS * (size - KINK).clamp(min=0.0), 2 * HEIGHT)
    saw = torch.where(phase < HEIGHT, phase, 2 * HEIGHT - phase)
    return torch.where(size < KINK, x, torch.sign(x) * (KINK - saw))


ACTIVATIONS: dict[str, Function] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "linear": identity,
    "zigzag": zigzag,
}


def activation(name: str | Function) -> Function:
    """The function of that name, or the function itself; BnbookError for an unknown name."""
    if callable(name):
        return name
    if name not in ACTIVATIONS:
        raise BnbookError(
            f"unknown activation {name!r}; expected a function or one of {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]


class Elementwise(nn.Module):
    """A nonlinearity as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)
