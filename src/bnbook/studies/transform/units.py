"""Random units of every size, with difficult ones among them, and the errors that a formula makes on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Generator, Tensor

D = torch.float64


def generators(seeds: Iterable[int], section: int) -> list[Generator]:
    """Random numbers for each seed in one section of the chapter."""
    return [Generator().manual_seed(1000 * section + seed) for seed in seeds]


def power_of_ten(low: float, high: float, count: int, g: Generator) -> Tensor:
    """10 to a uniform power, (count,)."""
    return 10 ** (low + (high - low) * torch.rand(count, generator=g, dtype=D))


def sign(count: int, g: Generator) -> Tensor:
    """1 or -1, (count,)."""
    return 1 - 2 * torch.randint(2, (count,), generator=g)


def draw_units(m: int, count: int, g: Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Units of every size, a quarter of them difficult: x (m, count), γ, β, ε (count,).

    Of eight units in a row one has almost no variance, one an outlier, one half its batch equal, one heavy
    tails.
    """
    spread = power_of_ten(-3, 3, count, g)
    gamma, beta = sign(count, g) * power_of_ten(-2, 2, count, g), torch.randn(count, generator=g, dtype=D)
    eps = power_of_ten(-12, -1, count, g)
    z = torch.randn(m, count, generator=g, dtype=D)
    kind = torch.arange(count) % 8
    spread[kind == 0], eps[kind == 0] = 1e-8, 1e-5
    z[0, kind == 1] += 1e3
    z[: m // 2, kind == 2] = z[0, kind == 2]
    z = torch.where(kind == 3, z**3, z)
    z = (z - z.mean(0)) / z.std(0, correction=0)  # so that the spread is the standard deviation of the batch
    offset = sign(count, g) * power_of_ten(-1, 3, count, g)
    return spread * (z + offset), gamma, beta, eps


def five_units(g: Generator, examples: int = 16384) -> Tensor:
    """(examples, 5): strokes (0 or 1), intensities (skewed) and noise, mixed in five ways."""
    strokes = torch.randint(2, (examples, 1), generator=g).to(D)
    intensities = torch.empty(examples, 2, dtype=D).exponential_(generator=g)
    inputs = torch.cat([strokes, intensities, torch.randn(examples, 1, generator=g, dtype=D)], 1)
    weight = [
        [0.0, 0.55, 0.1, 0.1],
        [4.0, 0.0, 0.0, 0.9],
        [0.1, 0.0, -0.9, 0.3],
        [0.3, 0.2, 0.0, 0.35],
        [0.0, -0.6, 0.9, 1.6],
    ]
    return inputs @ torch.tensor(weight, dtype=D).T + torch.tensor([-5.5, 1.0, -0.5, 5.0, -3.5], dtype=D)


def by_seed(trials: Iterable[Iterable[dict[str, Tensor]]]) -> dict[str, np.ndarray]:
    """The size of every unit's error, {name: (S, units of all trials)}, from each seed's trials.

    A trial gives an error for each unit, (C, ...), or for each example too, (m, C): of these the largest
    counts.
    """
    rows = [list(of_seed) for of_seed in trials]

    def sizes(error: Tensor) -> np.ndarray:
        return (error.abs().amax(0) if error.ndim > 1 else error.abs()).flatten().numpy()

    return {
        name: np.array([np.concatenate([sizes(trial[name]) for trial in row]) for row in rows])
        for name in rows[0][0]
    }


def largest(errors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The largest error of each seed, {name: (S,)}."""
    return {name: sizes.max(axis=1) for name, sizes in errors.items()}


def operations(seeds: int, units: int, values: int, batches: int, batch_sizes: Sequence[int]) -> int:
    """About twenty additions and multiplications on each random number that the chapter draws."""
    gap = (
        8 * batches * (32 + sum(2**k for k in range(2, 10)))
    )  # eight channels, batches of 4 to 512 and of 32
    return 20 * seeds * (4 * units * sum(batch_sizes) + 10 * values + gap)
