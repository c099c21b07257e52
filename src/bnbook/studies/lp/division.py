"""What the ℓp normalizations make of one unit whose mean moves away from zero."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from bnbook.normalizers import make_normalizer

LP = ("l1", "l2", "linf")


def average_norm(values: Tensor, norm: str) -> Tensor:
    """(mean |x|^p)^(1/p) of each unit, max |x| for ℓ∞, (m, units) -> (units,)."""
    if norm == "linf":
        return values.abs().amax(0)
    return values.abs().mean(0) if norm == "l1" else (values**2).mean(0).sqrt()


def moved_gaussian(offsets: Tensor, values: int = 4096) -> Tensor:
    """Gaussian values of variance 1, one unit for each mean of `offsets`, (m, units)."""
    drawn = torch.randn(values, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (drawn - drawn.mean(0)) / drawn.std(0, correction=0) + offsets


def outputs(norm: str, x: Tensor) -> dict[str, np.ndarray]:
    """size, deviation: average ℓp norm and standard deviation of what the layer makes of x, (1, units);
    output_norm: largest difference of that size from the centred over the uncentred norm of x; centred_norm:
    largest difference from 1 where x is centred first."""
    layer = make_normalizer(norm, x.shape[1], 0, eps=1e-14).double()
    y, centred = layer(x).detach(), x - x.mean(0)
    found = {"deviation": y.std(0, correction=0)[None].numpy()}
    if norm in LP:
        size, other = average_norm(y, norm), average_norm(layer(centred).detach(), norm)
        ratio = average_norm(centred, norm) / average_norm(x, norm)
        found["size"] = size[None].numpy()
        found["output_norm"] = np.array([(size - ratio).abs().max().item()])
        found["centred_norm"] = np.array([(other - 1).abs().max().item()])
    return found


def l2_from_batch(x: Tensor) -> float:
    """Largest difference between ℓ2 normalization and batch norm on centred input."""
    centred = x - x.mean(0)
    layers = (make_normalizer(norm, x.shape[1], 0).double() for norm in ("l2", "batch"))
    one, other = (layer(centred).detach() for layer in layers)
    return float((one - other).abs().max())


def largest_of(m: int) -> float:
    """E max |z| of m standard Gaussian values: the integral of 1 - P(|z| < t)^m."""
    t = np.linspace(0, 12, 24001)
    inside = np.array([math.erf(value / math.sqrt(2)) for value in t])
    return float((1 - inside**m).sum() * (t[1] - t[0]))


def matched_rates(rate: float, examples: int) -> dict[str, float]:
    """The rate at which batch norm starts with the same kernel as ℓ1 and ℓ∞ at `rate`: η c², c the standard
    deviation of what they make of a Gaussian unit of mean zero, √(π/2) and 1/M."""
    stretch = {"l1": math.sqrt(math.pi / 2), "linf": 1 / largest_of(examples)}
    return {norm: float(f"{rate * factor**2:.3g}") for norm, factor in stretch.items()}
