"""What the architectures share: weights drawn before all else, and a normalizer where one belongs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from bnbook.errors import BnbookError
from bnbook.normalizers import NORMALIZERS, make_normalizer

Norm = str | Callable[..., nn.Module]  # a name, "weight", or a factory (features, dim) -> Module
INITIALISATIONS = ("glorot", "glorot-normal", "meanfield")


def whole(name: str, value: int) -> int:
    """Pass a whole number of at least 1, refuse anything else."""
    if not isinstance(value, int) or value < 1:
        raise BnbookError(f"{name} {value!r} of a model; expected a whole number of at least 1")
    return value


def linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A fully connected layer; `initialise` draws its parameters anew."""
    return nn.Linear(whole("width", inputs), whole("width", outputs), bias=bias)


def convolution(inputs: int, outputs: int) -> nn.Conv2d:
    """A 3×3 convolution, padded by one; `initialise` draws its parameters anew."""
    return nn.Conv2d(whole("channels", inputs), whole("channels", outputs), 3, padding=1)


def initialise(layers: Sequence[nn.Module], init: str, sigma_w2: float, sigma_b2: float) -> None:
    """Draw weights and biases, layer by layer in order, from PyTorch's default generator.

    "glorot": W ~ U(-a, a), a² = 6 / (fan_in + fan_out); "glorot-normal": W ~ N(0, 2 / (fan_in + fan_out));
    zero biases in both (Glorot and Bengio 2010; Santurkar et al. do not say which of the two).
    "meanfield": W ~ N(0, σ_w² / fan_in), b ~ N(0, σ_b²) (mean-field paper, equations 12 and 27).
    fan_in = inputs × kernel area, fan_out = outputs × kernel area. Called before any normalizer is built, so
    arms that differ in their normalizer start from the same weights at the same seed.
    Errors: BnbookError for another name or a negative variance.
    """
    if init not in INITIALISATIONS:
        raise BnbookError(f"unknown initialisation {init!r}; expected one of {', '.join(INITIALISATIONS)}")
    if sigma_w2 < 0 or sigma_b2 < 0:
        raise BnbookError(f"variances sigma_w2={sigma_w2}, sigma_b2={sigma_b2}; expected at least 0 each")
    for layer in layers:
        if init == "meanfield":
            nn.init.normal_(layer.weight, std=(sigma_w2 / layer.weight[0].numel()) ** 0.5)
        elif init == "glorot":
            nn.init.xavier_uniform_(layer.weight)
        else:
            nn.init.xavier_normal_(layer.weight)
        if layer.bias is not None and init == "meanfield":
            nn.init.normal_(layer.bias, std=sigma_b2**0.5)
        elif layer.bias is not None:
            nn.init.zeros_(layer.bias)


def hidden(index: int, layer: nn.Module, norm: Norm, gamma: float, options: dict) -> dict[str, nn.Module]:
    """A layer with the normalizer of its outputs and a ReLU: linear1 or conv1, norm1, relu1.

    "weight" reparametrises the layer instead, W = g V / ‖V‖ per unit (Salimans and Kingma 2016), which
    changes nothing at the start; its normalizer is the identity, as it is for "none".
    """
    features = layer.weight.shape[0]
    kind, dim = ("conv", 2) if isinstance(layer, nn.Conv2d) else ("linear", 0)
    if callable(norm):
        normalizer = norm(features, dim, **options)
    elif norm == "weight":
        layer, normalizer = weight_norm(layer), make_normalizer("none", features, dim, **options)
    elif norm in NORMALIZERS:
        normalizer = make_normalizer(norm, features, dim, **options)
    else:
        known = ", ".join([*NORMALIZERS, "weight"])
        raise BnbookError(f"unknown norm {norm!r}; expected a factory or one of {known}")
    scale(normalizer, gamma)
    return {f"{kind}{index}": layer, f"norm{index}": normalizer, f"relu{index}": nn.ReLU()}


def scale(normalizer: nn.Module, gamma: float) -> nn.Module:
    """The normalizer with its γ, if it has one, at a constant."""
    if getattr(normalizer, "weight", None) is not None:
        nn.init.constant_(normalizer.weight, gamma)
    return normalizer


def activation_points(model: nn.Module) -> list[str]:
    """Names, in order, of the modules whose outputs enter a nonlinearity (in `deep_linear`, the next layer).

    They are the same in every arm: where nothing normalizes, an identity stands in the place.
    """
    return [name for name, _ in model.named_modules() if re.search(r"(^|\.)norm\d+$", name)]
