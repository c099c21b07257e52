"""Fully connected networks: the multilayer perceptron and the deep linear network."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from torch import nn

from bnbook.errors import BnbookError
from bnbook.models.building import Norm, hidden, initialise, linear, whole


def mlp(
    widths: Sequence[int] = (784, 1000, 1000, 1000, 10),
    norm: Norm = "none",
    init: str = "glorot",
    sigma_w2: float = 2.0,
    sigma_b2: float = 0.5,
    gamma: float = 1.0,
    **norm_options,
) -> nn.Sequential:
    """Fully connected ReLU network, inputs flattened first: (B, ...) of widths[0] values → (B, widths[-1]).

    h^l = relu(norm(W^l h^{l-1} + b^l)); the last layer is linear and has no normalizer. Modules: flatten,
    linear1, norm1, relu1, ..., linearL. init, sigma_w2, sigma_b2: see `initialise`; gamma: the normalizers'
    first γ, β = 0. norm: as in `vgg`. Source: mean-field paper, equations 11 to 16 and section 4.
    Errors: BnbookError for fewer than two widths, a width below 1, an unknown name.
    """
    if len(widths) < 2:
        raise BnbookError(f"widths {tuple(widths)} of an MLP; expected at least one layer, as (784, 10)")
    layers = [linear(inputs, outputs) for inputs, outputs in zip(widths, widths[1:])]
    initialise(layers, init, sigma_w2, sigma_b2)
    modules: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    for index, layer in enumerate(layers[:-1], start=1):
        modules |= hidden(index, layer, norm, gamma, norm_options)
    modules[f"linear{len(layers)}"] = layers[-1]
    return nn.Sequential(modules)


def deep_linear(
    depth: int = 25,
    width: int = 10,
    norm: Norm = "none",
    init: str = "glorot",
    normalize_last: bool = False,
    bias: bool = False,
    sigma_w2: float = 1.0,
    sigma_b2: float = 0.0,
    gamma: float = 1.0,
    **norm_options,
) -> nn.Sequential:
    """A product of square matrices, without nonlinearities: (B, width) → (B, width).

    f(x) = W^depth norm(W^{depth-1} ... norm(W^1 x)). Modules: linear1, norm1, ..., linear25. There are no
    biases, as in the source's W_1 ... W_k x, unless bias=True; the last layer has a normalizer only if
    normalize_last (the source does not say). init, sigma_w2, sigma_b2: see `initialise` (σ_w² = 1 keeps the
    scale where nothing rectifies); gamma: the normalizers' first γ. norm: as in `vgg`.
    Source: Santurkar et al. 2018, appendix A.1.
    """
    layers = [linear(width, width, bias) for _ in range(whole("depth", depth))]
    initialise(layers, init, sigma_w2, sigma_b2)
    modules: OrderedDict[str, nn.Module] = OrderedDict()
    for index, layer in enumerate(layers, start=1):
        if index < depth or normalize_last:
            modules |= hidden(index, layer, norm, gamma, norm_options)
            del modules[f"relu{index}"]
        else:
            modules[f"linear{index}"] = layer
    return nn.Sequential(modules)
