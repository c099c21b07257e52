"""Gradient descent as plain as it gets, which what trains many networks at once is held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

#: Of ten steps, where the rate falls linearly over the last fifth.
SHARES = (*[1.0] * 8, 2 / 3, 1 / 3)


def descend(
    loss: Callable[..., Tensor], parameters: Sequence[Tensor], batches: Iterator, rates: Iterable[float]
) -> list[float]:
    """θ ← θ - η ∇L(θ), a step for each rate, in place; the losses before the steps."""
    found = []
    for rate in rates:
        here = loss(*next(batches))
        slopes = torch.autograd.grad(here, parameters, allow_unused=True)
        for parameter, slope in zip(parameters, slopes):
            if slope is not None:
                parameter.data -= rate * slope
        found.append(here.item())
    return found
