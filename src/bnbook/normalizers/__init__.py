"""Normalizers by name. `make_normalizer` builds one."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial

from torch import nn

from bnbook.errors import BnbookError
from bnbook.normalizers.batch import BatchNorm
from bnbook.normalizers.lp import LpNorm
from bnbook.normalizers.noisy import Noise, NoisyBatchNorm
from bnbook.normalizers.per_example import GroupNorm, InstanceNorm, LayerNorm

__all__ = ["NORMALIZERS", "make_normalizer"]


def _none(features: int, dim: int) -> nn.Module:
    return nn.Identity()


NORMALIZERS: dict[str, Callable[..., nn.Module]] = {
    "none": _none,
    "batch": BatchNorm,
    "noisy": NoisyBatchNorm,
    "noise": Noise,  # the noise of "noisy" without its batch norm: the control that the paper lacks
    "l1": partial(LpNorm, p=1),
    "l2": partial(LpNorm, p=2),
    "linf": partial(LpNorm, p=math.inf),
    "layer": LayerNorm,
    "group": GroupNorm,
    "instance": InstanceNorm,
}


def make_normalizer(name: str, features: int, dim: int = 0, **options) -> nn.Module:
    """Build the normalizer of that name for inputs (B, features), dim=0, or (B, features, H, W), dim=2.

    options: eps (not "none", "noise"); momentum ("batch", "noisy", "l1", "l2", "linf"; None for a plain
    average); groups ("group"); n_mu, n_sigma, r_mu, r_sigma, spread, per ("noisy", "noise").
    Errors: BnbookError for an unknown name or option, another dim, features below 1, "instance" with dim 0.
    """
    if name not in NORMALIZERS:
        raise BnbookError(f"unknown normalizer {name!r}; expected one of {', '.join(NORMALIZERS)}")
    if dim not in (0, 2):
        raise BnbookError(f"normalizer dim {dim!r}; expected 0 for inputs (B, C), 2 for (B, C, H, W)")
    if not isinstance(features, int) or features < 1:
        raise BnbookError(f"a normalizer over {features!r} features; expected a whole number of at least 1")
    builder = NORMALIZERS[name]
    known = inspect.signature(builder).parameters
    known = known | inspect.signature(Noise).parameters if "noise" in known else known
    known = [key for key in known if key not in ("features", "dim", "p", "noise")]
    unknown = sorted(set(options) - set(known))
    if unknown:
        listed = ", ".join(known) or "none"
        raise BnbookError(f"unknown option {unknown[0]!r} of normalizer {name!r}; known are {listed}")
    return builder(features, dim, **options)
