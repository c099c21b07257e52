"""The layers that may stand where batch norm stands, as a table of small functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

EPS = 1e-5
#: Mean and divisor of pre-activations z (M, B, N), each broadcasting over z.
Statistics = Callable[[Tensor], tuple[Tensor, Tensor]]


def over_batch(z: Tensor) -> tuple[Tensor, Tensor]:
    """Batch norm: μ and sqrt(σ² + ε) of each unit over the batch, (M, 1, N); Ioffe and Szegedy 2015."""
    variance, mean = torch.var_mean(z, 1, correction=0, keepdim=True)
    return mean, (variance + EPS).sqrt()


def mean_only(z: Tensor) -> tuple[Tensor, Tensor]:
    """The half that centres: μ and 1."""
    mean = z.mean(1, keepdim=True)
    return mean, torch.ones_like(mean)


def variance_only(z: Tensor) -> tuple[Tensor, Tensor]:
    """The half that divides: 0 and sqrt(σ² + ε), σ² about the mean that stays."""
    _, divisor = over_batch(z)
    return torch.zeros_like(divisor), divisor


def size(z: Tensor) -> Tensor:
    """|z|; torch's own loads its compiler, seconds, when it is differentiated twice."""
    return z * z.detach().sign()


def l1(z: Tensor) -> tuple[Tensor, Tensor]:
    """μ and the mean of |z| before centring (Santurkar et al. 2018, in the book's reading: `LpNorm`)."""
    return z.mean(1, keepdim=True), size(z).mean(1, keepdim=True) + EPS


def l2(z: Tensor) -> tuple[Tensor, Tensor]:
    """μ and the root of the mean of z² before centring."""
    return z.mean(1, keepdim=True), (z.square().mean(1, keepdim=True) + EPS).sqrt()


def linf(z: Tensor) -> tuple[Tensor, Tensor]:
    """μ and the largest |z| of the batch."""
    return z.mean(1, keepdim=True), size(z).amax(1, keepdim=True) + EPS


def layer(z: Tensor) -> tuple[Tensor, Tensor]:
    """Layer norm: mean and deviation of each example over its units, (M, B, 1); Ba, Kiros and Hinton 2016."""
    variance, mean = torch.var_mean(z, 2, correction=0, keepdim=True)
    return mean, (variance + EPS).sqrt()


def groups(number: int) -> Statistics:
    """Group norm: the same over each of `number` groups of neighbouring units, (M, B, N); Wu and He 2018."""

    def statistics(z: Tensor) -> tuple[Tensor, Tensor]:
        size = z.shape[-1] // number
        variance, mean = torch.var_mean(z.unflatten(-1, (number, size)), -1, correction=0, keepdim=True)
        spread = (*z.shape[:-1], number, size)
        return mean.expand(spread).flatten(-2), (variance + EPS).sqrt().expand(spread).flatten(-2)

    return statistics


def rms(z: Tensor) -> tuple[Tensor, Tensor]:
    """RMS norm: 0 and the root of the mean of z² of each example; Zhang and Sennrich 2019."""
    divisor = (z.square().mean(2, keepdim=True) + EPS).sqrt()
    return torch.zeros_like(divisor), divisor


def weight_norm(v: Tensor, gamma: Tensor) -> Tensor:
    """W = γ v / ‖v‖, a unit's weights a column: v (M, I, N), γ (M, N); Salimans and Kingma 2016."""
    return v * (gamma / v.norm(dim=1)).unsqueeze(1)


def weight_standardization(v: Tensor, gamma: Tensor) -> Tensor:
    """W = γ sqrt(2 / I) (v - mean v) / deviation of v, over a unit's I weights.

    Qiao et al. 2019, with the scale of He's initialization, as Brock et al. 2021 have it.
    """
    variance, mean = torch.var_mean(v, 1, correction=0, keepdim=True)
    return (v - mean) * (2 / v.shape[1]) ** 0.5 / (variance + EPS / v.shape[1]).sqrt() * gamma.unsqueeze(1)


@dataclass(frozen=True)
class StandIn:
    """One way to fill the place of batch norm; without any setting, nothing stands there: relu(z + β)."""

    words: str  # in tables
    statistics: Statistics | None = None  # of the activations
    weights: Callable[[Tensor, Tensor], Tensor] | None = None  # of the weights
    alpha: float | None = None  # relu(γ tanh(α z) + β), α trained, from here; Zhu et al. 2025
    meet: bool = False  # whether the examples of a batch meet in it
    after: bool = False  # behind the rectifier instead of before it
    frozen: bool = False  # γ and β stay 1 and 0
    only: int | None = None  # in this hidden layer alone (-1: the last), nothing in the others
    gain: float = 1.0  # of the first weights, over He's
    shaken: float = 0.0  # noise behind it, in units of Santurkar et al. 2018, Algorithm 1

    @property
    def scaled(self) -> bool:
        """Whether γ is part of it."""
        return bool(self.statistics or self.weights or self.alpha)


TABLE = {
    "none": StandIn("nothing"),
    "small": StandIn("nothing, first weights × 0.7", gain=0.7),
    "large": StandIn("nothing, first weights × 1.4", gain=1.4),
    "batch": StandIn("batch norm", over_batch, meet=True),
    "frozen": StandIn("batch norm, γ and β fixed", over_batch, meet=True, frozen=True),
    "after": StandIn("batch norm behind the rectifier", over_batch, meet=True, after=True),
    "first": StandIn("batch norm in the first layer alone", over_batch, meet=True, only=0),
    "last": StandIn("batch norm in the last hidden layer alone", over_batch, meet=True, only=-1),
    "mean": StandIn("batch mean alone", mean_only, meet=True),
    "variance": StandIn("batch variance alone", variance_only, meet=True),
    "l1": StandIn("ℓ1 over the batch", l1, meet=True),
    "l2": StandIn("ℓ2 over the batch", l2, meet=True),
    "linf": StandIn("ℓ∞ over the batch", linf, meet=True),
    "shaken_half": StandIn("batch norm, shaken × ½", over_batch, meet=True, shaken=0.5),
    "shaken": StandIn("batch norm, shaken", over_batch, meet=True, shaken=1.0),
    "shaken_twice": StandIn("batch norm, shaken × 2", over_batch, meet=True, shaken=2.0),
    "layer": StandIn("layer norm", layer),
    "layer_after": StandIn("layer norm behind the rectifier", layer, after=True),
    "group2": StandIn("group norm, 2 groups", groups(2)),
    "group8": StandIn("group norm, 8 groups", groups(8)),
    "rms": StandIn("RMS norm", rms),
    "weight": StandIn("weight norm", weights=weight_norm),
    "standardized": StandIn("weight standardization", weights=weight_standardization),
    "tanh_half": StandIn("tanh(z/2)", alpha=0.5),
    "tanh_two": StandIn("tanh(2z)", alpha=2.0),
}
#: Those in which an example is answered by itself: no relative of batch norm's.
ALONE = tuple(name for name, one in TABLE.items() if not one.meet)
