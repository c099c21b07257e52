"""Random networks, measured, beside mean-field theory, solved for the inputs that these networks saw."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from bnbook.meanfield import Convolutional, FullyConnected, MeanFieldTheory, solve
from bnbook.probes.order_parameters import OrderParameters

Measured = Sequence[OrderParameters]  # a network a seed


def sample_inputs(table: Tensor | None, shape: Sequence[int], seed: int, count: int) -> Tensor:
    """The inputs of one seed, (count, *shape): rows of the table without replacement, or Gaussian noise."""
    generator = torch.Generator().manual_seed(10**6 + seed)
    if table is None:
        return torch.randn(count, *shape, generator=generator)
    return table[torch.randperm(len(table), generator=generator)[:count]]


def by_layer(networks: Measured, letter: str) -> np.ndarray:
    """One of their numbers, (S, ...): for an order parameter (S, L+1)."""
    return np.array([getattr(one, letter) for one in networks])


def solve_for(
    networks: Measured,
    architecture: FullyConnected | Convolutional,
    norm: str,
    equations: str,
    sigma_w2: float = 2.0,
    sigma_b2: float = 0.5,
) -> MeanFieldTheory:
    """The equations for the data of these networks, letters (L+1, S); as printed they know one kind of data,
    (L+1, 1)."""
    if equations == "printed":
        return solve(architecture, norm, [1.0], sigma_w2, sigma_b2)
    letters = ["q_hat", "q_hat_xy"] + (["q_hat_ab_xy"] if isinstance(architecture, Convolutional) else [])
    start = {f"{letter}_0": by_layer(networks, letter)[:, 0] for letter in letters}
    return solve(architecture, norm, 1.0, sigma_w2, sigma_b2, equations, networks[0].inputs, **start)


def ratios(
    networks: Measured, theory: MeanFieldTheory, letters: Sequence[str], layers: slice = slice(1, -1)
) -> np.ndarray:
    """Measured / theory, (S, letters · layers), the hidden layers by default; no column where a letter is not
    defined."""
    columns = [
        by_layer(networks, letter)[:, layers] / getattr(theory, letter)[layers].T for letter in letters
    ]
    found = np.concatenate(columns, axis=1)
    return found[:, np.isfinite(found).all(axis=0)]


def root_mean_square(off: np.ndarray) -> np.ndarray:
    """Over the second axis, (S, K) -> (S,)."""
    return np.sqrt(np.mean(np.square(off), axis=1))


def independent_directions(x: Tensor) -> float:
    """(tr C)² / tr C² of the inputs' covariance C: how many equally large directions their differences
    fill."""
    covariance = torch.cov(x.double().T, correction=0)
    return (covariance.trace() ** 2 / covariance.square().sum()).item()


def operations(
    pixels: int,
    seeds: int,
    width: int,
    inputs: int,
    widths: Sequence[int],
    width_seeds: int,
    batches: Sequence[int],
    many_inputs: int,
    deep_layers: int,
    deep_width: int,
) -> int:
    """Additions and multiplications of the chapter on six numbers: four per weight and input, forth and
    back."""

    def one(hidden: int, depth: int, m: int) -> int:
        return 4 * m * sum(a * b for a, b in pairwise([pixels, *[hidden] * (depth - 1), 10]))

    each_seed = 8 * one(width, 4, inputs) + sum(one(width, 4, m) for m in [many_inputs, *batches])
    each_seed += 2 * one(deep_width, deep_layers, inputs)
    return seeds * each_seed + width_seeds * 2 * sum(one(n, 4, inputs) for n in widths)
