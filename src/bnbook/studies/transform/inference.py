"""From a batch to the population: all batches counted, and layers whose statistics stand still."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import torch
from torch import Generator, Tensor, nn

from bnbook.normalizers import make_normalizer
from bnbook.studies.transform.units import D, power_of_ten, sign


def counted_biases(population: np.ndarray, sizes: list[int]) -> dict[str, list[float]]:
    """Relative biases over every batch that N numbers allow, counted, for each size m.

    mean: of E[μ_B], batches dealt without replacement and drawn independently in turn (2 per size); dealt,
    independent: of m/(m-1) E[σ_B²] against Var x (1 per size).
    """
    found: dict[str, list[float]] = {"mean": [], "dealt": [], "independent": []}
    for m in sizes:
        everyone = range(len(population))
        for kind, batches in (
            ("dealt", combinations(everyone, m)),
            ("independent", product(everyone, repeat=m)),
        ):
            x = population[np.array(list(batches))]
            found["mean"].append(x.mean(1).mean() / population.mean() - 1)
            found[kind].append(m / (m - 1) * x.var(1).mean() / population.var() - 1)
    return found


def frozen_layers(count: int, g: Generator) -> tuple[nn.Module, nn.Module, tuple[Tensor, ...]]:
    """The same random batch norm at inference, for rows and for maps; and its γ, β, mean and variance,
    (count,)."""
    gamma, beta = sign(count, g) * power_of_ten(-2, 2, count, g), torch.randn(count, generator=g, dtype=D)
    mean, variance = torch.randn(count, generator=g, dtype=D), power_of_ten(-4, 4, count, g)
    layers = [make_normalizer("batch", count, dim=dim).to(D).eval().requires_grad_(False) for dim in (0, 2)]
    for layer in layers:
        layer.weight.copy_(gamma), layer.bias.copy_(beta)
        layer.running_mean.copy_(mean), layer.running_var.copy_(variance)
    return *layers, (gamma, beta, mean, variance)
