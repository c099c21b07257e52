"""Nonlinearities by name, as functions of a tensor; any other function of a tensor may take their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
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


@dataclass(frozen=True)
class Mixture:
    """φ(x) = p₀ x + w Σ_k a_k sin(f_k x + s_k) + c (p₁ x² + p₂ x³)."""

    size: np.ndarray  # (4,)  a
    frequency: np.ndarray  # (4,)  f
    phase: np.ndarray  # (4,)  s
    powers: np.ndarray  # (3,)  p
    waves: float  # w
    curved: float  # c

    def __call__(self, x: Tensor) -> Tensor:
        wave = sum(a * torch.sin(f * x + s) for a, f, s in zip(self.size, self.frequency, self.phase))
        curve = self.powers[1] * x**2 + self.powers[2] * x**3
        return self.powers[0] * x + self.waves * wave + self.curved * curve


def random_nonlinearities(count: int, seed: int = 0) -> Iterator[tuple[Function, int]]:
    """Smooth nonlinearities of many kinds, each with a batch size: waves, polynomials, and some that are
    almost linear."""
    generator = np.random.default_rng(seed)
    for index in range(count):
        size, frequency = generator.normal(size=4), generator.uniform(0.2, 3.0, size=4)
        phase, powers = generator.uniform(0, 2 * np.pi, size=4), generator.normal(size=3)
        waves = (1.0, 0.1, 1e-3, 0.0)[index % 4]  # the third kind is linear but for a thousandth
        curved = (0.0, 0.3, 0.0, 1.0)[index % 4]
        phi = Mixture(size, frequency, phase, powers, waves, curved)
        yield phi, int(generator.choice([4, 5, 6, 8, 16, 64, 256, 1024]))
